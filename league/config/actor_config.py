"""The settings of actor hosts: how many games, and where they are played and decided."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from league.agents.acting.kinds.config import DEFAULT_ACTING
from league.envs.component_choice import Component


@dataclass(frozen=True)
class ActorConfig:
    """The actor hosts.

    Fields:
      num_envs: games that one actor host steps together.
      inference: where policies decide: "local" in each actor host, on its core; "central" in one inference host for
        all actor hosts of the machine, on a GPU where there is one.
      num_splits: parts of the games, 1 or 2. Two take turns: while one waits for decisions or processes of games, the
        other is decided or stepped.
      games: where games are played: "host" in arrays, "device" as tensors beside policies and learner, on a GPU where
        there is one. "device" is for built-in games and `runtime.kind: inprocess`.
      wait_for_update: whether an actor host waits until its unrolls are learnt from, as in A2C, and does not play on
        with the old weights. It plays on where all wait and their rows make no whole batch. One process always waits.
      acting: how the networks of players act: "sample" from the head's own distribution, "epsilon_greedy" on the
        values of head q_values, "gaussian" around the action of head deterministic; or "module:attribute" of your
        own, or a mapping of its name as `kind` and its options.
      acting_frozen: the same of frozen policies, as opponents and in rating games. Without any noise they would replay
        one game for ever, and its copies would count as evidence.
    """

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012

    num_envs: int = 256
    inference: Literal["local", "central"] = "local"
    num_splits: int = 1
    games: Literal["host", "device"] = "host"
    wait_for_update: bool = False
    acting: Component = DEFAULT_ACTING
    acting_frozen: Component = DEFAULT_ACTING
