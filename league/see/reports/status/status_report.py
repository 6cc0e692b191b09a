"""The status of a run: its daemon, its league, its supervisor, and the settings that were chosen for it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from league.config.commented import chosen_in
from league.core.player_account import PlayerAccount
from league.envs.text.number_text import number_text
from league.json_report import JsonReport
from league.see.reports.status.league_status import LeagueStatus, league_status
from league.see.reports.status.run_size import disk_bytes
from league.store.journaled_league import state_of_run
from league.store.run_folder import RunAccount, RunFolder, Troubles
from league.store.supervision import read_supervision
from league.wording import counted, duration_text, noun_for, seat_text, setting_text, size_text

SCREEN_LINES = 23
"""Of a terminal of 24, under the command itself."""


@dataclass(frozen=True)
class SupervisionStatus:
    """A run's supervisor.

    Fields:
      supervised: whether a supervisor starts it again after a crash. restarts: how often it did since `league up`;
        last_crash: what ended the run then. gave_up: why the supervisor does so no more.
    """

    supervised: bool = False
    restarts: int = 0
    last_crash: str = ""
    gave_up: str = ""

    def lines(self) -> Iterator[str]:
        """Yields how often the run was started again; nothing of a run that was never supervised."""
        if not (self.supervised or self.restarts or self.gave_up):
            return
        times = "restarted once" if self.restarts == 1 else f"restarted {self.restarts} times"
        text = f"supervised, {times}" if self.supervised else f"was supervised, {times}"
        text += f", last after {self.last_crash}" if self.last_crash else ""
        yield text + (f"; given up, as {self.gave_up}" if self.gave_up else "")


@dataclass(frozen=True)
class StatusReport(JsonReport):
    """A run as of now. In JSON the fields of its three parts stand side by side.

    Fields:
      run: its folder. daemon: as of its last heartbeat. disk_bytes: what the folder takes.
      settings: dotted key -> value and reason, of the settings that were chosen for the game and the budget.
    """

    run: str
    daemon: RunAccount
    league: LeagueStatus
    supervision: SupervisionStatus = SupervisionStatus()
    disk_bytes: int = 0
    settings: Mapping[str, tuple[object, str]] = field(default_factory=dict)

    def json_fields(self) -> Mapping[str, object]:
        """All fields, those of the parts beside the others."""
        fields = asdict(self)
        del fields["daemon"]
        parts = [daemon_fields(self.daemon), *(fields.pop(name) for name in ("league", "supervision"))]
        return {**fields, **{key: value for part in parts for key, value in part.items()}}

    def settings_text(self) -> str:
        """The chosen settings with their reasons, for people; empty if there are none."""
        if not self.settings:
            return ""
        rows = [f"  {key} = {setting_text(value)}  ({reason})" for key, (value, reason) in self.settings.items()]
        return "\n".join(["chosen for this game and budget (`league explain` tells more):", *rows])

    def text(self) -> str:
        return "\n".join(self._lines())

    def screen(self, *, width: int = 80) -> str:
        """For people, as many lines of this width as a terminal has; the rest of a large league is left out."""
        lines, shown = list(self._lines()), list[str]()
        end = f"{counted(len(self.settings), 'setting')} chosen for it: `league status {self.run} --settings`"
        ends = [end] if self.settings else []
        room = SCREEN_LINES - sum(_height(line, width) for line in ends)
        if sum(_height(line, width) for line in lines) > room:
            for number, line in enumerate(lines):
                room -= _height(line, width)
                if room < 1:
                    shown.append(f"  ... {counted(len(lines) - number, 'more line')}: --settings or --json")
                    break
                shown.append(line)
        return "\n".join([*(shown or lines), *ends])

    def _lines(self) -> Iterator[str]:
        league, status = self.league, self.daemon.status
        workers = ", ".join(worker.text() for worker in status.workers)
        speed = f", {status.steps_per_s:,.0f} steps/s" if self.daemon.live else ""
        yield f"{self.run}: {daemon_text(self.daemon)}"
        yield (
            f"{league.games_text()}{speed}, {counted(league.snapshots, 'snapshot')}"
            + (f"; workers: {workers}" if workers else "")
        )
        yield f"counts {league.counts}"
        yield ", ".join([*amounts(self.daemon), f"{size_text(self.disk_bytes)} on disk"])
        troubles = [f"{counted(number, noun)} {what}" for number, noun, what in self._troubles() if number]
        if troubles:
            yield ", ".join(troubles)
        yield from self.supervision.lines()
        if league.paused:
            yield f"training is paused by {league.paused}"
        yield from trouble_lines(self.daemon)
        yield from league.policy_lines()
        for player in league.players:
            yield from player_lines(player, self.daemon.status.seat_names)

    def _troubles(self) -> Iterator[tuple[int, str, str]]:
        """Yields how many of something there are, its noun, and what happened to them."""
        yield self.league.truncated, "game", "ended by a time limit"
        yield self.league.aborted, "game", "thrown away"
        yield self.daemon.status.quarantined_games, "game", "not played any more after three failures"
        yield self.daemon.status.refused, "answer", "refused"
        yield self.daemon.status.hosts_lost, "host", "lost"


def _height(line: str, width: int) -> int:
    """Lines of a terminal that a line of text takes."""
    return max(-(-len(line) // width), 1)


def read_status(path: Path) -> StatusReport:
    """The status of a run, also of a live one.

    Raises:
      MissingRun, JournalError, StorageError.
    """
    folder = RunFolder.open(path)
    account = folder.account()
    return StatusReport(
        run=str(path),
        daemon=account,
        league=league_status(state_of_run(folder), folder),
        supervision=_supervision_status(folder),
        disk_bytes=disk_bytes(folder.path),
        settings=chosen_in(folder.read_config()),
    )


def _supervision_status(folder: RunFolder) -> SupervisionStatus:
    record = read_supervision(folder)
    if record is None:
        return SupervisionStatus()
    return SupervisionStatus(record.is_alive(folder), record.restarts, record.last_crash, record.gave_up)


def player_lines(player: PlayerAccount, seat_names: Sequence[str]) -> Iterator[str]:
    """Yields a row of the table of players, and its last games if there were any. seat_names: of the game, or none."""
    yield (
        f"  {player.player:<24} {player.role:<18} version {player.version:>7,}  "
        f"{player.trained_steps:>13,} trained steps  "
        f"{player.games:>10,} {noun_for(player.games, 'game'):<5}  "
        f"{player.snapshots:>4} {noun_for(player.snapshots, 'snapshot'):<9}  "
        f"{player.resets:>3} {noun_for(player.resets, 'reset'):<6}  "
    ) + ("unrated" if player.rating is None else f"{player.rating:+z.0f} Elo")
    if player.mean_return is not None:
        yield f"    lately {', '.join(_last_games(player, player.mean_return, seat_names))}"


def _last_games(player: PlayerAccount, mean_return: float, seat_names: Sequence[str]) -> Iterator[str]:
    seats = [f"{seat_text(seat_names, seat)} {number_text(mean, 4)}" for seat, mean in enumerate(player.seat_returns)]
    yield f"return {number_text(mean_return, 4)}" + (f" ({', '.join(seats)})" if len(seats) > 1 else "")
    yield f"{player.episode_length:.1f} decisions an episode"
    if player.score is not None:
        yield f"score {player.score:.2f}"
    if player.lost_steps:
        yield f"{player.lost_steps:,} trained steps lost"


WORTH_TELLING_S = 60.0
"""Age of a live daemon's heartbeat above which it is reported: the daemon is busy or hangs."""
SHOWN = ("phase", "workers", "steps_per_s", "message", "trained_s", "alerts")
"""Fields of the heartbeat in `league status --json`, with the troubles; totals there are the journal's."""


