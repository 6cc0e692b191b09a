"""The page beside a daemon: one process, whose address stays, and which ends with the daemon."""

from __future__ import annotations

import socket
import stat
from pathlib import Path

import httpx
import msgspec

from league.http.address import Listening
from league.http.token_file import tokens_in
from league.operate.support.redaction import secrets_here
from league.run.control.page_process import page_process
from league.see.page.page_file import PAGE_FILE, PageAddress, PageFile, live_page, page_beside, read_page_file
from league.see.page.server import listen
from league.store.lock import this_process
from tests.league.commands import league, wait_until
from tests.league.see.page.page_runs import write_run, write_status


def test_it_is_served_while_the_daemon_lives_and_keeps_its_token(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", leases=5)
    assert live_page(folder.path) is None
    with page_process(folder, say=lambda words: None):
        wait_until(lambda: live_page(folder.path) is not None, "the page")
        address = live_page(folder.path)
        assert address is not None
        assert stat.S_IMODE((folder.path / PAGE_FILE).stat().st_mode) == 0o600
        base = address.base
        assert httpx.get(base).status_code == 200
        assert httpx.get(f"{base}/api/v1/runs").status_code == 401
        assert httpx.post(f"{base}/api/v1/session", json={"token": address.tokens.operator}).status_code == 200
        said = league("serve", folder.path)
        assert (said.code, said.out.splitlines()[::2]) == (0, [address.url, address.reader_url])
    assert live_page(folder.path) is None
    assert tokens_in(folder.tokens_path) == address.tokens
    assert {address.tokens.operator, address.tokens.reader} <= secrets_here(folder)
    holders = [path for path in folder.path.rglob("*") if path.is_file() and _holds(path, address.tokens.operator)]
    assert holders == [folder.tokens_path / "operator"]
    assert stat.S_IMODE(holders[0].stat().st_mode) == 0o600


def _holds(path: Path, word: str) -> bool:
    return word.encode() in path.read_bytes()


def test_the_page_of_a_run_that_has_just_come_up_is_awaited(tmp_path: Path) -> None:
    """`league up RUN --page` returns when the run trains, and its page may take some seconds more."""
    folder = write_run(tmp_path / "run", leases=2, live=True)
    slept: list[float] = []
    assert page_beside(folder.path, sleep=slept.append) is None, "its configuration asks for none"
    folder.write_config(folder.read_config().replace("page: false", "page: true"))
    tokens = tokens_in(folder.tokens_path)

    def started(seconds: float) -> None:
        slept.append(seconds)
        page = PageFile(this_process(folder.path), "http://127.0.0.1:1")
        (folder.path / PAGE_FILE).write_bytes(msgspec.json.encode(page))

    assert page_beside(folder.path, sleep=started) == PageAddress("http://127.0.0.1:1", tokens)
    assert len(slept) == 1
    (folder.path / PAGE_FILE).unlink()
    assert page_beside(folder.path, wait_s=0.0) is None, "a page that does not come is not awaited for ever"
    write_status(folder, live=False)
    assert page_beside(folder.path, sleep=slept.append) is None
    assert len(slept) == 1, "nothing is awaited of a run that is not live"


def test_a_damaged_page_file_is_no_page(tmp_path: Path) -> None:
    (tmp_path / PAGE_FILE).write_text('{"port": 1, "tok')
    assert read_page_file(tmp_path) is None


def test_nothing_to_show_and_a_taken_port_are_sentences(tmp_path: Path) -> None:
    said = league("serve", tmp_path / "nothing")
    assert (said.code, "does not exist" in said.err) == (2, True)
    folder = write_run(tmp_path / "run", leases=2)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        said = league("serve", folder.path, "--port", taken.getsockname()[1])
    assert (said.code, "--port" in said.err, "Traceback" in said.err) == (2, True, False)


def test_answers_leave_at_once() -> None:
    """asyncio turns Nagle's algorithm off only where a listener knows that it speaks TCP."""
    with listen(Listening()) as listener:
        assert listener.proto == socket.IPPROTO_TCP
        assert listener.getsockname()[0] == "127.0.0.1"
