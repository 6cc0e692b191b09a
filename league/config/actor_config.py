"""The settings of actor hosts: how many games, and where they are played and decided; and whose program trains."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from league.agents.acting.kinds.config import DEFAULT_ACTING
from league.core.state.league_config import LeagueConfig
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


@dataclass(frozen=True)
class TrainerConfig:
    """The program that trains the players and writes their snapshots.

    Fields:
      kind: "league", or "own" for a program of the user's that calls `league.League`.
      loader: of such a program, "module:attribute" or "path/file.py:attribute" that makes a bot of a snapshot's file,
        by which tournaments play it; see `league.judge.contenders.own_policies`.
    """

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012

    kind: Literal["league", "own"] = "league"
    loader: str = ""

    def problems(self, league: LeagueConfig) -> Iterator[str]:
        """Settings of a run that have no meaning beside its trainer, one sentence each that starts with its key."""
        if self.kind == "league":
            if self.loader:
                yield f"trainer.loader: {self.loader!r} has no meaning with trainer.kind: league; set kind: own"
            return
        if league.pbt.selection:
            yield "league.pbt.selection: PBT copies restart states of our learners; with trainer.kind own leave it out"
        for number, opponent in enumerate(league.fixed_opponents):
            if opponent.source:
                place = f"league.fixed_opponents.{number}.source"
                yield f"{place}: {opponent.policy} is for our actor hosts, and trainer.kind is own; name bots alone"
