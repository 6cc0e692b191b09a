"""PPO by self-play in one file, in the style of CleanRL: torch and PettingZoo alone, with CleanRL's settings.

Every seat is played by the newest network, and every decision is learnt from. A seat's own decisions are its sequence.

Shape letters: K decisions that are due in a turn, D numbers of an observation, A actions, B decisions of a rollout.
Source: Huang et al. 2022, CleanRL, ppo.py; its constants are those below.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from benchmarks.peers.trainers.seats import Order, dense_layers, drawn, order_given, parted

GAMES = 8
ROLLOUT = 1_024
MINIBATCH, EPOCHS = 128, 4
LEARNING_RATE = 2.5e-4
GAMMA, LAMBDA, CLIP, ENTROPY, VALUE, MAX_NORM = 0.99, 0.95, 0.2, 0.01, 0.5, 0.5


@dataclass
class Decision:
    """One decision of a seat, and what came of it until its next one."""

    obs: NDArray[np.float32]
    legal: NDArray[np.bool_]
    action: int
    log_prob: float
    value: float
    reward: float = 0.0
    advantage: float = 0.0


@dataclass
class Sequence:
    """The decisions of one seat of one game since the last rollout; the last one is still open."""

    decisions: list[Decision] = field(default_factory=list)

    def closed(self, *, ended: bool) -> list[Decision]:
        """Take the decisions whose reward is complete, with their advantages; the open one stays as the next first."""
        last = len(self.decisions) if ended else len(self.decisions) - 1
        taken, rest = self.decisions[: max(last, 0)], self.decisions[max(last, 0) :]
        value_after = rest[0].value if rest else 0.0
        advantage = 0.0
        for decision in reversed(taken):
            advantage = decision.reward + GAMMA * value_after - decision.value + GAMMA * LAMBDA * advantage
            decision.advantage, value_after = advantage, decision.value
        self.decisions = rest
        return taken


class Network(nn.Module):
    """Two chains of layers, actor and critic, with orthogonal weights."""

    def __init__(self, num_obs: int, hidden: tuple[int, ...], num_actions: int) -> None:
        super().__init__()
        self.actor = _chain((num_obs, *hidden, num_actions), last_gain=0.01)
        self.critic = _chain((num_obs, *hidden, 1), last_gain=1.0)

    def log_probs(self, obs: Tensor, legal: Tensor) -> Tensor:
        """[B, A]; illegal actions have hardly any probability."""
        logits: Tensor = self.actor(obs).masked_fill(~legal, -1e9)
        return logits.log_softmax(dim=1)


def _chain(sizes: tuple[int, ...], *, last_gain: float) -> nn.Sequential:
    modules: list[nn.Module] = []
    for place, (width, after) in enumerate(pairwise(sizes)):
        is_last = place == len(sizes) - 2
        layer = nn.Linear(width, after)
        nn.init.orthogonal_(layer.weight, last_gain if is_last else 2**0.5)
        nn.init.zeros_(layer.bias)
        modules += [layer] if is_last else [layer, nn.Tanh()]
    return nn.Sequential(*modules)


class Games:
    """Some games of one env; each is stepped when all of its seats that are due have chosen."""

    def __init__(self, order: Order) -> None:
        self._rng = np.random.default_rng(order.seed)
        self._kind = "lone" if order.is_lone else ""
        self._envs = [order.make() for _ in range(GAMES)]
        self._kind = self._kind or ("aec" if hasattr(self._envs[0], "agent_iter") else "parallel")
        lone = self._kind == "lone"
        self.seats: list[Any] = [0] if lone else self._envs[0].possible_agents
        self.num_actions = int(self._envs[0].action_space.n if lone else self._envs[0].action_space(self.seats[0]).n)
        self._seen: list[Any] = [None] * GAMES
        for game in range(GAMES):
            self._begin(game)

    def due(self) -> list[tuple[int, Any, NDArray[np.float32], NDArray[np.bool_]]]:
        """(game, seat, observation [D], mask [A]) of every decision that is due."""
        found = []
        for game in range(GAMES):
            for seat in self._acting(game):
                obs, legal = parted(self._shown(game, seat), self.num_actions)
                if legal.any():
                    found.append((game, seat, obs, legal))
        return found

    def step(self, game: int, actions: dict[Any, int]) -> tuple[dict[Any, float], bool]:
        """Rewards by seat, and whether the game is over; then it has begun again."""
        env = self._envs[game]
        if self._kind == "lone":
            self._seen[game], reward, terminated, truncated, _ = env.step(actions[0])
            rewards, over = {0: float(reward)}, terminated or truncated
        elif self._kind == "aec":
            env.step(next(iter(actions.values())))
            rewards = dict(env.rewards)
            over = any(env.terminations.values()) or any(env.truncations.values())
        else:
            self._seen[game], rewards, terminations, truncations, _ = env.step(actions)
            over = any(terminations.values()) or any(truncations.values())
        if over:
            self._begin(game)
        return rewards, over

    def _begin(self, game: int) -> None:
        seen = self._envs[game].reset(seed=int(self._rng.integers(2**31)))
        self._seen[game] = None if seen is None else seen[0]

    def _acting(self, game: int) -> list[Any]:
        env = self._envs[game]
        return [env.agent_selection] if self._kind == "aec" else [0] if self._kind == "lone" else list(env.agents)

    def _shown(self, game: int, seat: Any) -> Any:
        if self._kind == "aec":
            return self._envs[game].observe(seat)
        return self._seen[game] if self._kind == "lone" else self._seen[game][seat]


class Trainer:
    """Plays rollouts and learns from them."""

    def __init__(self, order: Order) -> None:
        self._rng = np.random.default_rng([order.seed, 1])
        torch.manual_seed(order.seed)
        self._games = Games(order)
        self._sequences: dict[tuple[int, Any], Sequence] = {}
        num_obs = len(self._games.due()[0][2])
        self.network = Network(num_obs, order.hidden, self._games.num_actions)
        self._optimizer = torch.optim.Adam(self.network.parameters(), lr=LEARNING_RATE, eps=1e-5)
        self.decisions = 0

    def train(self, share: Callable[[], float]) -> None:
        """Learn until the share of the budget is 1; the step falls to 0 with it."""
        while (spent := share()) < 1.0:
            for group in self._optimizer.param_groups:
                group["lr"] = LEARNING_RATE * (1.0 - spent)
            batch = self._rollout()
            self.decisions += len(batch)
            self._learn(batch)

    def _rollout(self) -> list[Decision]:
        done: list[Decision] = []
        while len(done) + sum(len(each.decisions) for each in self._sequences.values()) < ROLLOUT:
            due = self._games.due()
            obs, legal = np.stack([each[2] for each in due]), np.stack([each[3] for each in due])
            with torch.no_grad():
                log_probs = self.network.log_probs(torch.from_numpy(obs), torch.from_numpy(legal)).numpy()
                values = self.network.critic(torch.from_numpy(obs))[:, 0].tolist()
            actions = drawn(np.exp(log_probs.astype(np.float64)), self._rng).tolist()
            chosen: dict[int, dict[Any, int]] = {}
            for row, (game, seat, _, _) in enumerate(due):
                log_prob = float(log_probs[row, actions[row]])
                decision = Decision(obs[row], legal[row], actions[row], log_prob, values[row])
                self._sequences.setdefault((game, seat), Sequence()).decisions.append(decision)
                chosen.setdefault(game, {})[seat] = actions[row]
            for game, moves in chosen.items():
                done += self._step(game, moves)
        return done + [each for sequence in self._sequences.values() for each in sequence.closed(ended=False)]

    def _step(self, game: int, moves: dict[Any, int]) -> list[Decision]:
        rewards, over = self._games.step(game, moves)
        done: list[Decision] = []
        for seat in self._games.seats:
            sequence = self._sequences.get((game, seat))
            if sequence is not None and sequence.decisions:
                sequence.decisions[-1].reward += rewards.get(seat, 0.0)
                done += sequence.closed(ended=True) if over else []
        return done

    def _learn(self, batch: list[Decision]) -> None:
        obs = torch.from_numpy(np.stack([each.obs for each in batch]))
        legal = torch.from_numpy(np.stack([each.legal for each in batch]))
        actions = torch.tensor([each.action for each in batch])
        before, values, advantages = (
            torch.tensor([getattr(each, name) for each in batch], dtype=torch.float32)
            for name in ("log_prob", "value", "advantage")
        )
        returns = advantages + values
        for _ in range(EPOCHS):
            for rows in minibatches(len(batch)):
                log_probs = self.network.log_probs(obs[rows], legal[rows])
                ratio = (log_probs.gather(1, actions[rows, None])[:, 0] - before[rows]).exp()
                gain = (advantages[rows] - advantages[rows].mean()) / (advantages[rows].std() + 1e-8)
                policy = torch.max(-gain * ratio, -gain * ratio.clamp(1 - CLIP, 1 + CLIP)).mean()
                now = self.network.critic(obs[rows])[:, 0]
                near = values[rows] + (now - values[rows]).clamp(-CLIP, CLIP)
                value = 0.5 * torch.max((now - returns[rows]) ** 2, (near - returns[rows]) ** 2).mean()
                entropy = -(log_probs.exp() * log_probs.clamp(min=-50.0)).sum(dim=1).mean()
                loss = policy - ENTROPY * entropy + VALUE * value
                self._optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(self.network.parameters(), MAX_NORM)
                self._optimizer.step()


def minibatches(size: int) -> list[Tensor]:
    """Numbers of decisions in random order, whole minibatches alone: advantages of a single one have no deviation."""
    return list(torch.split(torch.randperm(size)[: size // MINIBATCH * MINIBATCH], MINIBATCH))


def main() -> None:
    """Train as ordered."""
    torch.set_num_threads(1)
    order = order_given()
    trainer = Trainer(order)
    trainer.train(lambda: order.share)
    order.finish(
        dense_layers(list(trainer.network.actor)), squash="tanh", figures={"decisions": float(trainer.decisions)}
    )


if __name__ == "__main__":
    main()
