"""A pipeline in one process: it starts on the first microbatch, and its stages end with the batch that they work on."""

from __future__ import annotations

import queue
import threading

import numpy as np
import pytest
import torch

from league.agents.learner.algorithms.vtrace import VTraceObjective
from league.agents.learner.build import build_learner
from league.agents.learner.data.batch import Batch
from league.agents.learner.learner import Learner
from league.agents.learner.pipeline.threaded_pipeline import ThreadedPipelineBackend, _Parcel
from league.agents.unroll.unroll import FIELDS
from tests.agents.learner.learner_cases import BOARD_GAME, LSTM, network_of, small_config, unrolls_of

PIPE = {"backend": "threaded_pipeline", "stages": 2, "microbatches": 4}
DEADLINE_S = 20.0


def learner_of(**changes: object) -> Learner:
    return build_learner(BOARD_GAME, LSTM, small_config(**changes), seed=1, dtype=torch.float32)


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
def test_first_microbatch_is_through_all_stages_before_the_second_has_arrived(schedule: str, monkeypatch) -> None:
    piped, single = learner_of(**PIPE, schedule=schedule), learner_of(microbatches=4)
    unrolls = unrolls_of(BOARD_GAME, network_of(BOARD_GAME, LSTM), rows=12, steps=5)
    expected = single.update(unrolls, budget_fraction=0.0)
    losses = threading.Semaphore(0)
    plain = VTraceObjective.loss

    def counted(self, *given):  # type: ignore[no-untyped-def]
        result = plain(self, *given)
        losses.release()
        return result

    monkeypatch.setattr(VTraceObjective, "loss", counted)

    def arriving():  # type: ignore[no-untyped-def]
        for at in range(0, 12, 3):
            yield unrolls.rows(at, at + 3)
            assert losses.acquire(timeout=DEADLINE_S), "the block that is here is waited with for those to come"

    report = piped.update_stream(arriving(), budget_fraction=0.0)
    piped.close()
    assert report.gradient_norm == pytest.approx(expected.gradient_norm, rel=1e-5)
    np.testing.assert_allclose(piped.publish().vector, single.publish().vector, rtol=1e-4, atol=1e-6)


def test_batch_whose_rows_stop_coming_changes_nothing_and_can_be_begun_again() -> None:
    piped, single = learner_of(**PIPE), learner_of(microbatches=4)
    unrolls = unrolls_of(BOARD_GAME, network_of(BOARD_GAME, LSTM), rows=12, steps=5)
    before = piped.publish().digest()

    def stopping():  # type: ignore[no-untyped-def]
        yield unrolls.rows(0, 3)
        raise TimeoutError("no more rows")

    with pytest.raises(TimeoutError, match="no more rows"):
        piped.update_stream(stopping(), budget_fraction=0.0)
    assert piped.publish().digest() == before and piped.version == 0
    expected = single.update(unrolls, budget_fraction=0.0)
    again = piped.update_stream((unrolls.rows(at, at + 3) for at in range(0, 12, 3)), budget_fraction=0.0)
    piped.close()
    assert again.gradient_norm == pytest.approx(expected.gradient_norm, rel=1e-5)


class Gate:
    """Holds the first backward pass of a network's last block until it is opened."""

    def __init__(self, learner: Learner) -> None:
        self.begun, self.opened = threading.Event(), threading.Event()
        module = learner._updater._heads  # type: ignore[attr-defined]  # the updater of one process
        module.register_forward_hook(lambda _module, _given, result: (GatedBackward.apply(result[0], self), result[1]))

    def pass_once(self) -> None:
        if not self.begun.is_set():
            self.begun.set()
            assert self.opened.wait(timeout=DEADLINE_S)


class GatedBackward(torch.autograd.Function):
    """The identity; its backward pass goes through a gate."""

    @staticmethod
    def forward(ctx, features, gate):  # type: ignore[no-untyped-def]
        ctx.gate = gate
        return features.view_as(features)

    @staticmethod
    def backward(ctx, gradient):  # type: ignore[no-untyped-def]
        ctx.gate.pass_once()
        return gradient, None


def stage_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("stage-")]


