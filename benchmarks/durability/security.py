"""The security matrix: requests, names, configurations and files that must all be refused."""

from __future__ import annotations

import contextlib
import itertools
import pickle
import socket
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from pathlib import Path

import httpx

from benchmarks.report import Report
from league.config.loading import parse_config
from league.config.run_config import ControlConfig
from league.core.state.commands import Refused
from league.envs.protocol import EnvConfig, EnvError
from league.envs.registry import spec_of
from league.errors import LeagueError
from league.http.address import Listening
from league.http.listeners import tcp_listener
from league.http.server import ServerLimits, make_server, served_in_threads
from league.http.token_file import new_tokens, tokens_in
from league.policies.exact.load_policy import load_policy
from league.run.control.door import open_door
from league.run.control.door_file import read_door_file
from league.run.operations.catalogue import OPERATIONS
from league.run.operations.operator import Done
from league.see.page.app import make_page
from league.see.page.guard import CSRF_HEADER, Keys
from league.see.page.runs.library import Library
from league.store.run_folder import RunFolder
from league.store.storage import checked_name

METHODS = ("GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS")
PATHS = ("/api/v1/run", "/metrics", "/api/v1/operations/pause", "/api/v1/operations/set")
"""Paths that want a token; health and the description of the API are for everybody who reaches the address."""
NAMES = ("../x", "/etc/passwd", "a/b", "a\\b", "", ".", "..", "a\0b", "x" * 300, "ａ", "a\nb", "con ", "-rf", "A" * 65)
EVERYWHERE = ("0.0.0.0:80", "[::]:80", "192.168.1.5:80", "example.org:80")
"""Addresses that other machines reach, where a server wants a certificate and its key."""
GAMES = ("os:system", "subprocess:call", "../x.py:Game", "/tmp/x.py:Game", "builtins:eval", "pettingzoo:../x")
CONFIGS = (
    "env: !!python/object/apply:os.system ['true']",
    "a: &a [x,x]\nb: &b [*a,*a]\nc: &c [*b,*b]\nenv: *c",
    "env: {id: tic_tac_toe}\nnme: x",
    "env: {id: tic_tac_toe}\ncontrol: {listen: '0.0.0.0:8700'}",
    "env: {id: tic_tac_toe}\nname: ../x",
    "env: {id: tic_tac_toe}\nactors: {num_envs: 1e18}",
)


class Silent:
    """A queue that counts what reaches it. asked: how many operations."""

    def __init__(self) -> None:
        self.asked = 0

    def submit(self, name: str, arguments: Mapping[str, object], *, by: str, reason: str = "") -> Future[Done]:
        self.asked += 1
        answer: Future[Done] = Future()
        answer.set_result(Done("did it", 1, 1, False))
        return answer


def rows(report: Report, *, scale: float, seed: int, folder: Path) -> None:
    """Add the rows; scale and seed change nothing."""
    accepted: list[str] = []
    counted = 0
    for name, was_refused in itertools.chain(door_cases(folder), page_cases(folder), input_cases(folder)):
        counted += 1
        accepted += [] if was_refused else [name]
    for name in accepted:
        print(f"  ACCEPTED {name}", flush=True)
    report.add("hostile requests, names, configurations and files", counted, "cases", at_least=200)
    report.add("of these accepted", len(accepted), "cases", at_most=0)


def door_cases(folder: Path) -> Iterator[tuple[str, bool]]:
    """Requests to the control door's address, each with whether it was refused and reached nobody."""
    run = RunFolder.create(folder / "door", config_yaml="env: {id: tic_tac_toe}")
    queue = Silent()
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = int(found.getsockname()[1])
    with open_door(run, queue, ControlConfig(listen=f"127.0.0.1:{port}"), say=print):
        door, tokens = read_door_file(run), tokens_in(run.tokens_path)
        right = {"authorization": f"Bearer {tokens.operator}"}
        bad: dict[str, dict[str, str]] = {
            "no token": {},
            "short token": {"authorization": f"Bearer {tokens.operator[:-1]}"},
            "wrong token": {"authorization": "Bearer " + "0" * len(tokens.operator)},
            "token in a cookie": {"cookie": f"token={tokens.operator}"},
            "basic": {"authorization": f"Basic {tokens.operator}"},
            "forwarded": {"x-forwarded-for": "127.0.0.1", "x-real-ip": "127.0.0.1"},
            "rebound host": {**right, "host": "evil.example"},
            "rebound host with a port": {**right, "host": f"evil.example:{port}"},
        }
        with httpx.Client(base_url=door.url, timeout=10.0) as client:
            for (what, headers), method, path in itertools.product(bad.items(), METHODS, PATHS):
                before = queue.asked
                body = {"what": "training"} if method == "POST" else None
                status = client.request(method, path, headers=headers, json=body).status_code
                yield f"{what}: {method} {path} was answered {status}", 400 <= status < 500 and queue.asked == before
            reader = {"authorization": f"Bearer {tokens.reader}"}
            for method, path in itertools.product(METHODS[1:], PATHS):
                before = queue.asked
                change = {"what": "training"} if path.endswith("pause") else {"key": "adapt", "value": False}
                status = client.request(method, path, headers=reader, json=change).status_code
                yield f"reader: {method} {path} was answered {status}", status >= 400 and queue.asked == before


