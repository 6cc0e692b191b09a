"""Rows in = rows out, in order, as soon as they are there, never more than there is room for."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import torch

from league.agents.learner.build import build_learner
from league.agents.learner.data import feeder as feeder_module
from league.agents.learner.data.batch import batch_from
from league.agents.learner.data.feeder import Feeder
from league.agents.learner.errors import FeederClosedError, FeederError, FeederFullError, FeederTimeoutError
from league.agents.nets.network import build_network
from league.agents.unroll.codec import ChunkHeader, Lz4Codec
from league.agents.unroll.ring import UnrollRing
from league.agents.unroll.unroll import Unrolls, UnrollSpec, concatenate
from tests.agents.learner.learner_cases import BOARD_GAME, CPU, LSTM, MLP, small_config, unrolls_of

NETWORK = build_network(BOARD_GAME, LSTM, seed=1)
UNROLLS = UnrollSpec.of(BOARD_GAME, NETWORK, unroll_length=5)
HEADER = ChunkHeader(run="r", player="p", version_min=0, version_max=3)
DEADLINE_S = 20.0


def decode(chunk: bytes) -> Unrolls:
    return Lz4Codec().decode(chunk)[1]


@pytest.fixture
def feeder():  # type: ignore[no-untyped-def]
    made = Feeder(UNROLLS, small_config(microbatches=4), decode=decode)
    made.start()
    yield made
    made.close()
    made.close()


def rows_of(count: int, *, seed: int) -> tuple[Unrolls, bytes]:
    unrolls = unrolls_of(BOARD_GAME, NETWORK, rows=count, steps=5, seed=seed)
    return unrolls, Lz4Codec().encode(unrolls, HEADER)


def assert_same(first: Unrolls, second: Unrolls) -> None:
    np.testing.assert_equal(dict(first.obs), dict(second.obs))
    for name in ("action_mask", "resets", "actions", "log_probs", "rewards", "discounts", "valid", "versions", "core"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name), err_msg=name)


def test_rows_come_out_as_they_went_in_across_chunks_and_around_the_end_of_the_ring(feeder) -> None:
    pushed, taken = [], []

    def produce() -> None:
        for seed in range(12):
            unrolls, chunk = rows_of(5, seed=seed)
            feeder.push(chunk, num_rows=5, timeout_s=DEADLINE_S)
            pushed.append(unrolls)

    producer = threading.Thread(target=produce)
    producer.start()
    for _ in range(5):
        with feeder.batch(timeout_s=DEADLINE_S) as blocks:
            copies = [concatenate([block, block.rows(0, 0)]) for block in blocks]
            assert [block.num_rows for block in copies] == [3, 3, 3, 3]
            taken.extend(copies)
    producer.join()
    assert_same(concatenate(taken), concatenate(pushed))
    report = feeder.report()
    assert (report.chunks, report.rows, report.refused) == (12, 60, 0)
    assert feeder.report().rows == 0


def test_several_threads_decode_every_row_once_and_at_the_same_time() -> None:
    """Two chunks meet inside the decoder; rows may leave in another order than they came."""
    together = threading.Barrier(2, timeout=DEADLINE_S)

    def meeting(chunk: bytes) -> Unrolls:
        together.wait()
        return decode(chunk)

    feeder = Feeder(UNROLLS, small_config(microbatches=4), decode=meeting, threads=2)
    feeder.start()
    pushed = []
    for seed in range(4):
        unrolls, chunk = rows_of(6, seed=seed)
        pushed.append(unrolls)
        feeder.push(chunk, num_rows=6, timeout_s=DEADLINE_S)
    taken = []
    for _ in range(2):
        with feeder.batch(timeout_s=DEADLINE_S) as blocks:
            taken += [concatenate([block, block.rows(0, 0)]) for block in blocks]
    feeder.close()
    order = lambda unrolls: sorted(row.tobytes() for row in unrolls.log_probs)  # noqa: E731
    assert order(concatenate(taken)) == order(concatenate(pushed))
    assert feeder.report().rows == 24


def test_rows_behind_a_chunk_that_is_still_being_copied_are_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    """The copy of the chunk with the first place waits until the others are in the ring."""
    others, first_may = threading.Barrier(3, timeout=DEADLINE_S), threading.Event()
    plain = UnrollRing.write

    def write(ring: UnrollRing, unrolls: Unrolls, *, at: int) -> None:
        if at == 0:
            first_may.wait(DEADLINE_S)
        plain(ring, unrolls, at=at)
        if at != 0:
            others.wait()

    monkeypatch.setattr(UnrollRing, "write", write)
    feeder = Feeder(UNROLLS, small_config(microbatches=4), decode=decode, threads=3)
    feeder.start()
    pushed = [rows_of(4, seed=seed) for seed in range(3)]
    for _, chunk in pushed:
        feeder.push(chunk, num_rows=4)
    others.wait()
    assert feeder.rows_ready == 0
    first_may.set()
    with feeder.batch(timeout_s=DEADLINE_S) as blocks:
        taken = concatenate(list(blocks))
    order = lambda unrolls: sorted(row.tobytes() for row in unrolls.log_probs)  # noqa: E731
    assert order(taken) == order(concatenate([unrolls for unrolls, _ in pushed]))
    feeder.close()


def test_credits_hold_producers_back_at_two_batches(feeder) -> None:
    assert feeder.credits == 24
    for seed in range(2):
        feeder.push(rows_of(12, seed=seed)[1], num_rows=12)
    assert feeder.credits == 0
    with pytest.raises(FeederFullError, match="1 rows came where there is room for 0"):
        feeder.push(rows_of(1, seed=3)[1], num_rows=1, timeout_s=0.01)
    with feeder.batch(timeout_s=DEADLINE_S) as blocks:
        next(blocks)
        assert feeder.credits == 0, "rows that are being learnt from must not be overwritten"
    assert feeder.credits == 12


def test_first_block_is_handed_out_before_the_last_has_come(feeder) -> None:
    feeder.push(rows_of(4, seed=0)[1], num_rows=4)
    with feeder.batch(timeout_s=DEADLINE_S) as blocks:
        assert next(blocks).num_rows == 3
        feeder.push(rows_of(8, seed=1)[1], num_rows=8)
        assert len(list(blocks)) == 3


def test_missing_rows_end_the_wait_at_the_deadline_and_are_not_lost(feeder) -> None:
    first, chunk = rows_of(4, seed=0)
    feeder.push(chunk, num_rows=4)
    with pytest.raises(FeederTimeoutError, match="4 of 12 rows"), feeder.batch(timeout_s=0.2) as blocks:
        list(blocks)
    second, chunk = rows_of(8, seed=1)
    feeder.push(chunk, num_rows=8)
    with feeder.batch(timeout_s=DEADLINE_S) as blocks:
        assert_same(concatenate([concatenate(list(blocks)), first.rows(0, 0)]), concatenate([first, second]))


def test_rows_that_made_the_learner_raise_do_not_come_again(feeder) -> None:
    feeder.push(rows_of(12, seed=0)[1], num_rows=12)
    with pytest.raises(ZeroDivisionError), feeder.batch(timeout_s=DEADLINE_S) as blocks:
        list(blocks)
        raise ZeroDivisionError
    assert feeder.credits == 24


def test_damaged_and_wrongly_announced_chunks_are_refused_and_counted_and_give_their_credits_back(feeder) -> None:
    chunk = rows_of(6, seed=0)[1]
    for bad, rows in ((chunk[:-1] + b"?", 6), (chunk, 5)):
        feeder.push(bad, num_rows=rows)
    feeder.push(rows_of(24, seed=1)[1], num_rows=24, timeout_s=DEADLINE_S)  # room for all of the ring
    report = feeder.report()
    assert report.refused == 2 and "announced as 5" in report.reason


def test_a_wait_in_vain_names_what_was_refused(feeder) -> None:
    feeder.push(b"nonsense", num_rows=4)
    with pytest.raises(FeederTimeoutError, match=r"0 of 12 rows .* refused: "), feeder.batch(timeout_s=0.2) as blocks:
        list(blocks)


def test_unrolls_of_another_shape_are_refused(feeder) -> None:
    longer = unrolls_of(BOARD_GAME, NETWORK, rows=6, steps=7)
    feeder.push(Lz4Codec().encode(longer, HEADER), num_rows=6)
    feeder.push(rows_of(24, seed=1)[1], num_rows=24, timeout_s=DEADLINE_S)  # room for all of the ring
    assert "rows of shape" in feeder.report().reason


def test_failure_of_the_decoder_reaches_the_learner_and_the_producer() -> None:
    def explode(_: bytes) -> Unrolls:
        raise RuntimeError("out of order")

    feeder = Feeder(UnrollSpec(BOARD_GAME, 5), small_config(), decode=explode)
    feeder.start()
    feeder.push(b"", num_rows=1)
    with pytest.raises(FeederError, match="out of order"), feeder.batch(timeout_s=DEADLINE_S) as blocks:
        next(blocks)
    with pytest.raises(FeederError, match="out of order"):
        feeder.push(b"", num_rows=1)
    feeder.close()


def test_closing_wakes_a_waiting_learner(feeder) -> None:
    raised = []

    def wait() -> None:
        try:
            with feeder.batch(timeout_s=DEADLINE_S) as blocks:
                next(blocks)
        except FeederClosedError as error:
            raised.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    feeder.close()
    waiting.join(timeout=DEADLINE_S)
    assert raised


def test_closing_waits_for_a_decoding_thread_within_a_deadline(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(feeder_module, "END_S", 0.05)
    begun, go_on = threading.Event(), threading.Event()

    def slow(chunk: bytes) -> Unrolls:
        begun.set()
        go_on.wait(DEADLINE_S)
        raise ValueError("late")

    feeder = Feeder(UNROLLS, small_config(), decode=slow)
    feeder.start()
    feeder.push(b"", num_rows=1)
    assert begun.wait(DEADLINE_S)
    feeder.close()
    assert "feeder-0 has not ended after 0.05 s" in caplog.text
    go_on.set()
    feeder.close()
    assert len(caplog.messages) == 1


def test_idle_fraction_is_the_time_waited_by_the_time_passed() -> None:
    now = [0.0]
    feeder = Feeder(UnrollSpec(BOARD_GAME, 5), small_config(), decode=decode, clock=lambda: now[0])
    network = build_network(BOARD_GAME, MLP, seed=1)
    chunk = Lz4Codec().encode(unrolls_of(BOARD_GAME, network, rows=12, steps=5), HEADER)
    feeder.push(chunk, num_rows=12)
    waiting = feeder._changed.wait_for

    def waits_three_seconds(*given: object, **named: object) -> object:
        feeder._store(chunk, 12)
        now[0] += 3.0
        return waiting(*given, **named)

    feeder._changed.wait_for = waits_three_seconds
    with feeder.batch(timeout_s=DEADLINE_S) as blocks:
        list(blocks)
    now[0] += 9.0
    report = feeder.report()
    assert report.waited_s == 3.0 and report.idle_fraction == pytest.approx(0.25)


def test_learner_fed_from_the_ring_makes_the_same_update_as_from_memory(feeder) -> None:
    fed, direct = (
        build_learner(BOARD_GAME, LSTM, small_config(microbatches=4), seed=1, dtype=torch.float32) for _ in range(2)
    )
    for seed in range(3):
        unrolls, chunk = rows_of(12, seed=seed)
        feeder.push(chunk, num_rows=12)
        with feeder.batch(timeout_s=DEADLINE_S) as blocks:
            report = fed.update_stream(blocks, budget_fraction=0.0)
        assert report.steps == direct.update(unrolls, budget_fraction=0.0).steps
    assert fed.publish().digest() == direct.publish().digest()


def test_every_byte_of_a_decision_is_copied_once_on_its_way_to_the_batch(feeder, monkeypatch) -> None:
    copied, copyto = [], np.copyto

    def counting(into: np.ndarray, *given: object, **options: object) -> None:
        copied.append(into.nbytes)
        copyto(into, *given, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(np, "copyto", counting)
    feeder.push(rows_of(12, seed=0)[1], num_rows=12)
    with feeder.batch(timeout_s=DEADLINE_S) as blocks:
        for block in blocks:
            arrays = block.arrays()
            batch = batch_from(block, oldest_version=0, device=CPU)
            tensors = batch.arrays()
            assert {name: tensors[name].data_ptr() for name in arrays} == {
                name: array.ctypes.data for name, array in arrays.items()
            }
            row_bytes = sum(array[:1].nbytes for array in arrays.values())
    assert sum(copied) == 12 * row_bytes
