"""Topologies of gossip: whom each replica averages with, and by which weights.

Every replica's weights add up to 1, and so do those that its peers give it (W is doubly stochastic). So an average
leaves the mean of all replicas as it is.

Shape letter: R replicas.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from league.agents.learner.algorithms.algorithms import TOPOLOGIES
from league.agents.learner.replicas.config import TorusConfig
from league.envs.component_choice import Component
from league.envs.plugin_options import component_of

Topology = Callable[[int, int, int], Mapping[int, float]]
"""`topology(rank, size, round)`: rank of each replica that this one takes weights of, itself included -> its weight.

With `options=...` where it declares options. The same for every round, unless it is used without a compression.
"""


def make_topology(choice: Component, *, place: str) -> Topology:
    """The topology of that name, a registered one or "module:attribute", its options filled in.

    Raises:
      PluginError: there is none such, or its options do not fit.
    """
    return component_of(choice, TOPOLOGIES, what="topology", place=place)


def receivers(topology: Topology, rank: int, size: int, number: int) -> list[int]:
    """Ranks of the other replicas that take the weights of this one in a round, in ascending order."""
    return [peer for peer in range(size) if peer != rank and rank in topology(peer, size, number)]


def ring(rank: int, size: int, number: int) -> Mapping[int, float]:
    """Both neighbours. Second eigenvalue 1/3 + 2/3 cos(2 pi / R)."""
    return _evenly({rank, (rank - 1) % size, (rank + 1) % size})


def torus(rank: int, size: int, number: int, *, options: TorusConfig) -> Mapping[int, float]:
    """The neighbours in the row and in the column.

    Raises:
      ValueError: the replicas do not fill a torus.
    """
    sides = options.sides(size)
    if size == 1:
        return {0: 1.0}
    if sides is None:
        raise ValueError(f"{size} replicas do not fill a torus")
    rows, columns = sides
    row, column = divmod(rank, columns)
    beside = {row * columns + (column + step) % columns for step in (-1, 1)}
    above = {(row + step) % rows * columns + column for step in (-1, 1)}
    return _evenly({rank} | beside | above)


def exponential(rank: int, size: int, number: int) -> Mapping[int, float]:
    """The replicas 1, 2, 4, ... places back: k of them, second eigenvalue (k - 1) / (k + 1) where R is 2^k.

    Source: Ying et al. 2021, Exponential graph is provably efficient for decentralized deep training, section 3.
    """
    return _evenly({rank} | {(rank - step) % size for step in _powers(size)})


def one_peer(rank: int, size: int, number: int) -> Mapping[int, float]:
    """One replica of `exponential` after the other; the mean is exact after log2 R rounds where R is a power of 2.

    Source: Ying et al. 2021, section 4.
    """
    steps = _powers(size)
    return _evenly({rank, (rank - steps[number % len(steps)]) % size}) if steps else {rank: 1.0}


def _powers(size: int) -> list[int]:
    return [1 << at for at in range((size - 1).bit_length())]


def _evenly(peers: set[int]) -> Mapping[int, float]:
    return {peer: 1.0 / len(peers) for peer in sorted(peers)}
