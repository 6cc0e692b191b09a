"""The overview: what a run does, whether it is healthy, and whether it gets stronger."""

from __future__ import annotations

import msgspec

from league.core.metagame.ratings import RatingRow, strongest
from league.core.scouting import population_of
from league.core.state.state import LeagueState
from league.run.monitor import names
from league.see.page.page_parts import NoQuery
from league.see.page.runs.expected_probe import expected_probe
from league.see.page.runs.metric_history import MetricSeries
from league.see.page.runs.opened_run import OpenedRun
from league.see.reports.figures.ratings_over_time import RatingsOverTime, ratings_over_time
from league.see.reports.figures.verdict import LeagueVerdict, strength_verdict
from league.see.reports.figures.yardsticks import YardstickFigures, yardsticks
from league.store.run_folder import AlertStatus, RunAccount
from league.store.supervision import read_supervision
from league.wording import counted, duration_text

SILENT_S = 30.0
"""Age of a live daemon's heartbeat above which it counts as unhealthy, as at the control door."""
LOW_DISK_BYTES = 1 << 30


class HealthSign(msgspec.Struct, frozen=True):
    """One sign of health. kind: "good", "warn" or "bad". text: one sentence; evidence: figures, may be empty."""

    kind: str
    text: str
    evidence: str = ""


class Overview(msgspec.Struct, frozen=True):
    """The overview.

    Fields:
      run: its folder. name, game: of the configuration. phase, is_live, message: as in `league status`.
      seq: the last event behind all this.
      budget_spent: fraction in [0, 1], None where unknown. trained_s: seconds of training, None where unknown.
      steps_per_s: recent, 0 where the run is not live.
      best: the snapshot whose rating is surest to be high; None before the first rated game.
      stronger, health, doing: the three verdicts. speed: over time. checks: signs of health, the worst first.
      ratings: None until they are computed. yardsticks: see there.
      expected: where there is none yet, when the first probe comes.
      counts: what the games count by.
    """

    run: str
    name: str
    game: str
    phase: str
    is_live: bool
    message: str
    stronger: LeagueVerdict
    health: LeagueVerdict
    doing: LeagueVerdict
    seq: int
    games: int
    env_steps: int
    players: int
    snapshots: int
    workers: int
    budget_spent: float | None
    trained_s: float | None
    steps_per_s: float
    best: RatingRow | None
    ratings: RatingsOverTime | None
    speed: MetricSeries
    checks: tuple[HealthSign, ...]
    yardsticks: YardstickFigures
    expected: str
    counts: str
    heartbeat_at: float


def read(run: OpenedRun, query: NoQuery) -> Overview:
    """The overview of a run."""
    state, account = run.state, run.account
    status = account.status
    config = run.config
    env = config.get("env")
    ratings = run.ratings.value or ()
    found, fixed = checks(run, account), yardsticks(state)
    return Overview(
        run=str(run.path),
        name=str(config.get("name", run.id)),
        game=str(env.get("id", "")) if isinstance(env, dict) else str(env or ""),
        phase=status.phase,
        is_live=account.live,
        message=status.message,
        stronger=strength_verdict(state, fixed),
        health=_health(account, found),
        doing=_doing(run, account),
        seq=run.seq,
        games=state.totals.games,
        env_steps=state.totals.env_steps,
        players=len(state.players),
        snapshots=len(state.snapshots),
        workers=len(status.workers),
        budget_spent=status.budget_spent,
        trained_s=status.trained_s,
        steps_per_s=status.steps_per_s,
        best=strongest(tuple(row for row in ratings if row.games)),
        ratings=ratings_over_time(state, ratings) if ratings else None,
        speed=run.metrics.series(names.STEPS_PER_S.name),
        checks=found,
        yardsticks=fixed,
        expected=expected_probe(run),
        counts=state.counts,
        heartbeat_at=status.heartbeat_at,
    )


def checks(run: OpenedRun, account: RunAccount) -> tuple[HealthSign, ...]:
    """Signs of health of a run, the worst first."""
    found = [*_daemon_checks(run, account), *_league_checks(run)]
    if all(check.kind == "good" for check in found) and account.live:
        found.append(HealthSign("good", "No alert is open."))
    order = ("bad", "warn", "good")
    return tuple(sorted(found, key=lambda check: order.index(check.kind)))


