"""A recorded step is made as often as it is asked for: recording makes none."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest
import torch

from league.agents.acting.on_device.step_graph import WARM_UP, StepGraph
from tests.agents.pretend_gpu import GPU, pretended_gpu


class Recording:
    """Stands for CUDA's graphs: while one is recorded nothing is done, and a replay makes one step."""

    def __init__(self) -> None:
        self.steps = self.replays = self.recorded = 0
        self.is_recording = False

    def step(self) -> None:
        self.steps += not self.is_recording

    def replay(self) -> None:
        self.steps += 1
        self.replays += 1

    @contextlib.contextmanager
    def graph(self, _: object) -> Iterator[None]:
        self.recorded += 1
        self.is_recording = True
        try:
            yield
        finally:
            self.is_recording = False


def test_each_run_is_one_step_and_the_graph_is_recorded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    recording = Recording()
    with pretended_gpu(monkeypatch):
        monkeypatch.setattr(torch.cuda, "CUDAGraph", lambda: recording)
        monkeypatch.setattr(torch.cuda, "graph", recording.graph)
        graph = StepGraph(recording.step, device=GPU)
        for number in range(1, WARM_UP + 6):
            graph.run()
            assert recording.steps == number
    assert (recording.recorded, recording.replays) == (1, 5)


def test_a_step_that_cannot_be_recorded_is_run_as_it_is(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    recording = Recording()

    @contextlib.contextmanager
    def refused(_: object) -> Iterator[None]:
        with recording.graph(_):
            yield
        raise RuntimeError("operation not permitted when stream is capturing")

    with pretended_gpu(monkeypatch):
        monkeypatch.setattr(torch.cuda, "CUDAGraph", lambda: recording)
        monkeypatch.setattr(torch.cuda, "graph", refused)
        graph = StepGraph(recording.step, device=GPU)
        for number in range(1, WARM_UP + 6):
            graph.run()
            assert recording.steps == number
    assert (recording.recorded, recording.replays) == (1, 0)
    assert "not permitted when stream is capturing" in caplog.text


def test_a_cpu_runs_the_step_as_it_is() -> None:
    recording = Recording()
    graph = StepGraph(recording.step, device=torch.device("cpu"))
    for _ in range(WARM_UP + 6):
        graph.run()
    assert (recording.steps, recording.recorded) == (WARM_UP + 6, 0)
