"""The queue between those who operate a league and the daemon that runs it: requests go in, answers come back."""

from __future__ import annotations

import queue
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Protocol, cast

from league.config.run_config import RunConfig
from league.core.state.commands import Command, Refused
from league.core.state.events import EVENTS, Event
from league.errors import LeagueError
from league.run.operations.catalogue import OPERATIONS, Value, plan_of
from league.run.operations.plans import OperationRefused, Plan, PlanInputs, plan_set
from league.store.journal_reader import JournalReader
from league.store.journaled_league import JournaledLeague
from league.store.run_folder import RunFolder
from league.store.snapshots import LocalSnapshotStore

MAX_WAITING = 100
"""Requests that may wait; a further one is refused at once."""

ENDING = "the run is ending; `league resume` it first"
UNCONFIRMED = "the run has ended by an error before this was durable; look whether it was done after `league resume`"

MAX_A_TURN = 8
"""Requests carried out in one turn of the daemon, so that training continues under a flood of them."""


@dataclass(frozen=True)
class Done:
    """An operation is durable.

    Fields:
      words: what it did. first_event, last_event: numbers of its events in the journal; `undo` takes the first.
      undoable: whether it does.
    """

    words: str
    first_event: int
    last_event: int
    undoable: bool


@dataclass(frozen=True)
class _Request:
    name: str
    arguments: Mapping[str, Value]
    by: str
    reason: str
    answer: Future[Done]


class HostNames(Protocol):
    """Names of hosts, drained ones that have not ended among them."""

    @property
    def actor_hosts(self) -> tuple[str, ...]: ...

    @property
    def learner_hosts(self) -> tuple[str, ...]: ...


class Operator:
    """Carries out operations between two turns of the daemon's loop.

    `submit` may be called from any thread; everything else is the daemon's.

    Args:
      folder: of the run; its configuration follows the journal.
      league: its history. config: of the run as it is now.
      hosts: of the run.

    Fields:
      has_changed: whether config.yaml has still to follow a change of this turn.
    """

    def __init__(self, folder: RunFolder, league: JournaledLeague, config: RunConfig, hosts: HostNames) -> None:
        self._folder = folder
        self._league = league
        self._hosts = hosts
        self.config = config
        self._waiting: queue.Queue[_Request] = queue.Queue(MAX_WAITING)
        self._done: list[tuple[_Request, Done]] = []
        self._is_closed = False
        self.has_changed = False

    def submit(self, name: str, arguments: Mapping[str, Value], *, by: str, reason: str = "") -> Future[Done]:
        """Ask for an operation; the answer comes once it is durable, or is `OperationRefused`.

        Args:
          by: who asks, for the journal. reason: for people.
        """
        request = _Request(name, dict(arguments), by, reason, Future())
        try:
            if self._is_closed:
                raise OperationRefused(ENDING)
            self._waiting.put_nowait(request)
            if self._is_closed:  # closed meanwhile: nobody else takes out what came after the last look of `close`
                self._refuse_waiting()
        except queue.Full:
            request.answer.set_exception(OperationRefused(f"{MAX_WAITING} requests wait already; try again later"))
        except OperationRefused as error:
            request.answer.set_exception(error)
        return request.answer

    def carry_out(self, demand: Callable[[Sequence[Command]], object]) -> None:
        """Carry out what waits, up to a change of config.yaml. The answers follow with `confirm`.

        The file may be one change behind the journal and no more, so that after a crash it is known for what it is.

        demand: has the league decide on commands, on all or on none, and raises `Refused`.
        """
        for _ in range(MAX_A_TURN):
            if self.has_changed:
                return
            try:
                request = self._waiting.get_nowait()
            except queue.Empty:
                return
            if request.answer.set_running_or_notify_cancel():
                self._carry_out(request, demand)

    def plan(self, name: str, arguments: Mapping[str, Value], *, by: str, reason: str = "") -> Plan:
        """The plan of an operation in the league as it stands.

        Raises:
          OperationRefused.
        """
        return plan_of(name, arguments, self.plan_inputs(by=by, reason=reason))

    def plan_inputs(self, *, by: str, reason: str) -> PlanInputs:
        """The inputs of a plan that is made now."""
        hosts = self._hosts.actor_hosts, self._hosts.learner_hosts
        return PlanInputs(self._league.state, self.config, by, reason, self._event_of, *hosts)

    def change(
        self,
        pairs: Sequence[tuple[str, Value]],
        *,
        by: str,
        reason: str,
        remedy: str,
        demand: Callable[[Sequence[Command]], object],
    ) -> str:
        """Change settings at once, from the daemon itself; returns what was done, in words.

        Raises:
          OperationRefused: they may not change, or not so.
        """
        plan = plan_set(self.plan_inputs(by=by, reason=reason), pairs, remedy=remedy)
        try:
            demand(plan.commands)
        except Refused as error:
            raise OperationRefused(str(error)) from error
        self._take_over(plan.config)
        return plan.words

    def _take_over(self, config: RunConfig) -> None:
        self.has_changed = self.has_changed or config is not self.config
        self.config = config

    def confirm(self) -> None:
        """Follows durable events: writes config.yaml, and answers the requests."""
        text = self._league.state.config_text
        if self.has_changed and text and self._folder.read_config() != text:
            self._folder.write_config(text)
        self.has_changed = False
        done, self._done = self._done, []
        for request, answer in done:
            request.answer.set_result(answer)

    def close(self) -> None:
        """Refuse whatever waits, and whatever comes; nobody waits for what an error has kept from being confirmed."""
        self._is_closed = True
        self._refuse_waiting()
        done, self._done = self._done, []
        for request, _ in done:
            request.answer.set_exception(OperationRefused(UNCONFIRMED))

    def _refuse_waiting(self) -> None:
        while True:
            try:
                request = self._waiting.get_nowait()
            except queue.Empty:
                return
            if request.answer.set_running_or_notify_cancel():
                request.answer.set_exception(OperationRefused(ENDING))

    def _carry_out(self, request: _Request, demand: Callable[[Sequence[Command]], object]) -> None:
        first = self._league.next_seq
        try:
            plan = self.plan(request.name, request.arguments, by=request.by, reason=request.reason)
            for weights, manifest in plan.stored:
                LocalSnapshotStore(self._folder.snapshots_path, storage=self._folder.storage).put(weights, manifest)
            demand(plan.commands)
        except Refused as error:
            request.answer.set_exception(OperationRefused(str(error)))
        except LeagueError as error:
            request.answer.set_exception(error)
        else:
            self._take_over(plan.config)
            undoable = OPERATIONS[request.name].is_undoable and plan.is_undoable
            self._done.append((request, Done(plan.words, first, self._league.next_seq - 1, undoable)))

    def _event_of(self, number: int) -> Event | None:
        with JournalReader.open_readonly(self._folder.journal_path, events=EVENTS) as journal:
            if not 1 <= number <= journal.head().seq:
                return None
            _, event = next(journal.replay(from_seq=number, to_seq=number))
            return cast(Event, event)
