"""Whatever comes from outside is taken as it is meant or refused by a named error; a corpus keeps what once broke."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from league.agents.unroll.codec import ChunkError, Lz4Codec
from league.config.loading import parse_config
from league.config.run_config import RunConfig
from league.core.state.commands import Refused
from league.core.state.events import EVENTS
from league.core.state.state import digest, from_plain, to_plain
from league.errors import LeagueError
from league.hosts.actors.actor_state_file import decode_actor_state
from league.run.budget import ClockFile
from league.run.operations.catalogue import OPERATIONS, plan_of
from league.run.operations.plans import PlanInputs
from league.store.event_codec import EventCodec
from league.store.run_folder import RunFolder
from league.store.snapshots import LocalSnapshotStore, SnapshotManifest, sha256_hex
from league.store.storage import checked_name
from league.store.weights_file import encode_arrays, stored_arrays
from tests.league.core.simulated_league import SimulatedLeague, three_roles
from tests.league.tiny_runs import tiny

CORPUS: dict[str, list[str]] = json.loads((Path(__file__).parents[1] / "golden" / "hostile.json").read_text())
"""Target -> inputs, as text in Latin-1."""
BASE = yaml.safe_dump(tiny())
WORDS = (
    "learner",
    "league",
    "players",
    "main-0",
    "main_agent",
    "true",
    "0",
    "-1",
    "1e400",
    "nan",
    "null",
    "[]",
    "{}",
    "a:b",
)
EXAMPLES = settings(
    max_examples=40, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def read_name(content: bytes, folder: Path) -> None:
    path = folder / checked_name(content.decode("utf-8", "replace"))
    assert path.resolve().parent == folder.resolve()


def read_config(content: bytes, folder: Path) -> None:
    assert isinstance(parse_config(content.decode("utf-8", "replace"), source="it"), RunConfig)


def read_override(content: bytes, folder: Path) -> None:
    parse_config(BASE, source="it", overrides=[content.decode("utf-8", "replace")])


def read_status(content: bytes, folder: Path) -> None:
    run = RunFolder(folder)
    run.status_path.write_bytes(content)
    run.read_status()


def read_manifest(content: bytes, folder: Path) -> None:
    weights = encode_arrays({})
    store = LocalSnapshotStore(folder / "snapshots")
    digest_of = store.put(weights, SnapshotManifest(sha256_hex(weights), "p", "r", None, 0, 0, "e", "h", {}))
    (store.folder(digest_of) / "manifest.json").write_bytes(content)
    store.get(digest_of)


def read_weights(content: bytes, folder: Path) -> None:
    stored_arrays(content, source=folder)


def read_hosts(content: bytes, folder: Path) -> None:
    decode_actor_state(content)


def read_clock(content: bytes, folder: Path) -> None:
    with contextlib.suppress(msgspec.DecodeError):  # its documented error
        ClockFile.decode(content)


def read_frame(content: bytes, folder: Path) -> None:
    with contextlib.suppress(ChunkError):
        Lz4Codec().decode(content)


def read_event(content: bytes, folder: Path) -> None:
    kind, _, body = content.partition(b" ")
    EventCodec(EVENTS).decode(kind.decode("latin-1"), body, seq=1)


def read_request(content: bytes, folder: Path) -> None:
    """An operation's name and its arguments as JSON, planned and then carried out."""
    name, _, body = content.partition(b" ")
    try:
        arguments = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return
    if not isinstance(arguments, dict):
        return
    league = SimulatedLeague(three_roles())
    inputs = PlanInputs(league.state, CONFIG, "me", "", lambda number: None)
    with contextlib.suppress(Refused):
        for command in plan_of(name.decode("latin-1"), arguments, inputs).commands:
            league.ask(command)
    assert digest(from_plain(json.loads(json.dumps(to_plain(league.state))))) == digest(league.state)


CONFIG = parse_config(BASE, source="test")
TARGETS: dict[str, Callable[[bytes, Path], None]] = {
    "names": read_name,
    "configs": read_config,
    "overrides": read_override,
    "status": read_status,
    "manifests": read_manifest,
    "weights": read_weights,
    "hosts": read_hosts,
    "clocks": read_clock,
    "frames": read_frame,
    "events": read_event,
    "requests": read_request,
}
plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(WORDS)
    | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS) | st.text(max_size=9), inner, max_size=3)
    ),
    max_leaves=6,
)
as_json = plain.map(lambda value: json.dumps(value).encode())
sections = st.sampled_from(sorted(tiny())).flatmap(
    lambda name: plain.map(lambda value: yaml.safe_dump({**tiny(), name: value}).encode())
)
keys = st.sampled_from(
    ("learner.gamma", "league.players.0.gate", "env.id", "a..b", "league.players.9.role", "seed", "league")
)
overrides = st.tuples(keys, plain).map(lambda pair: f"{pair[0]}={json.dumps(pair[1])}".encode())
events = st.tuples(st.sampled_from([*EVENTS, "Nothing"]), as_json).map(lambda pair: pair[0].encode() + b" " + pair[1])


@st.composite
def requests(draw: st.DrawFn) -> bytes:
    name = draw(st.sampled_from(sorted(OPERATIONS)))
    known = {argument.name: plain for argument in OPERATIONS[name].arguments}
    named = (
        st.sampled_from(("learner.entropy_cost", "players.main-agent-0.paused", "main_agent", "training", "main-0"))
        | plain
    )
    given = draw(st.fixed_dictionaries({}, optional=dict.fromkeys(known, named)))
    return name.encode() + b" " + json.dumps(given).encode()


INPUTS: dict[str, st.SearchStrategy[bytes]] = {
    "configs": sections | st.binary(max_size=200),
    "overrides": overrides,
    "status": as_json,
    "manifests": as_json,
    "events": events,
    "requests": requests(),
    "names": st.text(max_size=70).map(lambda text: text.encode("utf-8", "replace")),
}


@pytest.mark.parametrize("target", TARGETS)
def test_what_is_refused_is_refused_by_name(target: str, tmp_path: Path) -> None:
    @EXAMPLES
    @given(INPUTS.get(target, st.binary(max_size=300)))
    def check(content: bytes) -> None:
        with contextlib.suppress(LeagueError):
            TARGETS[target](content, tmp_path)

    check()


@pytest.mark.parametrize(("target", "content"), [(name, text) for name, texts in CORPUS.items() for text in texts])
def test_the_corpus_is_refused_by_name(target: str, content: str, tmp_path: Path) -> None:
    with contextlib.suppress(LeagueError):
        TARGETS[target](content.encode("latin-1"), tmp_path)


def test_the_corpus_has_every_target() -> None:
    assert set(CORPUS) == set(TARGETS)
