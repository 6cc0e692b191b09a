"""`league.League`: whom a trainer of the user's own meets next, and what its games mean for the league.

It gives the commands that the daemon gives, to the same core, and keeps the same journal and run folder. Nothing is
handed out before it is durable.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from numpy.typing import ArrayLike

from league.core.metagame.ratings import RatingRow, league_ratings
from league.core.quarantine import restart_sources
from league.core.state.commands import (
    Command,
    ConfirmReset,
    ConfirmSnapshot,
    ExpireLease,
    FinishLease,
    Refused,
    ReportProgress,
    RequestLease,
    RequestSnapshot,
    StartRun,
    StopRun,
)
from league.core.state.records import Directive, DirectiveKind, Lease, Progress
from league.core.state.state import LeagueState, PlayerState
from league.envs.registry import GivenGame
from league.errors import LeagueError, MissingSnapshot
from league.policies.kept_snapshots import KeptSnapshots
from league.run.commander import Commander
from league.run.own_trainer.granted_match import GrantedMatch, counted, returns_of, seated
from league.run.own_trainer.opening import ONE_MAIN_AGENT, Asked, opened
from league.run.own_trainer.trainer_files import TrainerFiles
from league.store.lock import this_process
from league.store.run_folder import RunStatus
from league.store.snapshots import LocalSnapshotStore
from league.store.storage import Storage

OWN_HOST = "own-trainer"
"""Host of the leases, as the journal names it."""
MANUAL = "manual"
"""Reason of a snapshot that no gate asked for."""
HEARTBEAT_S = 1.0


class League:
    """A league in the user's own process and thread; one process at a time has its folder.

    Args:
      folder: made where it is not there, else continued; `league status`, the page and ratings read it.
      env: the game: an id, a function or class that makes it, or EnvConfig. It is not played here.
      settings: the `league:` section of a configuration; one main agent by default.
      seed: of the league's draws.
      loader: "path/file.py:attribute" that makes a bot of a snapshot's file, called with (path, seed=...), so that
        tournaments play the snapshots; empty where none is needed.
      say: is given one sentence for the user now and then.
      storage: writes the files; None for this machine's file system.
    Raises:
      RunInUse: another process has the folder.
      LeagueError, EnvError: the settings or the game do not fit, or not the league that lies there.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        env: GivenGame,
        settings: Mapping[str, Any] = ONE_MAIN_AGENT,
        seed: int = 0,
        loader: str = "",
        say: Callable[[str], object] = print,
        storage: Storage | None = None,
    ) -> None:
        asked = Asked.of(env, settings=settings, seed=seed, loader=loader)
        run = opened(Path(folder), asked, storage=storage)
        self._folder, self._league = run.folder, run.league
        self._started_at, self._written = time.time(), -HEARTBEAT_S
        with contextlib.ExitStack() as held:
            held.enter_context(run.held)
            store = LocalSnapshotStore(run.folder.snapshots_path, storage=run.folder.storage)
            store.sweep()
            self._files = TrainerFiles(run.config, store, warn=say)
            self._commander = Commander(run.league)
            self._snapshots: KeptSnapshots[Path] = KeptSnapshots(
                self._files, league=run.league, ask=self._commander.ask
            )
            for note in run.league.notes:
                say(note)
            self._demand(StartRun())
            self._snapshots.take_back_mended()
            self._act()
            self._held = held.pop_all()

    @property
    def players(self) -> tuple[str, ...]:
        """Names of the players."""
        return tuple(self._state.players)

    @property
    def games(self) -> int:
        """Games reported so far."""
        return self._state.totals.games

    def ratings(self) -> tuple[RatingRow, ...]:
        """The ratings of all frozen policies, as `league ratings` shows them."""
        return tuple(league_ratings(self._state))

    def restore(self, player: str) -> Path | None:
        """The file with which a player's training begins or continues; None for new weights.

        What it learnt since that snapshot counts as lost. For a trainer that restores a checkpoint of its own, this is
        not needed.

        Raises:
          MissingSnapshot: no file of the player can be read any more.
        """
        known = self._player(player)
        for name in list(restart_sources(self._state, player)):
            path = self._snapshots.of(name)
            if path is not None:
                self._progress(known, self._snapshots.steps_at(player, name))
                self._act()
                return path
        self._act()
        if known.parent is None:
            return None
        raise MissingSnapshot(f"Nothing is left of {player} to start from: put one of its snapshots back.")

    def next_match(self, player: str = "") -> GrantedMatch:
        """Whom a player meets next, by its matchmaker.

        Args:
          player: that learns from it; empty for the one furthest behind its step weight.
        Raises:
          LeagueError: there is no such player, or its first snapshot is missing.
        """
        for name in (player,) if player else self.players:
            if self._open(name, DirectiveKind.SNAPSHOT) and self._player(name).initial is None:
                raise LeagueError(
                    f"{name} has no snapshot of its first weights yet: call add_snapshot({name!r}, path)."
                )
        return self._granted(RequestLease(OWN_HOST, "train", player=player))

    def rating_match(self) -> GrantedMatch | None:
        """Two frozen policies whose game says most about ratings; None before there are two that can meet."""
        if not self._state.is_competitive or len(self._state.population.frozen_present()) < 2:
            return None
        return self._granted(RequestLease(OWN_HOST, "rate"))

    def report(
        self, match: GrantedMatch, outcome: ArrayLike, *, env_steps: int | None = None, trained_steps: int | None = None
    ) -> bool:
        """Count the games of a match, once however often it is reported.

        Args:
          outcome: returns [G, S] of G games by seat; [S] of one game; or the match's player's in one game of two teams.
          env_steps: steps of these games; None for one a game.
          trained_steps: decisions that the player has learnt from since it began, by which gates go; None adds
            `env_steps`.
        Returns:
          Whether `add_snapshot` is due for the player.
        Raises:
          LeagueError: the match is of an earlier start of the league or was never granted, or the numbers do not fit.
        """
        if match.token != self._state.token:
            raise LeagueError(
                f"match {match.match_id} is of start {match.token} of this league, which is at start "
                f"{self._state.token}: its games count nothing; ask for another match."
            )
        if match.match_id in self._state.leases or match.match_id >= self._state.next_lease_id:
            returns = returns_of(match, outcome, teams=self._state.teams)
            steps = len(returns) if env_steps is None else env_steps
            outcomes = counted(match, returns, teams=self._state.teams, decisions=steps)
            commands: list[Command] = [FinishLease(match.match_id, match.token, steps, outcomes)]
            if match.player is not None:
                known = self._player(match.player)
                total = known.trained_steps + steps if trained_steps is None else trained_steps
                commands.append(ReportProgress(Progress(known.name, known.version + 1, total)))
            self._demand(*commands)
            self._act()
        return match.player is not None and self.snapshot_due(match.player)

    def give_up(self, match: GrantedMatch, reason: str = "given up") -> None:
        """Say that a match is not played; nothing where it was answered before."""
        if match.token == self._state.token and match.match_id in self._state.leases:
            self._demand(ExpireLease(match.match_id, reason))
            self._act()

    def snapshot_due(self, player: str) -> bool:
        """True if the league wants a snapshot of the player: its first one, or because its gate has fired."""
        return self._open(self._player(player).name, DirectiveKind.SNAPSHOT) is not None

    def add_snapshot(self, player: str, path: str | Path) -> Path | None:
        """Freeze a player's weights; due or not, they join the population.

        Args:
          path: a file in any form; the league keeps a copy.
        Returns:
          The file that the player's training starts again from, where the league resets it; else None.
        Raises:
          StorageError: the file cannot be read or stored; nothing has changed.
        """
        known = self._player(player)
        directive = self._open(player, DirectiveKind.SNAPSHOT)
        digest = self._files.put(Path(path), known, trained_steps=known.trained_steps)
        if directive is None:
            self._demand(RequestSnapshot(player, MANUAL))
            directive = self._open(player, DirectiveKind.SNAPSHOT)
            assert directive is not None
        self._demand(ConfirmSnapshot(directive.directive_id, digest, known.version, known.trained_steps))
        source = self._reset(player)
        self._act()
        return source

    def close(self) -> None:
        """Stop: open matches count nothing. May be called twice."""
        if self._folder.lock.held:
            with self._held:
                self._demand(StopRun("closed"))
                self._act()
                self._league.save_state()
                self._write_status("stopped")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def _state(self) -> LeagueState:
        return self._league.state

    def _player(self, name: str) -> PlayerState:
        if name not in self._state.players:
            raise LeagueError(f"there is no player {name!r}; there are {', '.join(self.players[:10])}.")
        return self._state.players[name]

    def _open(self, player: str, kind: DirectiveKind) -> Directive | None:
        return next((found for found in self._state.open_directives(player) if found.kind == kind), None)

    def _granted(self, request: RequestLease) -> GrantedMatch:
        """A lease as a match; one whose files cannot be had is given up for the next."""
        while True:
            self._demand(request)
            match = self._match_of(self._state.leases[self._state.next_lease_id - 1])
            self._act()
            if match is not None:
                return match

    def _match_of(self, lease: Lease) -> GrantedMatch | None:
        policies, files = seated(lease, seed=self._state.seed), {}
        for name in dict.fromkeys(policies):
            if name in self._state.snapshots:
                path = self._snapshots.of(name)
                if path is None:
                    self._demand(ExpireLease(lease.lease_id, f"the weights of {name} cannot be had"))
                    return None
                files[name] = path
        return GrantedMatch(lease.lease_id, lease.token, lease.home, policies, files)

    def _reset(self, player: str) -> Path | None:
        """The file of an open reset, which is confirmed; a source that is damaged is replaced by another."""
        while (directive := self._open(player, DirectiveKind.RESET)) is not None:
            assert directive.source is not None
            path = self._snapshots.of(directive.source)
            if path is not None:
                self._demand(ConfirmReset(directive.directive_id))
                return path
        return None

    def _progress(self, known: PlayerState, trained_steps: int) -> None:
        if known.trained_steps != trained_steps:
            self._demand(ReportProgress(Progress(known.name, known.version, trained_steps)))

    def _demand(self, *commands: Command) -> None:
        """Have the league decide on all of these or none. Raises LeagueError."""
        try:
            self._commander.demand(commands)
        except Refused as error:
            raise LeagueError(f"{error}.") from error

    def _act(self) -> None:
        """Make everything decided durable, then act on it."""
        while self._commander.waiting:
            for event in self._commander.take_durable():
                self._snapshots.keep_within_limits(event)
        if time.monotonic() - self._written >= HEARTBEAT_S:
            self._write_status("running")

    def _write_status(self, phase: str) -> None:
        totals = self._state.totals
        self._folder.write_status(
            RunStatus(
                daemon=this_process(self._folder.path),
                phase=phase,
                started_at=self._started_at,
                heartbeat_at=time.time(),
                journal_seq=self._league.durable_seq,
                games=totals.games,
                env_steps=totals.env_steps,
                players=len(self.players),
                snapshots=len(self._state.snapshots),
                message="closed" if phase == "stopped" else "",
            )
        )
        self._written = time.monotonic()
