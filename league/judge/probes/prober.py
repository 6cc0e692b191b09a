"""Runs the probes of a league beside its training: one at a time, in one niced process, within a share of the time.

Each kind of probe has an equal part of the share. One begins once its part allows what is left to spend, and only for a
snapshot that it has not measured. A probe is in the journal before it is acted on; one that a crash interrupts is run
again, and an answer counts once. What an attempt has used is in the journal too, from time to time, so that the time of
an interrupted one counts.
"""

from __future__ import annotations

import contextlib
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import msgspec

from league.config.run_config import ProbesConfig
from league.core.matchmaking.roles import MAIN_ROLE
from league.core.state.commands import BeginProbe, Command, EndProbe, SpendProbe
from league.core.state.records import ProbeOutcome, ProbeTask
from league.core.state.state import LeagueState
from league.judge.probes.first_probe import START_CORE_SECONDS
from league.judge.probes.probe import Probe, ProbeRequest, make_probes
from league.processes.line_worker import LineWorker, LineWorkerFailed
from league.processes.processor_time import children_cpu_seconds, cpu_seconds

NOTE_EVERY_S = 5.0
"""Time between two looks at what a running attempt has used, which is all that a crash can leave uncounted."""
MAX_FAILURES = 3
"""Failures in a row after which a probe is not asked again before the next start of the run."""
NICE = 15
MAX_ANSWER_BYTES = 1 << 18
MAX_PROBLEM = 400
NUMBER = re.compile(r"\d[\d.,]*")
"""Numbers vary in remarks that say the same, such as measured times."""
TRAINING = "training"

Ask = Callable[[Command], bool]
"""Has the league decide on a command; False where it is refused."""


class ProbeProcess:
    """The process that measures; started by its first request.

    Args:
      path: of the run folder. nice: by how much it gives way to others.
    """

    def __init__(self, path: Path, *, nice: int = NICE) -> None:
        self._path = path
        self._nice = nice
        self._process: LineWorker | None = None

    @property
    def pid(self) -> int | None:
        """The process, while there is one."""
        return None if self._process is None else self._process.pid

    @property
    def is_running(self) -> bool:
        """True if it has been started and not ended."""
        return self._process is not None

    @property
    def has_died(self) -> bool:
        """True if it ended by itself."""
        return self._process is not None and self._process.has_ended

    def ask(self, request: ProbeRequest) -> None:
        """Send a request; returns at once. Raises LineWorkerFailed where it cannot be started or is gone."""
        if self._process is None:
            self._process = LineWorker(
                [sys.executable, "-P", "-m", "league.judge.probes.worker", str(self._path), str(self._nice)],
                environment={"OMP_NUM_THREADS": "1"},
                max_line_bytes=MAX_ANSWER_BYTES,
            )
        self._process.send(msgspec.json.encode(request))

    def answer(self) -> ProbeOutcome | None:
        """The answer, once it is there. Raises LineWorkerFailed or ValueError for one that cannot be read."""
        lines = [] if self._process is None else self._process.lines()
        return msgspec.json.decode(lines[0], type=ProbeOutcome) if lines else None

    def last_words(self) -> str:
        """The last line of its errors."""
        return "" if self._process is None else self._process.last_words()

    def core_seconds(self) -> float:
        """Processor time that it and the programs that it started have used."""
        pid = self.pid
        return 0.0 if pid is None else cpu_seconds(pid) + children_cpu_seconds(pid)

    def end(self) -> None:
        """End the process and what it started; may be called twice."""
        process, self._process = self._process, None
        if process is not None:
            process.end()


