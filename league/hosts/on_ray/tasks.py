"""Tasks on the machines of a Ray cluster: each is done once, whichever process dies, and none is waited for for ever.

A process on each free CPU of each machine with the same versions makes what it needs once and then does one task after
another. It shows signs of life; one that dies, hangs or is cut off is replaced, and its task is given out again.
"""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from league.agents.torch_runtime import prepare_process
from league.config.ray_address import ray_address
from league.envs.protocol import EnvError
from league.errors import LeagueError, RayHeadLost
from league.hosts.on_ray.cluster import Cluster
from league.hosts.on_ray.nodes.follow import follow
from league.hosts.on_ray.nodes.node_watch import NodeWatch, agree, ask_versions
from league.hosts.on_ray.ray_actors import actor_class
from league.processes.reaper import Reaper
from league.processes.tasks import (
    MAX_LIVES,
    MAX_SILENCE_S,
    WAIT_S,
    Answer,
    Make,
    SignOfLife,
    Task,
    TaskRefused,
    TasksFailed,
)
from league.wording import error_line

logger = logging.getLogger(__name__)

OBJECT_STORE_MB = 256
"""Shared memory of a Ray of our own: it holds the setup."""
START_S = 180.0
"""Longest wait for a new process, and for a CPU of a cluster that others use."""
ASK_EVERY_S, ANSWER_S = 5.0, 60.0
"""Time between two questions for signs of life, and the longest wait for an answer."""
LIFE = "life"
"""Ray's name for the thread that answers questions while a task is done."""


class TaskProcess:
    """One process that does tasks, as a Ray actor. make, setup: see `Make`."""

    def __init__(self, make: Make, setup: Any) -> None:
        os.environ["CUDA_VISIBLE_DEVICES"] = ""  # Ray hides no GPU from a process that asks for none
        prepare_process()
        self._make = make
        self._setup = setup
        self._seen = time.monotonic()
        self._does: Callable[[Any, SignOfLife], Any] | None = None

    def ready(self) -> int:
        """The process id, once it has started."""
        return os.getpid()

    def do(self, task: Any) -> Any:
        """Do a task; what only the user can mend comes back as `TaskRefused`."""
        self._sign()
        try:
            if self._does is None:
                self._does = self._make(self._setup)
            return self._does(task, self._sign)
        except (LeagueError, EnvError) as error:
            return TaskRefused(str(error))

    @ray.method(concurrency_group=LIFE)  # type: ignore[untyped-decorator]
    def silence_s(self) -> float:
        """Seconds since the last sign of life."""
        return time.monotonic() - self._seen

    def _sign(self) -> bool:
        self._seen = time.monotonic()
        return True


@dataclass
class _Host(Generic[Task]):
    """One process.

    Fields:
      node_id: its machine. pid: 0 until it has started. task: that it does, None when idle.
      is_ready: whether it has started. call: the answer that it owes, None when idle.
      question: for signs of life, None while there is none.
      due: when it is overdue in starting, else when it is asked next. answer_due: when `question` is overdue.
    """

    handle: Any
    node_id: str
    call: Any
    due: float
    pid: int = 0
    task: Task | None = None
    question: Any = None
    answer_due: float = 0.0