def daemon_text(account: RunAccount) -> str:
    """The phase, the daemon's process, and why it ended."""
    status = account.status
    who = f"pid {status.daemon.pid}" if account.live else "not running"
    if account.began and (not account.live or account.age_s > WORTH_TELLING_S):
        who += f", last heard of {duration_text(round(account.age_s, 1))} ago"
    return f"{status.phase} ({who})" + (f", {status.message}" if status.message else "")


def amounts(account: RunAccount) -> Iterator[str]:
    """Yields the time trained and the budget that is left, where the daemon reported them."""
    trained_s, left = account.status.trained_s, budget_left(account)
    if trained_s is not None:
        yield f"trained for {duration_text(trained_s)}"
    if left is None:
        return
    known = f"{left:.0%} of the budget left"
    if account.left_s:
        known += f", about {duration_text(account.left_s)}"
    yield known


def budget_left(account: RunAccount) -> float | None:
    """Fraction of the budget in [0, 1] that is left; None before the daemon has reported one."""
    spent = account.status.budget_spent
    return None if spent is None else 1.0 - spent


def trouble_lines(account: RunAccount) -> Iterator[str]:
    """Yields alerts, the call that does not come back, and parked hosts; nothing of a sound run."""
    for alert in account.status.alerts:
        age = duration_text(max(time.time() - alert.since, 0.0))
        yield f"alert {alert.alert} ({age} ago): {alert.text}"
    if account.status.stuck:
        yield f"stuck: {account.status.stuck}"
    if account.status.parked:
        yield f"parked, tried again every few minutes: {', '.join(account.status.parked)}; see logs/daemon.log"


def daemon_fields(account: RunAccount) -> Mapping[str, object]:
    """The daemon in JSON."""
    fields = asdict(account.status)
    return {
        "live": account.live,
        "pid": account.status.daemon.pid,
        "heartbeat_age_s": round(account.age_s, 1),
        "budget_left": budget_left(account),
        **{name: fields[name] for name in (*SHOWN, *Troubles.__dataclass_fields__)},
    }
