"""Probes of a league: which one is open, and what the ended ones found. Nothing else in the league looks at them."""

from __future__ import annotations

import math

import numpy as np

from league.core.state.commands import BeginProbe, EndProbe, Refused, SpendProbe
from league.core.state.events import Event
from league.core.state.probe_events import ProbeBegun, ProbeEnded, ProbeSpent
from league.core.state.records import ProbeTask
from league.core.state.state import LeagueState, ProbeResult

MAX_RESULTS = 1_000
"""Results that the state holds. Beyond it every second one of the older part goes; the journal has them all."""
KEPT_WHOLE = 0.5
"""Fraction of the results, at their newest end, of which none goes."""
MAX_READINGS = 64
MAX_TEXT = 500
"""Readings of one probe, and characters of a text in it."""


def begin_probe(state: LeagueState, command: BeginProbe, rng: np.random.Generator) -> list[Event]:
    """Open a probe.

    Raises:
      Refused: one is open already, or a snapshot is not there.
    """
    if state.probes.open is not None:
        raise Refused(f"probe {state.probes.open.number} is open")
    for name in (command.snapshot, *command.against):
        if not state.is_present(name):
            raise Refused(f"{name} is no snapshot whose weights are there")
    return [ProbeBegun(ProbeTask(state.probes.begun + 1, command.probe, command.snapshot, command.against))]


def spend_probe(state: LeagueState, command: SpendProbe, rng: np.random.Generator) -> list[Event]:
    """Note what an attempt at the open probe has used.

    Raises:
      Refused: the probe is not the open one, or the attempt would have used less than before.
    """
    task, known = state.probes.open, state.probes.open_core_seconds
    if task is None or task.number != command.number:
        raise Refused(f"probe {command.number} is not open")
    if not known <= command.core_seconds < math.inf:
        raise Refused(
            f"probe {command.number}: {command.core_seconds} core-seconds are less than {known}, or no number"
        )
    return [ProbeSpent(command.number, command.core_seconds, command.is_lost)]


def end_probe(state: LeagueState, command: EndProbe, rng: np.random.Generator) -> list[Event]:
    """Close the open probe.

    Raises:
      Refused: it is not the open one, so that none is counted twice; or what it brings is no result.
    """
    task, outcome = state.probes.open, command.outcome
    what = f"probe {outcome.number}"
    if task is None or task.number != outcome.number:
        raise Refused(f"{what} is not open")
    if outcome.core_seconds < 0.0 or outcome.start_core_seconds < 0.0:
        raise Refused(f"{what}: it took less than no time")
    if len(outcome.readings) > MAX_READINGS or bool(outcome.readings) == bool(outcome.problem):
        raise Refused(f"{what}: it has either a problem or 1 to {MAX_READINGS} readings")
    names = [reading.yardstick for reading in outcome.readings]
    texts = [text for reading in outcome.readings for text in (reading.note, reading.identity)]
    texts += [*names, outcome.problem, outcome.remark]
    if len(set(names)) < len(names) or max(map(len, texts)) > MAX_TEXT:
        raise Refused(f"{what}: a yardstick is named twice, or a text is too long")
    for reading in outcome.readings:
        if not reading.low <= reading.value <= reading.high or reading.games < 0:
            raise Refused(f"{what}: {reading.value} of {reading.yardstick} is not in its interval")
        if reading.scale == "score" and not 0.0 <= reading.value <= 1.0:
            raise Refused(f"{what}: {reading.value} of {reading.yardstick} is no score")
    return [ProbeEnded(outcome)]


def apply_begun(state: LeagueState, event: ProbeBegun) -> None:
    """The probe is open."""
    state.probes.begun = event.task.number
    state.probes.open = event.task
    state.probes.open_env_steps = state.totals.env_steps


def apply_spent(state: LeagueState, event: ProbeSpent) -> None:
    """The time of the attempt is known; that of an interrupted one counts at once."""
    probes = state.probes
    assert probes.open is not None
    if event.is_lost:
        probes.core_seconds += event.core_seconds
        probes.costs[probes.open.probe] = probes.costs.get(probes.open.probe, 0.0) + event.core_seconds
    probes.open_core_seconds = 0.0 if event.is_lost else event.core_seconds


def apply_ended(state: LeagueState, event: ProbeEnded) -> None:
    """The probe is over, and its cost counts, which includes what was known of its last attempt."""
    probes, task, outcome = state.probes, state.probes.open, event.outcome
    assert task is not None
    probes.open, probes.open_core_seconds = None, 0.0
    probes.core_seconds += outcome.core_seconds + outcome.start_core_seconds
    probes.costs[task.probe] = probes.costs.get(task.probe, 0.0) + outcome.core_seconds
    probes.failures[task.probe] = probes.failures.get(task.probe, 0) + 1 if outcome.problem else 0
    if outcome.unfit:
        probes.unfit[task.probe] = outcome.problem
    snapshot = state.snapshots[task.snapshot]
    result = ProbeResult(
        task=task,
        readings=outcome.readings,
        core_seconds=outcome.core_seconds,
        env_steps=probes.open_env_steps,
        trained_steps=snapshot.trained_steps,
        problem=outcome.problem,
        remark=outcome.remark,
    )
    probes.results = _thinned((*probes.results, result))


def _thinned(results: tuple[ProbeResult, ...]) -> tuple[ProbeResult, ...]:
    if len(results) <= MAX_RESULTS:
        return results
    older = len(results) - int(KEPT_WHOLE * len(results))
    return (*results[:older:2], *results[older:])