def join_all(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.join(timeout=DEADLINE_S)
        assert not thread.is_alive()


def test_a_stage_at_work_when_a_batch_fails_adds_nothing_to_the_next_one() -> None:
    piped, single = learner_of(**PIPE), learner_of(microbatches=4)
    unrolls = unrolls_of(BOARD_GAME, network_of(BOARD_GAME, LSTM), rows=12, steps=5)
    expected = single.update(unrolls, budget_fraction=0.0)
    gate = Gate(piped)

    def stopping():  # type: ignore[no-untyped-def]
        yield unrolls.rows(0, 3)
        assert gate.begun.wait(timeout=DEADLINE_S)
        threading.Timer(0.3, gate.opened.set).start()
        raise TimeoutError("no more rows")

    with pytest.raises(TimeoutError, match="no more rows"):
        piped.update_stream(stopping(), budget_fraction=0.0)
    late = stage_threads()

    def again():  # type: ignore[no-untyped-def]
        join_all(late)
        yield from (unrolls.rows(at, at + 3) for at in range(0, 12, 3))

    report = piped.update_stream(again(), budget_fraction=0.0)
    piped.close()
    assert not late, "the stages end before the error leaves"
    assert report.gradient_norm == pytest.approx(expected.gradient_norm, rel=1e-5)


def test_a_hung_stage_that_comes_back_after_the_restart_adds_nothing() -> None:
    piped, single = learner_of(**PIPE, stage_timeout_s=0.2), learner_of(microbatches=4)
    unrolls = unrolls_of(BOARD_GAME, network_of(BOARD_GAME, LSTM), rows=12, steps=5)
    expected = single.update(unrolls, budget_fraction=0.0)
    gate = Gate(piped)
    report = piped.update(unrolls, budget_fraction=0.0)
    assert report.skipped and piped.restarts == 1 and gate.begun.is_set()
    late = stage_threads()
    assert late

    def again():  # type: ignore[no-untyped-def]
        gate.opened.set()
        join_all(late)
        yield from (unrolls.rows(at, at + 3) for at in range(0, 12, 3))

    report = piped.update_stream(again(), budget_fraction=0.0)
    piped.close()
    assert report.gradient_norm == pytest.approx(expected.gradient_norm, rel=1e-5)
    np.testing.assert_allclose(piped.publish().vector, single.publish().vector, rtol=1e-4, atol=1e-6)


def test_closing_ends_the_stages() -> None:
    piped = learner_of(**PIPE)
    piped.update(unrolls_of(BOARD_GAME, network_of(BOARD_GAME, LSTM), rows=12, steps=5), budget_fraction=0.0)
    assert len(stage_threads()) == 2
    piped.close()
    assert not stage_threads()


class FakeTensor:
    """Counts the streams that its memory is recorded for."""

    def __init__(self) -> None:
        self.recorded: list[object] = []

    def record_stream(self, stream: object) -> None:
        self.recorded.append(stream)


class FakeStream:
    """Knows which events it waited for."""

    def __init__(self) -> None:
        self.waited: list[object] = []

    def wait_event(self, event: object) -> None:
        self.waited.append(event)


@pytest.mark.parametrize("with_features", [False, True])
def test_every_tensor_of_a_microbatch_is_recorded_for_the_stream_of_the_stage(with_features: bool, monkeypatch) -> None:
    piped = learner_of(**PIPE)
    stream, ready, features = FakeStream(), object(), FakeTensor()
    monkeypatch.setattr(torch.cuda, "current_stream", lambda _device: stream)
    batch = Batch(
        obs={"board": FakeTensor(), "clock": FakeTensor()},  # type: ignore[dict-item]
        learn=FakeTensor(),  # type: ignore[arg-type]
        precomputed={"targets": FakeTensor()},  # type: ignore[dict-item]
        **{line.name: FakeTensor() for line in FIELDS},  # type: ignore[arg-type]
    )
    box: queue.SimpleQueue[_Parcel | None] = queue.SimpleQueue()
    box.put(_Parcel(features if with_features else None, batch, ready))  # type: ignore[arg-type]
    backend = piped._updater._backend  # type: ignore[attr-defined]
    assert isinstance(backend, ThreadedPipelineBackend)
    backend._take(box)
    piped.close()
    assert stream.waited == [ready]
    assert features.recorded == ([stream] if with_features else [])
    given = batch.tensors()
    assert len(given) == 4 + len(FIELDS)
    assert all(tensor.recorded == [stream] for tensor in given)  # type: ignore[attr-defined]
