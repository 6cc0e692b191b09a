"""Runs a step again and again: on a GPU as one recorded CUDA graph, elsewhere as it is."""

from __future__ import annotations

import logging
from collections.abc import Callable

import torch

WARM_UP = 3
"""Plain runs before a graph is recorded: libraries set themselves up in the first ones, which must not be recorded."""

logger = logging.getLogger(__name__)


class StepGraph:
    """A step that reads and writes the same tensors each time, and makes no other that outlives it.

    One that cannot be recorded runs as it is: a network of the user's own may look at numbers of the device.

    Args:
      step: what is repeated.
    """

    def __init__(self, step: Callable[[], None], *, device: torch.device) -> None:
        self._step = step
        self._device = device
        self._graph: torch.cuda.CUDAGraph | None = None
        self._plain_runs = WARM_UP if device.type == "cuda" else -1  # before a graph is recorded; -1 for ever

    def run(self) -> None:
        """Make one step."""
        if self._plain_runs == 0 and self._graph is None:
            self._record()
        if self._graph is not None:
            self._graph.replay()
        elif self._plain_runs > 0:
            self._plain_runs -= 1
            self._run_aside()
        else:
            self._step()

    def _record(self) -> None:
        """Record the graph; nothing is computed meanwhile."""
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph):
                self._step()
        except RuntimeError as error:  # torch's own word for whatever a recording does not permit
            logger.warning("steps of games on the device are not recorded as a graph: %s", error)
            self._plain_runs = -1
        else:
            self._graph = graph

    def _run_aside(self) -> None:
        """A plain run in another stream than the default one, as a recording needs it before."""
        stream = torch.cuda.Stream(self._device)  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream(self._device))
        with torch.cuda.stream(stream):
            self._step()
        torch.cuda.current_stream(self._device).wait_stream(stream)
