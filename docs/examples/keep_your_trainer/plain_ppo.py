"""A plain PPO loop on PettingZoo's tic-tac-toe that meets the opponents of a league."""

import sys
from pathlib import Path

import numpy as np
import torch
from pettingzoo.classic import tictactoe_v3
from torch import nn

import league

GAMES, EPOCHS, CLIP, ENTROPY = 64, 4, 0.2, 0.02


def network():
    return nn.Sequential(nn.Flatten(), nn.Linear(18, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 10))


def choose(net, observation, mask):
    """Actions [K], their log-probabilities and the values, for observations [K, 3, 3, 2] and masks [K, 9]."""
    logits, value = net(torch.as_tensor(observation, dtype=torch.float32)).split([9, 1], dim=1)
    chances = torch.distributions.Categorical(logits=logits.masked_fill(~torch.as_tensor(mask), -1e9))
    return chances, value[:, 0]


def play(env, seats, rng):
    """One game of networks, or of random players where there is none. Returns the decisions of each, and the result."""
    env.reset()
    steps, total = ([], []), np.zeros(2)
    for name in env.agent_iter():
        observation, reward, ended, cut, _ = env.last()
        seat = env.agents.index(name) if len(env.agents) == 2 else int(name[-1]) - 1
        total[seat] += reward
        if ended or cut:
            env.step(None)
            continue
        board, mask = observation["observation"], observation["action_mask"].astype(bool)
        with torch.no_grad():
            chances, value = choose(seats[seat], board[None], mask[None])
            action = chances.sample()
        steps[seat].append((board, mask, int(action), float(chances.log_prob(action)), float(value)))
        env.step(int(action))
    return steps, total


def update(net, optimizer, rows):
    """PPO with the result of the game as the return of each of its decisions."""
    boards, masks, actions, old, values, returns = map(np.array, zip(*rows, strict=True))
    actions, old, returns = torch.tensor(actions), torch.tensor(old), torch.tensor(returns, dtype=torch.float32)
    advantages = returns - torch.tensor(values)
    advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    for _ in range(EPOCHS):
        chances, value = choose(net, boards, masks)
        ratio = (chances.log_prob(actions) - old).exp()
        gain = torch.min(ratio * advantages, ratio.clamp(1 - CLIP, 1 + CLIP) * advantages).mean()
        loss = -gain + 0.5 * (returns - value).pow(2).mean() - ENTROPY * chances.entropy().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def load(path):
    net = network()
    net.load_state_dict(torch.load(path, weights_only=True))
    return net


class Player:
    """A snapshot as a bot, by which `league tournament` plays it."""

    def __init__(self, path, *, seed):
        self.net, self.noise = load(path), torch.Generator().manual_seed(seed)

    def act(self, env, turn, slots):
        with torch.no_grad():
            chances, _ = choose(self.net, turn.obs["observation"][slots], turn.action_mask[slots])
        return torch.multinomial(chances.probs, 1, generator=self.noise)[:, 0].numpy()


def train(folder, matches, seed=0):
    torch.manual_seed(seed)
    rng, env, net, file = np.random.default_rng(seed), tictactoe_v3.raw_env(), network(), Path(folder) / "newest.pt"
    gate = {"min_steps": 2_000, "timeout_steps": 8_000}
    with league.League(
        folder,
        env="pettingzoo:classic/tictactoe_v3",
        settings={"players": [{"role": "main_agent", "gate": gate}]},
        loader=f"{Path(__file__).resolve()}:Player",
    ) as own:
        if (newest := own.restore("main-0")) is not None:
            net = load(newest)
        optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
        for _ in range(matches):
            if own.snapshot_due("main-0"):
                torch.save(net.state_dict(), file)
                own.add_snapshot("main-0", file)
            match = own.next_match("main-0")
            frozen = {name: load(path) for name, path in match.files.items()}
            games = [play(env, [frozen.get(name, net) for name in match.policies], rng) for _ in range(GAMES)]
            rows = [(*step, won[seat]) for steps, won in games for seat in match.seats for step in steps[seat]]
            update(net, optimizer, rows)
            moves = sum(len(seat) for steps, _ in games for seat in steps)
            own.report(match, [won for _, won in games], env_steps=moves)
            if (rating := own.rating_match()) is not None:
                seats = [load(rating.files[name]) for name in rating.policies]
                own.report(rating, [play(env, seats, rng)[1] for _ in range(4)])
        torch.save(net.state_dict(), file)
        own.add_snapshot("main-0", file)


if __name__ == "__main__":
    train("runs/own", matches=int(sys.argv[1]) if len(sys.argv) > 1 else 200)
