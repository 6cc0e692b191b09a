"""Records games while they are played: the actions of every step, and how each game ended."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import chain, compress

import msgspec
import numpy as np
from numpy.typing import NDArray

from league.agents.acting.policy import ActInputs, Evaluating, Evaluation, Policy
from league.envs.protocol import BatchedEnv, EnvConfig, EnvError, EnvSpec, Turn
from league.envs.registry import make
from league.judge.recording.replay import Decision, GameOutcome, RecordedEnv, Replay, SeatHolder, packed_actions
from league.policies.observation import within_bounds
from league.policies.policy_store import spec_hash

MAX_TURNS = 100_000
"""Turns after which a game without a stated bound counts as endless."""


class ReplayRecorder:
    """Games of an env, stepped through this object, from their reset until each has ended once.

    It is a `BatchedEnv` itself, whose caller closes the env. Before `opened` is called, a game that ends has not
    begun: its restart is what is recorded.

    Args:
      config: the game. env: its games.
    """

    def __init__(self, config: EnvConfig, env: BatchedEnv) -> None:
        self.spec, self.num_envs = env.spec, env.num_envs
        self._config, self._env = config, env
        self._seed = 0
        self._opening: int | None = None
        self._steps: list[NDArray[np.generic]] = []
        self._acting = np.zeros(0, np.int64)  # the game of each slot of the present turn
        self._games_of_steps: list[NDArray[np.int64]] = []
        self._decisions: list[Decision | None] = []
        self._starts = [0] * env.num_envs
        self._games: list[GameOutcome | None] = [None] * env.num_envs

    @property
    def complete(self) -> bool:
        """True once every game has ended."""
        return all(game is not None for game in self._games)

    def reset(self, seed: int) -> Turn:
        """Reset the env, and forget the games so far."""
        self._seed, self._opening, self._steps, self._decisions = seed, None, [], []
        self._starts, self._games, self._games_of_steps = [0] * self.num_envs, [None] * self.num_envs, []
        turn = self._env.reset(seed)
        self._acting = turn.env_index.copy()
        return turn

    def opened(self) -> None:
        """The steps so far were the opening, chosen by nobody."""
        self._opening = len(self._steps)

    def step(self, actions: NDArray[np.generic]) -> Turn:
        """Step the env, and note the actions."""
        return self.step_with(actions, [None] * len(actions))

    def step_with(self, actions: NDArray[np.generic], decisions: Sequence[Decision | None]) -> Turn:
        """As `step`. decisions: [K] what the policies thought before it."""
        taken = np.array(actions, copy=True)
        turn = self._env.step(actions)
        self._steps.append(taken)
        self._games_of_steps.append(self._acting)
        self._acting = turn.env_index.copy()
        self._decisions += decisions
        for game in np.flatnonzero(turn.ended).tolist():
            if self._opening is None:
                self._starts[game] = len(self._steps)
            elif self._games[game] is None:
                returns = tuple(float(value) for value in turn.returns[game])
                cut = bool(turn.truncated[game])
                self._games[game] = GameOutcome(len(self._steps), returns, cut, self._starts[game])
        return turn

    def close(self) -> None:
        """Close the env."""
        self._env.close()

    def replay(
        self, seats: Sequence[SeatHolder], *, tags: Mapping[str, str] | None = None, failed: Collection[int] = ()
    ) -> Replay:
        """The record; a game that has not ended was given up. failed: games that are left out of it."""
        nothing = GameOutcome(len(self._steps), (0.0,) * self.spec.num_seats, aborted=True)
        games = [nothing if game is None else game for game in self._games]
        is_kept = np.ones(self.num_envs, np.bool_)
        for game in failed:
            games[game], is_kept[game] = msgspec.structs.replace(nothing, steps=0), False
        kept = [is_kept[acting] for acting in self._games_of_steps]
        steps = [step[slots] for step, slots in zip(self._steps, kept, strict=True)]
        decisions = tuple(compress(self._decisions, chain.from_iterable(slots.tolist() for slots in kept)))
        dtype, shape, actions = packed_actions(steps, self.spec.actions)
        any_decision = any(decision is not None for decision in decisions)
        return Replay(
            env=recorded_env(self._config, self.spec),
            seed=self._seed,
            seats=tuple(seats),
            games=tuple(games),
            slots=tuple(len(step) for step in steps),
            action_dtype=dtype,
            action_shape=shape,
            actions=actions,
            opening=self._opening or 0,
            decisions=decisions if any_decision else (),
            tags=dict(tags or {}),
        )


def record_game(
    env_config: EnvConfig,
    policies: Sequence[Policy],
    seed: int,
    *,
    seats: Sequence[SeatHolder] | None = None,
    tags: Mapping[str, str] | None = None,
) -> Replay:
    """Play one game and record it, with the values and action probabilities of the policies that have them.

    Args:
      policies: [S] one for each seat; the same object may hold several.
      seed: of the game and of the sampled actions.
      seats: [S] who holds them; by default named "seat 0", ...
    Raises:
      EnvError: from the env, or its game does not end.
    """
    env = make(env_config, num_envs=1)
    try:
        num_seats = env.spec.num_seats
        if len(policies) != num_seats:
            raise ValueError(f"{env_config.id} has {num_seats} seats, {len(policies)} policies were given")
        recorder, rng = ReplayRecorder(env_config, env), np.random.default_rng([seed, 1])
        turn = recorder.reset(seed)
        recorder.opened()
        core = [np.zeros((1, int(getattr(policy, "core_size", 0))), np.float32) for policy in policies]
        for _ in range(env.spec.max_turns or MAX_TURNS):
            decisions = evaluations(env, turn, policies, core)
            turn = recorder.step_with(act(env, turn, policies, core, rng), decisions)
            if recorder.complete:
                held = seats if seats is not None else [SeatHolder(f"seat {seat}") for seat in range(num_seats)]
                return recorder.replay(held, tags=tags)
    finally:
        env.close()
    raise EnvError(f"{env_config.id}: the game has not ended after {env.spec.max_turns or MAX_TURNS} turns")


def act(
    env: BatchedEnv,
    turn: Turn,
    policies: Sequence[Policy | None],
    core: list[NDArray[np.float32]],
    rng: np.random.Generator,
) -> NDArray[np.generic]:
    """The actions [K, ...] of the only game of an env; 0 for slots of seats that have no policy.

    core: [S] core state [1, C] of each seat, moved on in place.
    """
    chosen: list[NDArray[np.generic] | None] = []
    for slot, seat in enumerate(turn.seat.tolist()):
        policy = policies[seat]
        if policy is None:
            chosen.append(None)
            continue
        choice = policy.act(ActInputs(env, turn, np.array([slot]), core[seat]), rng)
        core[seat] = choice.core
        chosen.append(within_bounds(env.spec, choice.actions)[0])
    spec = env.spec.actions
    dtype = np.float32 if spec.kind == "box" else np.int64
    blank = np.zeros(() if spec.kind == "categorical" else spec.shape, dtype)
    return np.stack([blank if action is None else np.asarray(action, dtype) for action in chosen])


def evaluations(
    env: BatchedEnv, turn: Turn, policies: Sequence[Policy | None], core: Sequence[NDArray[np.float32]]
) -> list[Decision | None]:
    """[K] what the policy of each slot thinks; None for those that say nothing. Arguments as of `act`."""
    found: list[Decision | None] = []
    for slot, seat in enumerate(turn.seat.tolist()):
        policy = policies[seat]
        if isinstance(policy, Evaluating):
            found.append(decision_of(policy.evaluate(ActInputs(env, turn, np.array([slot]), core[seat]))))
        else:
            found.append(None)
    return found


def decision_of(evaluation: Evaluation) -> Decision:
    """The first slot of an evaluation, rounded: it is for people."""
    value = float(evaluation.values[0])
    probs = () if evaluation.probs is None else tuple(round(float(p), 4) for p in evaluation.probs[0])
    return Decision(None if np.isnan(value) else round(value, 4), probs)


def recorded_env(config: EnvConfig, spec: EnvSpec) -> RecordedEnv:
    """The record of a game."""
    return RecordedEnv(
        config.id, spec_hash(spec), dict(config.kwargs), teams=config.teams, policies=dict(config.policies)
    )