def page_cases(folder: Path) -> Iterator[tuple[str, bool]]:
    """Operations that nobody but an operator may ask of the page, each with whether it was refused."""
    run = RunFolder.create(folder / "page", config_yaml="env: {id: tic_tac_toe}")
    queue, library, keys = Silent(), Library(run.path), Keys(new_tokens(), 0)
    operator, reader = keys.entrances
    secrets = {
        "reader": (reader.session, reader.csrf),
        "reader with an operator's word": (reader.session, operator.csrf),
        "operator with a reader's word": (operator.session, reader.csrf),
        "reader's token as its cookie": (reader.token, reader.csrf),
        "operator's token as its cookie": (operator.token, operator.csrf),
    }
    page = make_server(make_page(library, keys, hosts=Listening().names), ServerLimits(max_requests=8))
    with (
        open_door(run, queue, ControlConfig(), say=print),
        tcp_listener(Listening()) as listener,
        served_in_threads([(page, listener)], name="page"),
        contextlib.closing(library),
        httpx.Client(base_url=Listening().url(listener.getsockname()[1]), timeout=10.0) as client,
    ):
        own = {"cookie": f"{keys.cookie_name}={operator.session}", CSRF_HEADER: operator.csrf}
        status = client.post("/api/v1/runs/page/operations/none", headers=own, json={"arguments": {}}).status_code
        yield f"page, operator: an unknown operation was answered {status}", status == httpx.codes.NOT_FOUND
        for (who, (session, word)), operation, tail in itertools.product(secrets.items(), OPERATIONS, ("", "/plan")):
            path = f"/api/v1/runs/page/operations/{operation}{tail}"
            headers = {"cookie": f"{keys.cookie_name}={session}", CSRF_HEADER: word}
            status = client.post(path, headers=headers, json={"arguments": {}}).status_code
            yield f"page, {who}: {path} was answered {status}", status in (401, 403) and queue.asked == 0


def input_cases(folder: Path) -> Iterator[tuple[str, bool]]:
    """Names, configurations and files, each with whether it was refused with a named error."""
    for where, files in itertools.product(EVERYWHERE, ({}, {"tls_cert": "cert.pem"}, {"tls_key": "key.pem"})):
        yield f"listening at {where} with {files}", _refuses(lambda w=where, f=files: Listening.at(w, **f))  # type: ignore[misc]
    for name in NAMES:
        yield f"name {name!r}", _refuses(lambda name=name: checked_name(name, what="the player"))  # type: ignore[misc]
    for text in CONFIGS:
        yield f"configuration {text!r}", _refuses(lambda text=text: parse_config(text, source="x"))  # type: ignore[misc]
    for entry in GAMES:
        yield f"game {entry!r}", _refuses(lambda entry=entry: spec_of(EnvConfig(entry)))  # type: ignore[misc]
    canary = folder / "canary"
    hostile = folder / "hostile"
    hostile.mkdir(parents=True)
    for content in (pickle.dumps(_Canary(canary)), b"\xff" * 64, b"", (2**62).to_bytes(8, "little") + b"{}"):
        (hostile / "weights.safetensors").write_bytes(content)
        (hostile / "manifest.json").write_text('{"manifest": {}, "sha256": ""}')
        refused = _refuses(lambda: load_policy(hostile))
        yield f"weights of {len(content)} bytes", refused and not canary.exists()


class _Canary:
    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[Callable[..., object], tuple[str, str]]:
        return open, (str(self._path), "w")


def _refuses(act: Callable[[], object]) -> bool:
    try:
        act()
    except (LeagueError, EnvError, Refused, ValueError):
        return True
    return False
