"""Sums over replicas whose parts are compressed on the way: what a message leaves out is added to the next."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from league.agents.learner.replicas.compressors import make_compressor
from league.agents.learner.replicas.replica_group import ReplicaGroup
from league.envs.component_choice import Component


class CompressedSum:
    """Adds a vector up over replicas, the same in all of them; exact without a compression.

    Args:
      replicas: that add up.
      compression: choice of a compressor. place: of the update mode in the configuration.
    Source: Seide et al. 2014, 1-bit SGD; Strom 2015, Scalable distributed DNN training, section 3 (residuals);
      Karimireddy et al. 2019, algorithm 2.
    """

    def __init__(self, replicas: ReplicaGroup, compression: Component, *, place: str) -> None:
        self._replicas = replicas
        self._compressor = make_compressor(compression, place=f"{place}.compression") if replicas.size > 1 else None
        self._residual: Tensor | None = None
        self._number = 0

    @property
    def is_exact(self) -> bool:
        """True if nothing is left out."""
        return self._compressor is None

    def add_up(self, vector: Tensor) -> None:
        """Replace a vector, the same in size every time, by the sum over replicas."""
        compressor = self._compressor
        if compressor is None:
            self._replicas.add_up(vector)
            return
        if self._residual is None:
            self._residual = torch.zeros_like(vector)
        whole = vector + self._residual
        message = compressor.encode(whole, number=self._number)
        gathered = self._replicas.gather(message)
        vector.zero_()
        for part in gathered:
            vector += compressor.decode(part, number=self._number, like=vector)
        self._residual = whole - compressor.decode(message, number=self._number, like=vector)
        self._number += 1

    def save(self) -> Mapping[str, Tensor]:
        """The part that this replica left out so far: the mean over replicas keeps the sum."""
        if self._residual is None:
            return {}
        return {"residual": self._residual, "messages": torch.tensor(self._number)}

    def load(self, saved: Mapping[str, Tensor]) -> None:
        """Start again from what was saved, or from nothing left out."""
        self._residual = saved["residual"].clone() if "residual" in saved else None
        self._number = int(saved["messages"]) if "messages" in saved else 0
