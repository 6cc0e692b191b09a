"""The part of a run's status that its journal holds: games, snapshots, players, and what people have set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from league.core.metagame.meta_game import own_snapshots
from league.core.metagame.probe_series import newest_text
from league.core.metagame.ratings import league_ratings
from league.core.player_account import PlayerAccount, player_account
from league.core.quarantine import quarantined
from league.core.scouting import population_of
from league.core.state.state import LeagueState
from league.policies.auto_export import EXACT, EXPORTS, auto_choice
from league.policies.exact_file import read_exact
from league.store.run_folder import RunFolder
from league.wording import counted


@dataclass(frozen=True)
class LeagueStatus:
    """A league up to its last durable event.

    Fields:
      settling_steps: env steps of the rating games after training, which are not among `env_steps`.
      counts: what its games count by, see `league.core.state.scoring`.
      aborted, truncated: games thrown away because their env failed, and games that a time limit ended.
      set_aside: snapshots whose weights cannot be had.
      paused: who paused training and why; empty while it is not paused.
      tags: name -> snapshot. pins: snapshots whose weights are to stay.
      probes: newest value of each yardstick, and of which snapshot; empty before the first.
      auto: what is played where nobody names a policy, with the reason; empty before the first snapshot.
      exports: the other names that stand for policies of the run.
      population: the one that was chosen by measurement, with the reason; empty where it was given.
    """

    games: int
    env_steps: int
    settling_steps: int
    snapshots: int
    players: tuple[PlayerAccount, ...]
    counts: str
    aborted: int = 0
    truncated: int = 0
    set_aside: tuple[str, ...] = ()
    paused: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)
    pins: tuple[str, ...] = ()
    probes: str = ""
    auto: str = ""
    exports: tuple[str, ...] = ()
    population: str = ""

    def games_text(self) -> str:
        """Games and env steps, those of rating games apart."""
        settling = f" and {self.settling_steps:,} of rating games after training" if self.settling_steps else ""
        return f"{counted(self.games, 'game')}, {counted(self.env_steps, 'env step')}{settling}"

    def policy_lines(self) -> Iterator[str]:
        """Yields which snapshots are lost, kept or played, the chosen population, and what the probes measured."""
        if self.set_aside:
            yield f"snapshots set aside, as they cannot be read: {', '.join(self.set_aside)}"
        if self.tags or self.pins:
            yield "kept: " + ", ".join([*(f"{tag} = {name}" for tag, name in self.tags.items()), *self.pins])
        if self.population:
            yield f"population: {self.population}"
        if self.probes:
            yield f"probes: {self.probes}"
        if self.auto:
            yield f"auto is {self.auto}; also {', '.join(self.exports)}"


def league_status(state: LeagueState, folder: RunFolder) -> LeagueStatus:
    """The status of the league of a run."""
    ratings = {row.policy: row for row in league_ratings(state)}
    auto, exports = _exports(state, folder)
    return LeagueStatus(
        games=state.totals.games,
        env_steps=state.totals.env_steps,
        settling_steps=state.totals.settling_steps,
        snapshots=len(state.snapshots),
        players=tuple(player_account(state, player, ratings) for player in state.players.values()),
        counts=state.counts,
        aborted=state.totals.aborted,
        truncated=state.totals.truncated,
        set_aside=tuple(quarantined(state)),
        paused=_pause_text(state),
        tags=dict(state.tags),
        pins=state.pins,
        probes=newest_text(state),
        auto=auto,
        exports=exports,
        population=": ".join(filter(None, population_of(state))),
    )


def _pause_text(state: LeagueState) -> str:
    pause = state.training_pause
    return "" if pause is None else f"{pause.by or 'somebody'}" + (f": {pause.reason}" if pause.reason else "")


def _exports(state: LeagueState, folder: RunFolder) -> tuple[str, tuple[str, ...]]:
    """The export that is played where nobody names one with the reason, and the other ones that there are."""
    if not own_snapshots(state):
        return "", ()
    exact = read_exact(folder, state)
    name, reason = auto_choice(state, exact)
    has_exact = exact is not None and bool(exact.mixture)
    others = tuple(export for export in EXPORTS if export != name and (export != EXACT or has_exact))
    return f"{name}: {reason}", others
