"""A child process that is spoken to in lines: deadlines, ends, errors, and nothing left behind."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from league.processes.line_worker import LineWorker, LineWorkerFailed


@contextmanager
def running(code: str, **options: object) -> Iterator[LineWorker]:
    worker = LineWorker([sys.executable, "-ISc", code], **options)  # type: ignore[arg-type]
    try:
        yield worker
    finally:
        worker.end()
        worker.end()
    assert not Path(f"/proc/{worker.pid}").exists()


def soon() -> float:
    return time.monotonic() + 30.0


def test_lines_come_back_in_their_order_and_a_closed_input_ends_it() -> None:
    with running("import sys\nfor line in sys.stdin: print(line.strip() * 2, flush=True)") as worker:
        worker.send(b"a")
        worker.send(b"b")
        assert [worker.line(deadline=soon()) for _ in range(2)] == [b"aa", b"bb"]
        assert worker.lines() == []
        assert worker.finish(grace_s=30.0) and worker.has_ended
        with pytest.raises(LineWorkerFailed, match="has ended"):
            worker.send(b"c")
        with pytest.raises(LineWorkerFailed, match="has ended"):
            worker.line(deadline=soon())


def test_one_that_answers_without_end_or_not_at_all_is_given_up() -> None:
    for script, reason in (("print('x' * 2**21, end='')", "without end"), ("import time; time.sleep(60)", "in time")):
        with running(script) as worker, pytest.raises(LineWorkerFailed, match=reason):
            worker.line(deadline=soon() if "end" in reason else time.monotonic() + 0.1)


def test_one_that_dies_leaves_its_last_words_and_never_waits_for_room_for_its_errors() -> None:
    code = "import sys\nsys.stderr.write('x' * 2**20)\nprint('here', flush=True)\nsys.exit('\\nout of memory\\n')"
    with running(code) as worker:
        assert worker.line(deadline=soon()) == b"here"
        assert worker.finish(grace_s=30.0)
        assert worker.last_words() == "out of memory"


def test_a_program_that_is_not_there_is_said_to_be_so() -> None:
    with pytest.raises(LineWorkerFailed, match="cannot be started: No such file"):
        LineWorker(["no-such-program"])
