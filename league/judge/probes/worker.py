"""The process that measures: `python -m league.judge.probes.worker RUN NICE`. Requests and answers are lines of JSON.

It ends with its standard input, which closes with the daemon, however that died. It reads the run folder,
and writes nothing but the run of an exploiter in it.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import msgspec

from league.config.default_scoring import scoring_of
from league.config.game_kind import kind_of_run
from league.core.state.records import ProbeOutcome
from league.envs.plugins import first_line
from league.envs.protocol import EnvError
from league.envs.registry import spec_of
from league.errors import LeagueError
from league.judge.probes.probe import DoesNotFit, ProbeRequest, Subject, make_probes
from league.policies.loaded_policy import LoadedPolicy
from league.policies.loading import build_policy
from league.policies.trust import read_config
from league.processes.processor_time import children_cpu_seconds
from league.store.run_folder import RunFolder
from league.store.snapshots import LocalSnapshotStore

MAX_TEXT = 400
WALL_PART = 0.5
"""Of `probes.deadline_s`, after which a probe ends its games with what it has."""


class Measurer:
    """Carries out requests for one run.

    Args:
      path: of the run folder.
    Raises:
      LeagueError, EnvError: its configuration or game cannot be had.
    """

    def __init__(self, path: Path) -> None:
        folder = RunFolder.open(path)
        self._path = folder.path
        self._config = read_config(folder)
        self._probes = make_probes(self._config.probes.kinds)
        self._spec = spec_of(replace(self._config.env, workers=0))
        self._greedy = not kind_of_run(self._config, self._spec).must_mix
        self._scoring = scoring_of(self._config.league.payoff, self._spec)
        self._store = LocalSnapshotStore(folder.snapshots_path)

    def measure(self, request: ProbeRequest, *, begun: float) -> ProbeOutcome:
        """The outcome of a request. begun: processor seconds that are not of this measurement."""
        start_s, before = begun, _processor_seconds()
        outcome, remarks = ProbeOutcome(request.task.number), list[str]()
        try:
            subject = self._subject(request, remarks.append)
            readings = tuple(self._probes[request.task.probe].measure(subject))
            outcome = replace(outcome, readings=readings, problem="" if readings else "it measured nothing")
        except DoesNotFit as error:
            outcome = replace(outcome, problem=_line(error), unfit=True)
        except (LeagueError, EnvError) as error:
            outcome = replace(outcome, problem=_line(error))
        except Exception as error:  # boundary: probes, bots and games may be code of others
            outcome = replace(outcome, problem=f"it raised {type(error).__name__}: {_line(error)}")
        used = max(_processor_seconds() - before, 0.0)
        remark = "; ".join(remarks)[:MAX_TEXT]
        return replace(outcome, core_seconds=used, start_core_seconds=start_s, remark=remark)

    def _subject(self, request: ProbeRequest, remark: Callable[[str], None]) -> Subject:
        config = self._config

        def load(name: str) -> LoadedPolicy:
            weights, manifest = self._store.get(request.digests[name])
            return build_policy(name, weights, manifest, self._spec, seed=config.seed, source=self._path)

        return Subject(
            run=self._path,
            env=replace(config.env, workers=0) if config.env.workers == "auto" else config.env,
            spec=self._spec,
            task=request.task,
            load=load,
            bots=config.evaluation.bots,
            scoring=self._scoring,
            limit_s=request.limit_s,
            ends_at=time.monotonic() + WALL_PART * config.probes.deadline_s,
            seed=config.seed % 2**31,
            greedy=self._greedy,
            place=f"probes.kinds.{list(self._probes).index(request.task.probe)}",
            remark=remark,
        )


def main() -> None:
    """Answer requests until standard input ends."""
    os.nice(int(sys.argv[2]))
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # whatever bots and games print must not be taken for an answer
    requests = _requests_or_exit()
    measurer = Measurer(Path(sys.argv[1]))
    begun = time.process_time()
    for line in requests:
        outcome = measurer.measure(msgspec.json.decode(line, type=ProbeRequest), begun=begun)
        begun = 0.0
        answers.write(msgspec.json.encode(outcome) + b"\n")


def _requests_or_exit() -> Iterator[bytes]:
    """Lines of standard input. Its end ends the process at once, also in the middle of a probe."""
    arrived: list[bytes] = []
    there = threading.Condition()

    def read() -> None:
        for line in sys.stdin.buffer:
            with there:
                arrived.append(line)
                there.notify()
        os._exit(0)

    threading.Thread(target=read, name="requests", daemon=True).start()
    while True:
        with there:
            there.wait_for(lambda: bool(arrived))
            line = arrived.pop(0)
        yield line


def _processor_seconds() -> float:
    """Processor time of this process and of every program that it has started."""
    return time.process_time() + children_cpu_seconds(os.getpid())


def _line(error: Exception) -> str:
    return (first_line(error) or type(error).__name__)[:MAX_TEXT]


if __name__ == "__main__":
    main()
