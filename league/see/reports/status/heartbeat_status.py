"""The part of a run's status that only its daemon knows: whether it lives, what it has used, and what troubles it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

from league.store.run_folder import AlertStatus, RunFolder, WorkerStatus
from league.wording import duration_text

WORTH_TELLING_S = 60.0
"""Age of a live daemon's heartbeat above which it is reported: the daemon is busy or hangs."""


@dataclass(frozen=True)
class HeartbeatStatus:
    """A run's daemon as of its last heartbeat.

    Fields:
      live: whether the daemon runs; pid: of the daemon (of the last one where not live).
      phase: "starting", "running", "draining", "stopped" or "failed". "killed": it ended without a last heartbeat.
        "silent": it runs on another host and has not written for minutes.
      workers: its processes, empty where not live.
      steps_per_s: recent, 0 where not live. heartbeat_age_s: seconds since the daemon last wrote.
      message: why it stopped or failed.
      refused, hosts_lost: answers refused and hosts lost since the last start of the daemon.
      quarantined_games: games of its hosts that failed so often that they are not played any more.
      trained_s: seconds of training, budget_left: fraction of the budget in [0, 1], if the daemon reported one.
      parked: hosts that were lost so often that they are tried again only now and then; empty where not live.
      stuck: the call of an env that has not come back for long, with its game; empty for none and where not live.
      alerts: that have not recovered; empty where not live.
    """

    live: bool = False
    pid: int = 0
    phase: str = "stopped"
    workers: tuple[WorkerStatus, ...] = ()
    steps_per_s: float = 0.0
    heartbeat_age_s: float = 0.0
    message: str = ""
    refused: int = 0
    hosts_lost: int = 0
    quarantined_games: int = 0
    trained_s: float | None = None
    budget_left: float | None = None
    parked: tuple[str, ...] = ()
    stuck: str = ""
    alerts: tuple[AlertStatus, ...] = ()

    def text(self) -> str:
        """The phase, the daemon's process, and why it ended."""
        who = f"pid {self.pid}" if self.live else "not running"
        if self.pid and (not self.live or self.heartbeat_age_s > WORTH_TELLING_S):
            who += f", last heard of {duration_text(self.heartbeat_age_s)} ago"
        return f"{self.phase} ({who})" + (f", {self.message}" if self.message else "")

    def workers_text(self) -> str:
        """Its processes, empty for none."""
        return ", ".join(worker.text() for worker in self.workers)

    def amounts(self) -> Iterator[str]:
        """Yields the time trained and the budget that is left, where the daemon reported them."""
        if self.trained_s is not None:
            yield f"trained for {duration_text(self.trained_s)}"
        if self.budget_left is not None:
            yield f"{self.budget_left:.0%} of the budget left" + self._time_left(self.budget_left)

    def _time_left(self, budget_left: float) -> str:
        """The time until the budget is spent, at the pace so far; empty where nothing is spent now."""
        if not self.live or self.trained_s is None or not 0.0 < budget_left < 0.995:
            return ""
        return f", about {duration_text(self.trained_s * budget_left / (1.0 - budget_left))}"

    def trouble_lines(self) -> Iterator[str]:
        """Yields alerts, the call that does not come back, and parked hosts; nothing of a sound run."""
        for alert in self.alerts:
            age = duration_text(max(time.time() - alert.since, 0.0))
            yield f"alert {alert.alert} ({age} ago): {alert.text}"
        if self.stuck:
            yield f"stuck: {self.stuck}"
        if self.parked:
            yield f"parked, tried again every few minutes: {', '.join(self.parked)}; see logs/daemon.log"


def heartbeat_status(folder: RunFolder) -> HeartbeatStatus:
    """Reads the heartbeat of a run; of a daemon that is gone only what still holds."""
    status = folder.read_status()
    if status is None:
        return HeartbeatStatus()
    live = folder.is_live(status)
    return HeartbeatStatus(
        live=live,
        pid=status.daemon.pid,
        phase=folder.phase_of(status),
        workers=status.workers if live else (),
        steps_per_s=status.steps_per_s if live else 0.0,
        heartbeat_age_s=round(max(time.time() - status.heartbeat_at, 0.0), 1),
        message=status.message,
        refused=status.refused,
        hosts_lost=status.hosts_lost,
        quarantined_games=status.quarantined_games,
        trained_s=status.trained_s,
        budget_left=None if status.budget_spent is None else 1.0 - status.budget_spent,
        parked=status.parked if live else (),
        stuck=status.stuck if live else "",
        alerts=status.alerts if live else (),
    )
