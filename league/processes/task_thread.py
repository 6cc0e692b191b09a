"""One thread that carries out one task at a time under watch: a task that hangs in an env can be given up."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable

from league.envs.calls import GivenUp, Watch, give_up
from league.envs.protocol import EnvError

LOOK_EVERY_S = 0.2
WARN_AFTER_S = 30.0
"""Time after which a call of an env that has not come back is spoken of."""


class TaskThread:
    """Runs functions in a thread of its own, one after the other.

    Args:
      deadline_s: after so long in one call of an env its task has failed.
      advice: how the sentence on it ends.
      clock: seconds that never go back.
    """

    def __init__(
        self, *, deadline_s: float, advice: str = "Mend the env.", clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._deadline_s = deadline_s
        self._advice = advice
        self._clock = clock
        self._watch = Watch()
        self._tasks: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._ended: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()
        self._warned = False
        self.busy = False
        self._thread = threading.Thread(target=_work, args=(self._tasks, self._ended), daemon=True, name="hosts")
        self._thread.start()

    def begin(self, task: Callable[[], None]) -> None:
        """Start a task; the one before has ended."""
        assert not self.busy
        self.busy, self._warned = True, False
        self._tasks.put(task)

    def wait(self, timeout_s: float) -> None:
        """Until the task has ended, at most so long; `busy` says whether it has.

        Raises:
          EnvError: one call of an env has lasted for the deadline; give the thread up. Or the thread has ended, as one
            does that was given up. And whatever the task raised.
        """
        until = self._clock() + timeout_s
        while self.busy:
            try:
                error = self._ended.get(timeout=min(LOOK_EVERY_S, max(until - self._clock(), 0.0)))
            except queue.Empty:
                self._check()
                if self._clock() >= until:
                    return
                continue
            self.busy = False
            if error is not None:
                raise error

    def run(self, task: Callable[[], None]) -> None:
        """Start a task and wait until it has ended; raises as `wait`."""
        self.begin(task)
        while self.busy:
            self.wait(LOOK_EVERY_S)

    def stuck(self) -> str | None:
        """Said once of each task: what it hangs in, once that has lasted for `WARN_AFTER_S`."""
        seconds, text = self._look()
        if self._warned or seconds < WARN_AFTER_S:
            return None
        self._warned = True
        return f"{text} for {seconds:.0f} s"

    def give_up(self) -> None:
        """Let the thread go, and what it is doing; it ends for good where its call comes back."""
        if self.busy:
            give_up(self._thread)
        self._tasks.put(None)

    def _look(self) -> tuple[float, str]:
        return self._watch.look(self._thread.ident if self.busy else None, now=self._clock())

    def _check(self) -> None:
        seconds, text = self._look()
        if seconds >= self._deadline_s:
            raise EnvError(f"{text} for {seconds:.0f} s, which is given up. {self._advice}")
        if not self._thread.is_alive() and self._ended.empty():
            raise EnvError("The thread of this task has ended without an answer.")


def watched(task: Callable[[], None], *, deadline_s: float, say: Callable[[str], object]) -> None:
    """Run a task in a thread of its own; says what it hangs in. Raises as `TaskThread.wait`."""
    thread = TaskThread(deadline_s=deadline_s)
    thread.begin(task)
    try:
        while thread.busy:
            thread.wait(LOOK_EVERY_S)
            stuck = thread.stuck()
            if stuck is not None:
                say(stuck)
    finally:
        thread.give_up()


def _work(tasks: queue.SimpleQueue[Callable[[], None] | None], ended: queue.SimpleQueue[BaseException | None]) -> None:
    while (task := tasks.get()) is not None:
        try:
            task()
        except GivenUp:
            return
        except Exception as error:  # boundary: raised again in the thread that waits
            ended.put(error)
        except BaseException as error:
            ended.put(error)
            raise
        else:
            ended.put(None)
