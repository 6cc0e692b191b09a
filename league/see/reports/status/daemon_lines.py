"""The part of a run's status that only its daemon knows, in words: whether it lives, its budget, and its troubles."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict

from league.store.run_folder import RunAccount, Troubles
from league.wording import duration_text

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