class RayTasks(Generic[Task, Answer]):
    """Does tasks on a cluster; a context manager that ends its processes.

    Args:
      address: as `runtime.address`. make, setup: see `Make`; both travel once.
      max_processes: 0 for one on each CPU.
      allow_tokenless, own_names: as of `Cluster`.
      name_of: a task for people.
      cluster: that the caller has started and will close, instead of the one at the address.
      clock: seconds that never go back.
    Raises on entry:
      RayUnreachable, RayUnguarded: as of `Cluster.start`.
    """

    def __init__(
        self,
        address: str,
        make: Make,
        setup: object,
        *,
        max_processes: int = 0,
        allow_tokenless: bool = False,
        own_names: tuple[str, ...] = (),
        name_of: Callable[[Task], str] = str,
        cluster: Cluster | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._make = make
        self._setup = setup
        self._max = max_processes
        self._clock = clock
        self._name_of = name_of
        self._shares_cluster = cluster is not None
        self._cluster = cluster or Cluster(
            ray_address(address, os.environ),
            num_hosts=max_processes or len(os.sched_getaffinity(0)),
            object_store_mb=OBJECT_STORE_MB,
            allow_tokenless=allow_tokenless,
            own_names=own_names,
        )
        self._reaper = Reaper(self._cluster.folder)
        self._watch = NodeWatch(ask=agree if self._cluster.is_own else ask_versions)
        self._hosts: dict[str, _Host[Task]] = {}
        self._started = 0
        self._waiting: deque[Task] = deque()
        self._deaths: Counter[Task] = Counter()
        self._failed_starts: Counter[str] = Counter()
        self._remarks: list[str] = []
        self._last_ready = 0.0
        self._sent: Any = None

    def __enter__(self) -> RayTasks[Task, Answer]:
        if not self._shares_cluster:
            self._reaper.start()
        try:
            if not self._shares_cluster:
                self._cluster.start()
            self._sent = ray.put(self._setup)
            self._watch.start()
        except BaseException:
            self.__exit__()
            raise
        self._last_ready = self._clock()
        return self

    def __exit__(self, *error: object) -> None:
        """End every process, and a Ray of our own."""
        self._watch.close()
        for host in self._hosts.values():
            _kill(host)
        self._hosts.clear()
        self._sent = None
        if not self._shares_cluster:
            self._cluster.close()
            self._reaper.close()

    @property
    def num_busy(self) -> int:
        """Tasks that have been given and have not come back."""
        return len(self._waiting) + sum(host.task is not None for host in self._hosts.values())

    @property
    def has_room(self) -> bool:
        """True if another task would begin soon."""
        return self.num_busy < max(1, len(self._hosts))

    def give(self, task: Task) -> None:
        """Let a task be done; only while there is room. Tasks are hashable and unlike one another."""
        self._waiting.append(task)

    def wait(self) -> Sequence[Answer]:
        """Wait a moment for tasks that have been done.

        Raises:
          TasksFailed: one cannot be done, or processes fail again and again, or no machine has a CPU.
        """
        try:
            self._cluster.check_head()
        except RayHeadLost:
            raise TasksFailed("Ray's control store has ended: the same command starts another Ray.") from None
        self._follow_machines()
        for host in self._hosts.values():
            if self._waiting and host.pid and host.task is None:
                host.task = self._waiting.popleft()
                host.call, host.due = host.handle.do.remote(host.task), self._clock() + ASK_EVERY_S
        answers = self._take_calls()
        self._look_for_life()
        if any(host.pid for host in self._hosts.values()):
            self._last_ready = self._clock()
        elif self._clock() - self._last_ready > START_S:
            sentence = f"No process could start on the cluster for {START_S:.0f} s."
            raise TasksFailed(" ".join([sentence, *self._remarks]))
        return answers

    def _follow_machines(self) -> None:
        """Start processes where there is a CPU for them, and give those up whose machine is gone."""
        for remark in self._watch.take_remarks():
            self._remarks.append(remark)
            logger.warning("%s", remark)
        held = {name: host.node_id for name, host in self._hosts.items()}
        change = follow(self._watch.nodes, self._watch.usable, held=held, taken={})
        for name in change.remove:
            self._bury(name, "was on a machine that has left the cluster")
        places = [node_id for node_id in change.add if self._failed_starts[node_id] < MAX_LIVES]
        for node_id in places[: max(0, self._max - len(self._hosts)) if self._max else None]:
            where = NodeAffinitySchedulingStrategy(node_id, soft=False)
            options: Mapping[str, Any] = {"num_cpus": 1, "max_restarts": 0, "max_task_retries": 0}
            actor = actor_class(TaskProcess, **{LIFE: 1}).options(**options, scheduling_strategy=where)
            handle = actor.remote(self._make, self._sent)
            self._hosts[f"process-{self._started}"] = _Host(
                handle, node_id, handle.ready.remote(), self._clock() + START_S
            )
            self._started += 1

    def _take_calls(self) -> list[Answer]:
        """Take what has come back, the answers of tasks among it."""
        calls = {reference: name for name, host in self._hosts.items() for reference in _references(host)}
        if not calls:
            time.sleep(WAIT_S)
            return []
        ready, _ = ray.wait(list(calls), num_returns=1, timeout=WAIT_S)
        ready, _ = ray.wait(list(calls), num_returns=len(calls), timeout=0) if ready else ([], [])
        answers: list[Answer] = []
        for reference in ready:
            name = calls[reference]
            if name not in self._hosts:
                continue
            try:
                answer = ray.get(reference, timeout=ANSWER_S)
            except ray.exceptions.RayTaskError as error:  # our bug, which would come again
                raise error.as_instanceof_cause() from error
            except ray.exceptions.RayError as error:
                self._bury(name, f"was lost: {error_line(error)}")
                continue
            self._take(name, reference, answer, answers)
        return answers

    def _take(self, name: str, reference: Any, answer: Any, answers: list[Answer]) -> None:
        host = self._hosts[name]
        if isinstance(answer, TaskRefused):
            raise TasksFailed(answer.sentence)
        if reference == host.question:
            host.question, host.due = None, self._clock() + ASK_EVERY_S
            if host.task is not None and answer > MAX_SILENCE_S:
                self._bury(name, f"showed no sign of life for {MAX_SILENCE_S:.0f} s")
        elif not host.pid:
            host.pid, host.call = answer, None
            self._failed_starts[host.node_id] = 0
        else:
            answers.append(answer)
            host.task = host.call = None

    def _look_for_life(self) -> None:
        """Ask those who do a task for signs of life; end those that are late with an answer, or silent."""
        now = self._clock()
        for name, host in list(self._hosts.items()):
            if now > (host.answer_due if host.question is not None else now if host.pid else host.due):
                self._bury(name, "did not answer in time")
            elif host.task is not None and host.question is None and now > host.due:
                host.question, host.answer_due = host.handle.silence_s.remote(), now + ANSWER_S

    def _bury(self, name: str, how: str) -> None:
        """End a process that is of no use, and take its task back."""
        host = self._hosts.pop(name)
        _kill(host)
        logger.warning("%s %s", name, how)
        if not host.pid:
            self._failed_starts[host.node_id] += 1
        if host.task is None:
            return
        self._deaths[host.task] += 1
        if self._deaths[host.task] >= MAX_LIVES:
            what = self._name_of(host.task)
            raise TasksFailed(f"{MAX_LIVES} processes that did {what} ended without a result: the last one {how}.")
        self._waiting.appendleft(host.task)


def _references(host: _Host[Any]) -> list[Any]:
    return [reference for reference in (host.call, host.question) if reference is not None]


def _kill(host: _Host[Any]) -> None:
    with contextlib.suppress(ray.exceptions.RayError, ValueError, RuntimeError):
        ray.kill(host.handle, no_restart=True)
