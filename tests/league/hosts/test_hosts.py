"""The plain hosts: leases become games, unrolls and outcomes; chunks become versions. No process, no daemon."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch

from league.agents.acting.central.central_policy import AskedRows, DirectInferenceClient, InferenceLost
from league.agents.acting.central.inference_host import InferenceHost
from league.agents.nets.network import Network
from league.agents.unroll.codec import ChunkHeader, Lz4Codec
from league.agents.unroll.unroll import Unrolls
from league.agents.weights import Weights
from league.core.state.records import Assignment
from league.envs.protocol import EnvConfig, EnvError, EnvSpec
from league.errors import StorageError
from league.hosts.actors import actor_host as actor_host_module
from league.hosts.actors.actor_host import ActorHost
from league.hosts.actors.actor_state_file import decode_actor_state, encode_actor_state
from league.hosts.learners.sync_learner_host import SyncLearnerHost
from league.hosts.protocol import HostState, InstallPlayer
from league.hosts.setup import HostSetup
from tests.agents.acting.test_arena_resume import equal_unrolls
from tests.league.hosts.host_cases import TIC_TAC_TOE, lease_of, paired, setup_of, weights_of


class Table:
    """Learners that keep every chunk and answer with the next weights of a table."""

    def __init__(self, setup: HostSetup) -> None:
        self._setup = setup
        self.version = 0
        self.chunks: list[tuple[str, bytes]] = []

    def push(self, player: str, chunk: bytes) -> Weights | None:
        self.chunks.append((player, chunk))
        self.version += 1
        return self.weights(player)

    def weights(self, player: str) -> Weights:
        assert "-s" not in player, "learners hold players, not their snapshots"
        return weights_of(self._setup, seed=self.version, version=self.version)

    def unrolls(self) -> list[tuple[ChunkHeader, Unrolls]]:
        return [Lz4Codec().decode(chunk) for _, chunk in self.chunks]


def actor(setup: HostSetup) -> ActorHost:
    return ActorHost(setup, name="actor-0", dtype=torch.float32)


def learner(setup: HostSetup) -> SyncLearnerHost:
    host = SyncLearnerHost(setup, dtype=torch.float32)
    host.install(InstallPlayer("main-0"))
    return host


def test_a_lease_sends_whole_chunks_and_keeps_the_rest_for_the_next() -> None:
    setup = setup_of(chunk_rows=8)
    host, table = actor(setup), Table(setup)
    decisions = 0
    for number in range(5):
        result = host.play(lease_of(lease_id=number, steps=13), frozen={}, learners=table)
        decisions += result.env_steps
        assert result.env_steps == 13 * 6
    rows = [unrolls.num_rows for _, unrolls in table.unrolls()]
    assert set(rows) == {8}
    recorded = sum(unrolls.num_steps for _, unrolls in table.unrolls())
    assert decisions - 12 * 5 - 8 * 4 < recorded <= decisions  # in the builder: under T a seat; waiting: under a chunk
    for header, unrolls in table.unrolls():
        assert (header.run, header.player) == ("tests", "main-0")
        assert (header.version_min, header.version_max) == (unrolls.versions.min(), unrolls.versions.max())
    host.close()
    host.close()


def test_a_chunk_that_was_sent_is_not_sent_again_after_its_lease_failed() -> None:
    setup = setup_of(chunk_rows=2)
    host, table = actor(setup), Table(setup)
    send = table.push

    def break_off(player: str, chunk: bytes) -> Weights | None:
        if len(table.chunks) == 2:
            raise LookupError
        return send(player, chunk)

    table.push = break_off  # type: ignore[method-assign]
    with pytest.raises(LookupError):
        host.play(lease_of(lease_id=1, steps=40), frozen={}, learners=table)
    table.push = send  # type: ignore[method-assign]
    host.play(lease_of(lease_id=2, steps=40), frozen={}, learners=table)
    chunks = [chunk for _, chunk in table.chunks]
    assert len(chunks) > 4 and len(set(chunks)) == len(chunks)
    host.close()


def test_new_weights_are_played_from_the_next_decision_on() -> None:
    setup = setup_of()
    host, table = actor(setup), Table(setup)
    host.play(lease_of(steps=60), frozen={}, learners=table)
    newest = [int(unrolls.versions.max()) for _, unrolls in table.unrolls()]
    assert newest == sorted(newest)
    assert newest[-1] >= len(newest) - 3


def test_frozen_opponents_and_bots_are_not_recorded() -> None:
    setup = setup_of()
    host, table = actor(setup), Table(setup)
    assignments = (*paired("main-0", "main-0-s0"), *paired("main-0", "bot:random"))
    assignments = tuple(replace(assignment, probability=0.25) for assignment in assignments)
    result = host.play(
        lease_of(*assignments, steps=80),
        frozen={"main-0-s0": weights_of(setup, seed=5)},
        learners=table,
    )
    assert {outcome.policies for outcome in result.outcomes} == {assignment.policies for assignment in assignments}
    recorded = sum(unrolls.num_steps for _, unrolls in table.unrolls())
    assert 0 < recorded <= result.env_steps * 0.6
    assert host.missing(assignments) == []
    assert host.missing((Assignment(("main-0-s0", "other-s3"), (False, False), 1.0),)) == ["other-s3"]


def test_a_rating_match_records_nothing() -> None:
    setup = setup_of()
    host, table = actor(setup), Table(setup)
    frozen = {name: weights_of(setup, seed=seed) for seed, name in enumerate(("a-s0", "a-s1"))}
    result = host.play(
        lease_of(*paired("a-s0", "a-s1", records=False), home=None, steps=60),
        frozen=frozen,
        learners=table,
    )
    assert sum(outcome.games for outcome in result.outcomes) > 20
    assert table.chunks == []


def test_games_of_the_weights_before_a_reset_are_thrown_away(monkeypatch: pytest.MonkeyPatch) -> None:
    setup = setup_of()
    host, table = actor(setup), Table(setup)
    host.play(lease_of(steps=3), frozen={}, learners=table)
    monkeypatch.setattr(actor_host_module, "make", lambda *_, **__: pytest.fail("the games were made again"))
    result = host.play(lease_of(lease_id=2, steps=4, generation=1), frozen={}, learners=table)
    assert sum(outcome.games for outcome in result.outcomes) == 0  # four turns end no game that began with them


def test_unrolls_of_the_weights_before_a_reset_are_thrown_away() -> None:
    setup = setup_of(chunk_rows=32)
    host, table = actor(setup), Table(setup)
    host.play(lease_of(steps=20), frozen={}, learners=table)
    host.play(lease_of(lease_id=2, steps=14, generation=1), frozen={}, learners=table)
    assert table.chunks == []  # with those before the reset there would be enough for a chunk
    host.play(lease_of(lease_id=3, steps=20, generation=1), frozen={}, learners=table)
    assert len(table.chunks) == 1


def test_only_so_many_frozen_networks_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(actor_host_module, "MAX_FROZEN", 2)
    setup = setup_of()
    host, table = actor(setup), Table(setup)
    for name in ("a-s0", "a-s1", "a-s0", "a-s2"):
        frozen = {name: weights_of(setup, seed=1)}
        host.play(lease_of(*paired("main-0", name), steps=2), frozen=frozen, learners=table)
    wanted = tuple(Assignment((name, name), (False, False), 1.0) for name in ("a-s0", "a-s1", "a-s2"))
    assert host.missing(wanted) == ["a-s1"]


@pytest.mark.parametrize("maximum", [1, 2])
def test_what_a_lease_needs_makes_no_room_for_what_else_it_needs(monkeypatch: pytest.MonkeyPatch, maximum: int) -> None:
    monkeypatch.setattr(actor_host_module, "MAX_FROZEN", maximum)
    setup = setup_of()
    host, table = actor(setup), Table(setup)
    weights = {name: weights_of(setup, seed=1) for name in ("a-s0", "a-s1", "a-s2")}
    for first, second in (("a-s0", "a-s1"), ("a-s2", "a-s0"), ("a-s1", "a-s0"), ("a-s1", "a-s2")):
        assignments = tuple(Assignment(("main-0", name), (True, False), 0.5) for name in (first, second))
        missing = {name: weights[name] for name in host.missing(assignments) if name in weights}
        assert host.play(lease_of(*assignments, steps=20), frozen=missing, learners=table).outcomes


def test_a_loaded_actor_host_continues_as_the_saved_one() -> None:
    setup = setup_of()
    whole, again, left, right = actor(setup), actor(setup), Table(setup), Table(setup)
    frozen = {"main-0-s0": weights_of(setup, seed=5)}
    table = paired("main-0", "main-0-s0")
    whole.play(lease_of(*table, steps=17), frozen=frozen, learners=left)
    saved = whole.save()
    assert saved is not None
    hosts, lease_id = decode_actor_state(encode_actor_state(saved, next_lease_id=9))
    assert lease_id == 9
    right.version = left.version
    left.chunks.clear()
    again.load(hosts, frozen=frozen, learners=right)
    one = whole.play(lease_of(*table, steps=40), frozen=frozen, learners=left)
    two = again.play(lease_of(*table, steps=40), frozen=frozen, learners=right)
    assert one == two
    pairs = list(zip(left.unrolls(), right.unrolls(), strict=True))
    assert len(pairs) > 2
    assert all(header == other and equal_unrolls(a, b) for (header, a), (other, b) in pairs)


def test_a_game_that_cannot_be_saved_is_not_saved_by_halves() -> None:
    setup = setup_of(EnvConfig("pettingzoo:classic/tictactoe_v3"))
    host = actor(setup)
    host.play(lease_of(steps=3), frozen={}, learners=Table(setup))
    assert host.save() is None
    host.close()


@pytest.mark.parametrize("how", ["raise", "nan_reward", "inf_obs"])
def test_a_broken_game_raises_its_own_error(how: str) -> None:
    setup = setup_of(EnvConfig("tests.league.bad_envs:breaking", {"how": how, "after": 3}))
    host = actor(setup)
    with pytest.raises(EnvError, match="rock_paper_scissors"):
        host.play(lease_of(steps=40), frozen={}, learners=Table(setup))


def chunks_of(setup: HostSetup, weights: Weights, *, steps: int = 40) -> list[bytes]:
    """Chunks of the home player under some weights."""

    class Fixed(Table):
        def weights(self, player: str) -> Weights:
            return weights

    fixed = Fixed(setup)
    actor(setup).play(lease_of(steps=steps), frozen={}, learners=fixed)
    return [chunk for _, chunk in fixed.chunks]


def test_a_batch_of_rows_makes_a_version_and_a_rest_waits() -> None:
    setup = setup_of(chunk_rows=4)
    host = learner(setup)
    versions = [host.push("main-0", chunk).version for chunk in chunks_of(setup, host.newest("main-0").weights)[:6]]
    assert versions == [0, 1, 1, 2, 2, 3]
    (progress,) = host.progress()
    assert (progress.progress.version, progress.skipped) == (3, 0)
    assert progress.update is not None


def test_rows_left_of_a_chunk_are_learnt_from_with_the_next() -> None:
    setup = setup_of(chunk_rows=12)
    host = learner(setup)
    chunks = chunks_of(setup, host.newest("main-0").weights, steps=80)[:4]
    assert [host.push("main-0", chunk).version for chunk in chunks] == [1, 3, 4, 6]


def test_a_hosts_file_reads_back_what_it_wrote_and_nothing_else() -> None:
    arrays = {"a/b": np.arange(6).reshape(2, 3)[:, ::2], "round": np.array(4), "none": np.zeros((0, 2))}
    tables = {"main-0": paired("main-0", "main-0-s0"), "": (Assignment(("bot:x", "b-s1"), (False, False), 0.1),)}
    state = HostState(arrays, tables, {"main-0": 3})
    assert state.policies == {"main-0", "main-0-s0", "bot:x", "b-s1"}
    content = encode_actor_state(state, next_lease_id=7)
    back, lease_id = decode_actor_state(content)
    assert (back.assignments, back.generations, lease_id) == (tables, {"main-0": 3}, 7)
    for name, array in state.arrays.items():
        assert back.arrays[name].shape == array.shape
        assert np.array_equal(back.arrays[name], array)
    for place in range(0, len(content), 7):
        broken = bytearray(content)
        broken[place] ^= 16
        with pytest.raises(StorageError):
            decode_actor_state(bytes(broken))
    for length in (0, 10, 32, 40, len(content) - 1):
        with pytest.raises(StorageError):
            decode_actor_state(content[:length])


class SilentOnce(Table):
    """Learners that once do not answer."""

    is_silent = True

    def push(self, player: str, chunk: bytes) -> Weights | None:
        if self.is_silent and self.chunks:
            self.is_silent = False
            raise TimeoutError
        return super().push(player, chunk)


@pytest.mark.parametrize("env", [TIC_TAC_TOE, EnvConfig("pettingzoo:classic/tictactoe_v3", workers=2)])
def test_games_in_two_parts_play_leases_as_one(env: EnvConfig) -> None:
    setup = replace(setup_of(env, num_envs=5), num_splits=2)
    host, table = actor(setup), SilentOnce(setup)
    try:
        with pytest.raises(TimeoutError):
            host.play(lease_of(steps=60), frozen={}, learners=table)
        pending = host.play(lease_of(lease_id=2, steps=60), frozen={}, learners=table)
        assert pending.env_steps == 300
        assert {outcome.policies for outcome in pending.outcomes} == {("main-0", "main-0")}
        assert 300 // 9 < sum(outcome.games for outcome in pending.outcomes) < 2 * 300 // 5
        again = host.play(lease_of(lease_id=3, steps=60, generation=1), frozen={}, learners=table)
        assert sum(outcome.decisions for outcome in again.outcomes) <= again.env_steps
        for header, unrolls in table.unrolls():
            assert header.player == "main-0" and np.isfinite(unrolls.log_probs).all()
        assert host.save() is None
    finally:
        host.close()


class FailingInference(DirectInferenceClient):
    """An inference host in this process that is lost at one request, and there again at the next."""

    lost_at = -1

    def ask(self, asked: Sequence[AskedRows], *, first: int, table: int) -> int:
        self.lost_at -= 1
        if self.lost_at == 0:
            raise InferenceLost("the inference host was lost: it has ended")
        return super().ask(asked, first=first, table=table)


def test_a_lost_inference_host_costs_the_games_in_flight_and_no_complete_unroll() -> None:
    setup, clients = setup_of(chunk_rows=8), list[FailingInference]()

    def connect(spec: EnvSpec, network: Network, capacity: int) -> FailingInference:
        clients.append(FailingInference(InferenceHost(network), spec, network, capacity=capacity))
        return clients[0]

    host, table = ActorHost(setup, name="actor-0", dtype=torch.float32, connect=connect), Table(setup)
    clients[0].lost_at = 8
    with pytest.raises(InferenceLost):
        host.play(lease_of(steps=40), frozen={}, learners=table)
    result = host.play(lease_of(lease_id=2, steps=4), frozen={}, learners=table)
    assert sum(outcome.games for outcome in result.outcomes) == 0  # four turns end no game that began with them
    host.play(lease_of(lease_id=3, steps=60), frozen={}, learners=table)
    for header, unrolls in table.unrolls():
        assert header.player == "main-0"
        assert unrolls.num_rows == 8
        assert np.isfinite(unrolls.log_probs).all()
    host.close()
