"""A policy as an opponent in loops of PettingZoo, and a game against it as an env of Gymnasium."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, overload

from league.deploy.serving.served_policy import ServedPolicy
from league.deploy.serving.wire import ActRequest, State
from league.envs.adapters.single_seat import ALTERNATE, SingleSeatEnv
from league.envs.protocol import EnvConfig
from league.envs.registry import spec_of
from league.policies.exact.load_policy import load_policy
from league.policies.loading import PolicyMismatch
from league.policies.observation import Observation
from league.policies.policy_store import spec_hash
from league.policies.source_text import parse_source


class PolicyOpponent:
    """A policy that plays any number of seats of one game at a time, each with a memory of its own.

    Args:
      policy: shared with nobody.
    """

    def __init__(self, policy: ServedPolicy) -> None:
        self.policy = policy
        self._states: dict[str | int | None, State] = {}

    def reset(self, seed: int | None = None) -> None:
        """Begin a game. seed: of its draws; None lets the last stream run on."""
        self._states.clear()
        if seed is not None:
            self.policy.reseed(seed)

    def act(self, observation: Observation, mask: Observation | None = None, *, seat: str | int | None = None) -> Any:
        """The action of a seat for what it sees now; arguments as of `LoadedPolicy.act`.

        Raises:
          ObservationMismatch: the observation or mask does not fit the game.
        """
        names, numbers = self.policy.spec.seat_names, range(self.policy.spec.num_seats)
        place = names.index(seat) if seat in names else seat  # else a name that only the caller's loop knows
        state = self._states.get(place)
        known = self.policy.first_state() if state is None else state
        row = self.policy.row(ActRequest(observation, mask, place if place in numbers else None), known)
        (decided,) = self.policy.decide([row])
        self._states[place] = decided.state
        return decided.answer.action


@overload
def as_opponent(
    contender: str | Path, *, env: None = None, greedy: bool = False, seed: int = 0, trust: bool = False
) -> PolicyOpponent: ...


@overload
def as_opponent(
    contender: str | Path,
    *,
    env: str | EnvConfig,
    seat: str | int = ALTERNATE,
    illegal: Literal["raise", "random"] = "raise",
    greedy: bool = False,
    seed: int = 0,
    trust: bool = False,
) -> SingleSeatEnv: ...


def as_opponent(
    contender: str | Path,
    *,
    env: str | EnvConfig | None = None,
    seat: str | int = ALTERNATE,
    illegal: Literal["raise", "random"] = "raise",
    greedy: bool = False,
    seed: int = 0,
    trust: bool = False,
) -> PolicyOpponent | SingleSeatEnv:
    """A policy to play or train against.

    Args:
      contender: "RUN:NAME", a run folder, the folder of a snapshot, or one that `league export` made.
      env: the game as an id or a configuration: the answer is a `gymnasium.Env` of one seat of it, the policy playing
        all other seats. None: the answer has `act(observation, mask, seat=...)` and `reset(seed)`, for own loops.
      seat, illegal: see `SingleSeatEnv`.
      greedy: whether the policy takes the likeliest action. seed: of its draws, until `reset` is given another.
      trust: whether to load code that the folder names, regardless of its author.
    Raises:
      LeagueError: no such policy, or it does not fit the game. EnvError: the game cannot be made.
    """
    path, name = parse_source(str(contender))
    if env is None:
        return PolicyOpponent(ServedPolicy(load_policy(path, name, trust=trust), greedy=greedy, seed=seed))
    config = EnvConfig(env) if isinstance(env, str) else env
    policy = load_policy(path, name, trust=trust, env=config)
    if spec_hash(policy.spec) != spec_hash(spec_of(config)):
        raise PolicyMismatch(f"{policy.name} plays {policy.spec.env_id}, which differs from {config.id}.")
    opponent = PolicyOpponent(ServedPolicy(policy, greedy=greedy, seed=seed, own_format=False))
    return SingleSeatEnv(config, opponent, seat=seat, illegal=illegal)
