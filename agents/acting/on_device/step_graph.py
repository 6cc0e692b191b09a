"""Runs a step again and again: on a GPU as one recorded CUDA graph, elsewhere as it is."""

from __future__ import annotations

from collections.abc import Callable

import torch

WARM_UP = 3
"""Plain runs before a graph is recorded: libraries set themselves up in the first ones, which must not be recorded."""


class StepGraph:
    """A step that reads and writes the same tensors each time, and makes no other that outlives it.

    Args:
      step: what is repeated; it never waits for the device.
    """

    def __init__(self, step: Callable[[], None], *, device: torch.device) -> None:
        self._step = step
        self._device = device
        self._graph: torch.cuda.CUDAGraph | None = None
        self._plain_runs = 0

    def run(self) -> None:
        """Make one step."""
        if self._device.type != "cuda":
            self._step()
        elif self._graph is not None:
            self._graph.replay()
        elif self._plain_runs < WARM_UP:
            self._plain_runs += 1
            self._run_aside()
        else:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                self._step()
            self._graph = graph
            graph.replay()

    def _run_aside(self) -> None:
        """A plain run in another stream than the default one, as a recording needs it before."""
        stream = torch.cuda.Stream(self._device)  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream(self._device))
        with torch.cuda.stream(stream):
            self._step()
        torch.cuda.current_stream(self._device).wait_stream(stream)
