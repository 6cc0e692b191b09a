"""Packages on a model hub: pushed by its own client to a stand-in, fetched with every digest checked, and played."""

from __future__ import annotations

import importlib.util
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import yaml

import league as package
from league.config.contender_names import SHIPPED, hub_folder, is_folder, split_source
from league.errors import LeagueError
from league.policies.fetched.hub import fetch_hub
from league.policies.fetched.zoo_index import Source
from league.policies.package import read_sums
from tests.league.commands import league
from tests.league.deploy.export.hub_stand_in import Hub

NAME = "hf://someone/tic-tac-toe"
ZOO = SHIPPED / "tic_tac_toe"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """An empty hub, to which HF_ENDPOINT points; what is fetched goes into the test's folder."""
    server = Hub()
    for name, value in {
        "HF_ENDPOINT": server.address,
        "HF_HOME": str(tmp_path / "hf"),
        "HF_TOKEN": "hf_of_a_test",
        "HF_HUB_DISABLE_XET": "1",
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }.items():
        monkeypatch.setenv(name, value)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join(10.0)
    server.server_close()


@pytest.fixture
def filled(hub: Hub) -> Hub:
    """The hub with a package, as it lies there after a push."""
    names = [*read_sums(ZOO / "SHA256SUMS"), "SHA256SUMS"]
    hub.files["someone/tic-tac-toe"] = {name: (ZOO / name).read_bytes() for name in names}
    return hub


def test_a_repository_is_fetched_once_and_played(filled: Hub) -> None:
    with pytest.raises(LeagueError, match="`league zoo --index hf://someone/tic-tac-toe` does so"):
        split_source(NAME)
    policy = package.load_policy(NAME, greedy=True)
    assert policy.spec.env_id == "tic_tac_toe"
    asked = len(filled.asked)
    fetch_hub(NAME)
    assert filled.asked[asked:] == ["GET /someone/tic-tac-toe/resolve/main/SHA256SUMS"]
    assert is_folder(NAME) and split_source(NAME) == (hub_folder(NAME), "")
    assert league("zoo", "--index", NAME).out == f"{NAME} is in {hub_folder(NAME)}\n"
    played = league("match", NAME, "bot:random", "--games", 2)
    assert played.code == 0 and NAME in played.out, played.err


def test_a_commit_is_asked_for_once(filled: Hub) -> None:
    pinned = f"{NAME}@{'0a' * 20}"
    fetch_hub(pinned)
    filled.files.clear()
    assert fetch_hub(pinned).name == "0a" * 20
    with pytest.raises(LeagueError, match="answers 404"):
        fetch_hub(NAME)


@pytest.mark.parametrize(
    ("file", "sentence"), [("model.safetensors", "is not what SHA256SUMS says"), ("manifest.json", "is not")]
)
def test_a_file_that_is_not_as_its_digest_says_is_refused_and_nothing_is_kept(
    filled: Hub, file: str, sentence: str
) -> None:
    filled.files["someone/tic-tac-toe"][file] += b" "
    with pytest.raises(LeagueError, match=sentence):
        fetch_hub(NAME)
    assert not list(hub_folder(NAME).parent.iterdir())


def test_nothing_that_could_be_run_is_taken(filled: Hub) -> None:
    files = filled.files["someone/tic-tac-toe"]
    files |= {"trust.json": b"{}", "code.json": b"{}", "model.py": b"raise SystemExit"}
    assert {path.suffix for path in fetch_hub(NAME).iterdir()} == {".json", ".md", ".safetensors", ""}
    assert not (hub_folder(NAME) / "trust.json").exists()


@pytest.mark.parametrize("name", ["hf://someone", "hf://a/b/c", "hf://../x", "hf://a/b@../c"])
def test_a_name_is_that_of_a_repository(name: str) -> None:
    with pytest.raises(LeagueError, match=r"write hf://OWNER/NAME"):
        fetch_hub(name)


def test_a_hub_is_asked_by_https(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://example.org")
    with pytest.raises(LeagueError, match="use https"):
        fetch_hub(NAME)


def test_a_hub_elsewhere_cannot_send_a_reader_to_this_machine() -> None:
    with Source("https://example.org", clock=lambda: 0.0, follows=True) as source:
        (check,) = source._client.event_hooks["request"]
        check(httpx.Request("GET", "https://cdn.example.org/weights"))
        with pytest.raises(LeagueError, match="use https"):
            check(httpx.Request("GET", "http://127.0.0.1:8080/weights"))


@pytest.mark.skipif(importlib.util.find_spec("huggingface_hub") is None, reason="the extra `hub` is not installed")
def test_a_package_is_pushed_by_the_client_of_the_hub_and_comes_back_as_it_was(hub: Hub) -> None:
    pushed = league("push", ZOO, NAME)
    assert pushed.code == 0 and pushed.out.startswith(f"pushed: {NAME}@"), pushed.err
    files = hub.files["someone/tic-tac-toe"]
    assert files == {name: (ZOO / name).read_bytes() for name in [*read_sums(ZOO / "SHA256SUMS"), "SHA256SUMS"]}
    assert any("lfs/objects/batch" in line for line in hub.asked)
    header = yaml.safe_load(files["README.md"].decode().split("---")[1])
    assert header["library_name"] == "league" and header["model-index"][0]["results"][0]["metrics"]
    fetched = fetch_hub(pushed.out.split()[1])
    assert (fetched / "model.safetensors").read_bytes() == (ZOO / "model.safetensors").read_bytes()


def test_without_its_extra_a_push_says_which(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    refused = league("push", ZOO, NAME)
    assert refused.code == 2 and "install the extra `hub`" in refused.err and not hub.asked
