"""The machines of a cluster as they come and go, with the versions that each of them runs."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from league.hosts.on_ray.nodes.host_version import HostVersion, differences, this_version
from league.wording import error_line

logger = logging.getLogger(__name__)

LOOK_S = 2.0
"""Time between two looks at the cluster."""

PROBE_S = 60.0
"""Longest wait for a new machine to say its versions; then it is asked again."""


SLICE_S = 0.5
END_S = 3.0
"""Longest wait for the last look."""


@dataclass(frozen=True)
class Node:
    """One machine of a cluster, as Ray describes it.

    Fields:
      node_id: Ray's, never used twice. name: of the machine, for people. address: its IP address.
      cpus, gpus: what Ray may use of it.
    """

    node_id: str
    name: str
    address: str
    cpus: float
    gpus: float

    def __str__(self) -> str:
        return self.name if self.name == self.address else f"{self.name} ({self.address})"


def read_nodes() -> list[Node]:
    """The machines that Ray counts as alive."""
    import ray

    return [node_of(entry) for entry in ray.nodes() if entry["Alive"]]


def node_of(entry: Mapping[str, Any]) -> Node:
    """One entry of `ray.nodes()`."""
    resources = entry.get("Resources", {})
    return Node(
        node_id=entry["NodeID"],
        name=entry.get("NodeManagerHostname") or entry["NodeManagerAddress"],
        address=entry["NodeManagerAddress"],
        cpus=float(resources.get("CPU", 0.0)),
        gpus=float(resources.get("GPU", 0.0)),
    )


Answers = Mapping[str, HostVersion | str]
"""Node id -> the versions of the machine, or the reason for which it has none. One that did not answer is not in it."""


def agree(nodes: Iterable[Node], ended: threading.Event) -> Answers:
    """The answers of machines that can only have what this process has: of a Ray of our own."""
    return {node.node_id: this_version() for node in nodes}


def versions_there() -> HostVersion:
    """`this_version` as a plain function, which Ray can call on another machine."""
    return this_version()


def ask_versions(nodes: Iterable[Node], ended: threading.Event) -> Answers:
    """The answers of the machines of a cluster, waited for until `ended` and at most `PROBE_S`."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    ask = ray.remote(num_cpus=0, max_retries=0)(versions_there)
    asked = {
        ask.options(scheduling_strategy=NodeAffinitySchedulingStrategy(node.node_id, soft=False)).remote(): node
        for node in nodes
    }
    ready, late = list[Any](), list(asked)
    deadline = time.monotonic() + PROBE_S
    while late and time.monotonic() < deadline and not ended.is_set():
        more, late = ray.wait(late, num_returns=len(late), timeout=SLICE_S)
        ready += more
    for reference in late:
        with contextlib.suppress(ray.exceptions.RayError, ValueError):
            ray.cancel(reference, force=True)
    found: dict[str, HostVersion | str] = {}
    for reference in ready:
        try:
            found[asked[reference].node_id] = ray.get(reference)
        except (ray.exceptions.NodeDiedError, ray.exceptions.WorkerCrashedError, ray.exceptions.TaskUnschedulableError):
            continue
        except ray.exceptions.RayError as error:
            found[asked[reference].node_id] = error_line(error)
    return found


class NodeWatch:
    """Looks at the cluster from a thread of its own, so that a cluster that hangs holds nobody up.

    Args:
      read: the machines that are alive. ask: their versions, see `ask_versions`.
    """

    def __init__(
        self,
        *,
        read: Callable[[], list[Node]] = read_nodes,
        ask: Callable[[Iterable[Node], threading.Event], Answers] = ask_versions,
    ) -> None:
        self._read = read
        self._ask = ask
        self._own = this_version()
        self._nodes: tuple[Node, ...] = ()
        self._verdicts: dict[str, str] = {}
        self._remarks: deque[str] = deque()
        self._problem = ""
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="nodes", daemon=True)

    def start(self) -> None:
        """Take a first look, and begin to watch. Raises whatever `read` raises."""
        self._nodes = tuple(self._read())
        self._thread.start()

    def close(self) -> None:
        """Stop watching: nothing may ask Ray once it is shut down. May be called twice."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join(timeout=END_S)

    @property
    def nodes(self) -> tuple[Node, ...]:
        """Every machine, as last seen."""
        return self._nodes

    @property
    def usable(self) -> tuple[Node, ...]:
        """The machines that run the same versions as this process."""
        return tuple(node for node in self._nodes if self._verdicts.get(node.node_id) == "")

    def refusal(self, node_id: str) -> str:
        """The sentence on a machine with other versions; empty for any other."""
        return self._verdicts.get(node_id, "")

    def take_remarks(self) -> list[str]:
        """Sentences for the user since the last call."""
        return [self._remarks.popleft() for _ in range(len(self._remarks))]

    def look(self) -> None:
        """Read the machines, and ask those that are new for their versions."""
        nodes = tuple(self._read())
        self._nodes, known = nodes, self._verdicts
        self._verdicts = {node.node_id: known[node.node_id] for node in nodes if node.node_id in known}
        unknown = [node for node in nodes if node.node_id not in self._verdicts]
        if unknown:
            answers = self._ask(unknown, self._ended)
            for node in unknown:
                if node.node_id in answers:
                    self._judge(node, answers[node.node_id])

    def _judge(self, node: Node, answer: HostVersion | str) -> None:
        reason = answer if isinstance(answer, str) else differences(self._own, answer)
        if reason:
            reason = f"Machine {node} is not used: {reason}. Install there what this machine has."
            self._remarks.append(reason)
        self._verdicts[node.node_id] = reason

    def _watch(self) -> None:
        while not self._ended.is_set():
            try:
                self.look()
            except Exception as error:  # boundary: a cluster that does not answer is asked again
                if str(error) != self._problem and not self._ended.is_set():
                    logger.warning("the machines cannot be looked at: %s", error)
                self._problem = str(error)
            self._ended.wait(LOOK_S)