def _daemon_checks(run: OpenedRun, account: RunAccount) -> list[HealthSign]:
    status, found = account.status, []
    if run.trouble:
        found.append(HealthSign("bad", run.trouble))
    if not account.began:
        return [*found, HealthSign("warn", "The run has not started yet.")]
    if account.live:
        kind = "good" if account.age_s < SILENT_S else "bad"
        text = "The daemon answers." if kind == "good" else "The daemon is silent."
        found.append(HealthSign(kind, text, f"{account.age_s:.0f} s"))
    elif status.phase in ("failed", "killed", "silent"):
        found.append(HealthSign("bad", f"The run is {status.phase}.", status.message))
    else:
        found.append(HealthSign("good", f"The run is {status.phase}, in an orderly way.", status.message))
    supervision = read_supervision(run.folder)
    if supervision is not None and supervision.gave_up:
        found.append(HealthSign("bad", "The supervisor has given the run up.", supervision.gave_up))
    elif supervision is not None and supervision.restarts:
        times = "once" if supervision.restarts == 1 else f"{supervision.restarts} times"
        found.append(HealthSign("warn", f"The run was restarted {times}.", supervision.last_crash))
    found += [HealthSign("bad", _alert_text(alert), alert.alert) for alert in status.alerts]
    if status.stuck:
        found.append(HealthSign("bad", "A call of the game does not come back.", status.stuck))
    if status.parked:
        found.append(HealthSign("warn", "Hosts were lost again and again.", ", ".join(status.parked)))
    return found


def _alert_text(alert: AlertStatus) -> str:
    return f"{alert.text[:1].upper()}{alert.text[1:].rstrip('.')}."


def _league_checks(run: OpenedRun) -> list[HealthSign]:
    state, last, found = run.state, run.metrics.last, []
    if state.training_paused:
        pause = state.training_pause
        who = "" if pause is None else f"by {pause.by}" + (f": {pause.reason}" if pause.reason else "")
        found.append(HealthSign("warn", "Training is paused.", who))
    found += population_signs(state)
    if state.totals.aborted:
        share = state.totals.aborted / max(state.totals.games + state.totals.aborted, 1)
        found.append(HealthSign("bad" if share > 0.01 else "warn", "Games were thrown away.", f"{share:.2%} of all"))
    free = None if last is None else last.values.get(names.DISK_FREE.name)
    if free is not None and free < LOW_DISK_BYTES:
        found.append(HealthSign("bad", "The disk is nearly full.", f"{free / (1 << 20):,.0f} MiB are free"))
    skipped = 0.0 if last is None else sum(last.values.get(names.SKIPPED.of(player), 0.0) for player in state.players)
    if skipped:
        found.append(HealthSign("warn", "Updates were skipped as they were not finite.", f"{skipped:,.0f} updates"))
    return found


def population_signs(state: LeagueState) -> list[HealthSign]:
    """The population that was chosen by measurement, with the numbers; none where it was given."""
    population, reason = population_of(state)
    return [HealthSign("good", f"The population by measurement: {population}.", reason)] if population else []


def _health(account: RunAccount, found: tuple[HealthSign, ...]) -> LeagueVerdict:
    """The worst sign of health as an answer."""
    amiss = [check for check in found if check.kind != "good"]
    if not amiss:
        text = "Yes: no alert is open." if account.live else found[0].text
        return LeagueVerdict("good", text, found[0].evidence if not account.live else "")
    more = f"{counted(len(amiss) - 1, 'further sign')} below." if len(amiss) > 1 else ""
    answer = "No" if amiss[0].kind == "bad" else "Look"
    evidence = f" ({amiss[0].evidence})" if amiss[0].evidence else ""
    return LeagueVerdict(amiss[0].kind, f"{answer}: {_lower(amiss[0].text).rstrip('.')}{evidence}.", more)


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def _doing(run: OpenedRun, account: RunAccount) -> LeagueVerdict:
    """The work of the league now, and how long it has to go at the pace so far."""
    state, status = run.state, account.status
    spent = status.budget_spent
    if not account.live:
        part = "" if spent is None else f"{spent:.0%} of the budget is spent."
        return LeagueVerdict("plain", f"Nothing: the run is {status.phase}.", part)
    if state.training_paused:
        return LeagueVerdict("warn", "Nothing: training is paused.")
    text = f"It {' and '.join(_work(run)) or 'is ' + status.phase}."
    if spent is None or not status.trained_s:
        return LeagueVerdict("plain", text)
    if not spent:
        return LeagueVerdict("plain", text, "None of the budget is spent yet.")
    left = "" if account.left_s is None else f"; about {duration_text(account.left_s)} to go"
    return LeagueVerdict("plain", text, f"{spent:.0%} of the budget is spent{left}.")


def _work(run: OpenedRun) -> list[str]:
    homes = [lease.home for lease in run.state.leases.values()]
    training = sorted({home for home in homes if home is not None})
    rating = sum(home is None for home in homes)
    parts = []
    if training:
        shown = ", ".join(training[:3]) + (f" and {len(training) - 3} more" if len(training) > 3 else "")
        parts.append(f"trains {shown}")
    if rating:
        parts.append(f"plays rating matches on {counted(rating, 'host')}")
    return parts
