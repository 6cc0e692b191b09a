"""A pipeline in one process begins with the first microbatch while the others are still on their way."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import torch
from learner_cases import BOARD_GAME, LSTM, network_of, small_config, unrolls_of

from agents.learner.actor_critic import VTraceObjective
from agents.learner.build import build_learner
from agents.learner.learner import Learner

PIPE = {"backend": "local_pipe", "stages": 2, "microbatches": 4}
DEADLINE_S = 20.0


def learner_of(**changes: object) -> Learner:
    return build_learner(BOARD_GAME, LSTM, small_config(**changes), seed=1, dtype=torch.float32)


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
def test_first_microbatch_is_through_all_stages_before_the_second_has_arrived(schedule: str, monkeypatch) -> None:
    piped, single = learner_of(**PIPE, schedule=schedule), learner_of(microbatches=4)
    unrolls = unrolls_of(BOARD_GAME, network_of(BOARD_GAME, LSTM), rows=12, steps=5)
    expected = single.update(unrolls, share=0.0)
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

    report = piped.update_stream(arriving(), share=0.0)
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
        piped.update_stream(stopping(), share=0.0)
    assert piped.publish().digest() == before and piped.version == 0
    expected = single.update(unrolls, share=0.0)
    again = piped.update_stream((unrolls.rows(at, at + 3) for at in range(0, 12, 3)), share=0.0)
    piped.close()
    assert again.gradient_norm == pytest.approx(expected.gradient_norm, rel=1e-5)