class Prober:
    """Begins probes, takes their answers, and ends those that are overdue; `look` returns at once.

    Args:
      config: `probes:` of the run. process: measures; ended by `close`.
      state: of the league as the run starts.
      say: tells the user one sentence. monotonic: seconds that never go back.
    Raises:
      ValueError: a probe cannot be made.
    """

    def __init__(
        self,
        config: ProbesConfig,
        process: ProbeProcess,
        state: LeagueState,
        *,
        say: Callable[[str], object],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._config = config
        self._process = process
        self._probes: Mapping[str, Probe] = make_probes(config.kinds)
        self._failures = dict(state.probes.failures)
        self._say = say
        self._monotonic = monotonic
        self._start_s = START_CORE_SECONDS
        self._remarks: dict[str, str] = {}  # the last of each probe, without its numbers
        self._asked: tuple[ProbeTask, float, float] | None = None
        """The task, when it was asked, and the processor time of its process until then."""
        self._noted_s, self._used = 0.0, 0.0

    def look(self, state: LeagueState, core_seconds: float, *, ask: Ask, phase: str) -> None:
        """Do what is due. Only while the league trains a further probe begins.

        Args:
          core_seconds: processor time that the run has used.
          ask: has the league decide on a command. Its event becomes durable before the next look.
          phase: "training", "rating" or "draining".
        """
        task, begins = state.probes.open, phase == TRAINING
        if self._asked is not None:
            self._mind(*self._asked, ask)
            self._note(ask)
        elif task is not None and state.probes.open_core_seconds:
            ask(SpendProbe(task.number, state.probes.open_core_seconds, is_lost=True))
        elif task is not None and begins:
            self._request(state, task, core_seconds, ask)
        elif begins:
            command = self._due(state, core_seconds)
            if command is not None:
                ask(command)

    def close(self) -> None:
        """End the process; an open probe is run again by the next start."""
        self._process.end()

    def _due(self, state: LeagueState, core_seconds: float) -> BeginProbe | None:
        """The probe to begin: of those that may, the one that has cost least."""
        snapshot = newest_snapshot(state)
        if snapshot is None:
            return None
        measured = {result.task.probe for result in state.probes.results if result.task.snapshot == snapshot}
        for name in sorted(self._probes, key=lambda name: state.probes.costs.get(name, 0.0)):
            probe = self._probes[name]
            failures = state.probes.failures.get(name, 0)
            failures -= min(self._failures.get(name, 0), failures)
            past = past_snapshots(state, snapshot, most=probe.num_past)
            if name in measured or name in state.probes.unfit or failures >= MAX_FAILURES:
                continue
            if (
                bool(past) >= bool(probe.num_past)
                and self._limit_s(state, name, core_seconds) >= probe.least_core_seconds
            ):
                return BeginProbe(name, snapshot, past)
        return None

    def _limit_s(self, state: LeagueState, name: str, core_seconds: float) -> float:
        """Processor seconds that a probe may take now."""
        allowed, known = self._config.max_share * core_seconds, state.probes
        own = allowed / len(self._probes) - known.costs.get(name, 0.0)
        return min(own, allowed - known.core_seconds - (0.0 if self._process.is_running else self._start_s))

    def _request(self, state: LeagueState, task: ProbeTask, core_seconds: float, ask: Ask) -> None:
        probe = self._probes.get(task.probe)
        if probe is None:
            ask(EndProbe(ProbeOutcome(task.number, problem=f"{task.probe} is not among probes.kinds any more")))
            return
        limit_s = max(self._limit_s(state, task.probe, core_seconds), probe.least_core_seconds)
        names = (task.snapshot, *task.against)
        request = ProbeRequest(task, limit_s, {name: state.snapshots[name].digest for name in names})
        before = self._process.core_seconds()
        try:
            self._process.ask(request)
        except LineWorkerFailed as error:
            self._process.end()
            self._finish(ProbeOutcome(task.number, problem=f"its process {error}"), task, ask)
        else:
            self._asked = (task, self._monotonic(), before)
            self._noted_s, self._used = self._monotonic(), 0.0

    def _mind(self, task: ProbeTask, since: float, before: float, ask: Ask) -> None:
        """Take the answer, or give the probe up."""
        try:
            outcome = self._process.answer()
        except (LineWorkerFailed, ValueError) as error:
            self._give_up(task, before, f"its answer cannot be read: {error}", ask)
            return
        if outcome is not None:
            if outcome.start_core_seconds:
                self._start_s = outcome.start_core_seconds
            self._finish(outcome, task, ask)
        elif self._process.has_died:
            words = self._process.last_words()
            self._give_up(task, before, f"its process died{words and f': {words}'}", ask)
        elif self._monotonic() - since > self._config.deadline_s:
            self._give_up(task, before, f"it took more than probes.deadline_s ({self._config.deadline_s:g} s)", ask)

    def _note(self, ask: Ask) -> None:
        """Have the cost of the running attempt so far in the journal, from time to time."""
        now = self._monotonic()
        if self._asked is not None and now - self._noted_s >= NOTE_EVERY_S:
            task, _, before = self._asked
            self._noted_s, self._used = now, max(self._process.core_seconds() - before, self._used)
            ask(SpendProbe(task.number, self._used))

    def _give_up(self, task: ProbeTask, before: float, problem: str, ask: Ask) -> None:
        used = max(self._process.core_seconds() - before, self._used)
        self._process.end()
        self._finish(ProbeOutcome(task.number, core_seconds=used, problem=problem[:MAX_PROBLEM]), task, ask)

    def _finish(self, outcome: ProbeOutcome, task: ProbeTask, ask: Ask) -> None:
        self._asked = None
        if not ask(EndProbe(outcome)):
            ask(EndProbe(ProbeOutcome(task.number, problem="its answer was refused")))
        if outcome.problem:
            self._say(f"The probe {task.probe} could not measure {task.snapshot}: {outcome.problem.rstrip('.')}.")
        elif outcome.remark and self._remarks.get(task.probe) != (gist := NUMBER.sub("", outcome.remark)):
            self._remarks[task.probe] = gist
            self._say(f"The probe {task.probe} measured without: {outcome.remark.rstrip('.')}.")


@contextlib.contextmanager
def open_prober(
    config: ProbesConfig, path: Path, state: LeagueState, *, say: Callable[[str], object]
) -> Iterator[Prober]:
    """The prober of a run folder; arguments as of `Prober`."""
    prober = Prober(config, ProbeProcess(path), state, say=say)
    try:
        yield prober
    finally:
        prober.close()


def newest_snapshot(state: LeagueState) -> str | None:
    """The newest trained snapshot of a main agent whose weights are there; of any player where there is none."""
    trained = [snapshot for snapshot in state.snapshots.values() if snapshot.trained_steps > 0]
    own = [s.snapshot_id for s in trained if s.player in state.players and state.is_present(s.snapshot_id)]
    mains = [name for name in own if state.snapshots[name].role == MAIN_ROLE]
    return next(reversed(mains or own), None)


def past_snapshots(state: LeagueState, snapshot: str, *, most: int) -> tuple[str, ...]:
    """Earlier snapshots of the same player whose weights are there: the first, the last, and evenly between."""
    player, steps = state.snapshots[snapshot].player, state.snapshots[snapshot].trained_steps
    earlier = [
        one.snapshot_id
        for one in state.snapshots.values()
        if one.player == player and 0 < one.trained_steps < steps and state.is_present(one.snapshot_id)
    ]
    if len(earlier) <= most:
        return tuple(earlier)
    places = {round(place * (len(earlier) - 1) / max(most - 1, 1)) for place in range(most)}
    return tuple(earlier[place] for place in sorted(places))
