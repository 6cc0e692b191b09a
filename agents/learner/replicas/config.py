"""Options of the update modes, of their topologies and compressions, without torch."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from league.agents.learner.replicas.free_config import FreeWorkers, HogwildConfig, ParameterServerConfig
from league.envs.component_choice import Component, given_options, kind_of
from league.envs.plugin_options import OptionsError, make_options, require_no_options

MAX_PERIOD = 1 << 20
"""Largest number of updates between two agreements, far beyond any use."""

NO_COMPRESSION = "none"


@dataclass(frozen=True)
class SparseConfig:
    """Options of `top_k` and `random_k`.

    Fields:
      fraction: of the P numbers, what one message holds; at least one number.
    """

    fraction: float = 0.01

    def problems(self) -> list[str]:
        return [] if 0 < self.fraction <= 1 else [f"fraction: {self.fraction} is not in (0, 1]"]


@dataclass(frozen=True)
class TorusConfig:
    """Options of `torus`.

    Fields:
      rows: of replicas; as many as make the torus most nearly square where null.
    """

    rows: int | None = None

    def problems(self) -> list[str]:
        return [f"rows: {self.rows} must be at least 2"] if self.rows is not None and self.rows < 2 else []

    def sides(self, size: int) -> tuple[int, int] | None:
        """Rows and columns of a torus of `size` replicas; None if they do not fill one."""
        rows = self.rows
        if rows is None:
            rows = next((side for side in range(math.isqrt(size), 1, -1) if size % side == 0), 1)
        return None if rows < 2 or size % rows or size // rows < 2 else (rows, size // rows)


COMPRESSION_OPTIONS: Mapping[str, type | None] = {
    NO_COMPRESSION: None,
    "bf16": None,
    "int8": None,
    "sign": None,
    "top_k": SparseConfig,
    "random_k": SparseConfig,
}
"""Name of a registered compression -> the record of its options."""

TOPOLOGY_OPTIONS: Mapping[str, type | None] = {
    "ring": None,
    "torus": TorusConfig,
    "exponential": None,
    "one_peer": None,
}
"""Name of a registered topology -> the record of its options."""


@dataclass(frozen=True)
class AllReduceConfig:
    """Options of `all_reduce`.

    Fields:
      compression: of each replica's gradient: none, bf16, int8, sign, top_k or random_k, or a mapping of its name as
        `kind` and its options. What a message leaves out is added to the next.
    Source: Karimireddy et al. 2019, Error feedback fixes SignSGD, algorithm 2.
    """

    compression: Component = NO_COMPRESSION

    def problems(self) -> list[str]:
        return list(_component_problems("compression", self.compression, COMPRESSION_OPTIONS))


@dataclass(frozen=True)
class OuterConfig:
    """The outer step of `local_sgd`: along the mean way of the replicas, with a momentum of its own.

    Fields:
      learning_rate: 1 without momentum is parameter averaging; 0.7 with 0.9 is DiLoCo.
      momentum: part of the last outer step that is added to the next. nesterov: True to look ahead by it.
    """

    learning_rate: float = 1.0
    momentum: float = 0.0
    nesterov: bool = True

    def problems(self) -> list[str]:
        found = []
        if not 0 < self.learning_rate <= 10:
            found.append(f"learning_rate: {self.learning_rate} is not in (0, 10]; 1 goes to the mean of the replicas")
        if not 0 <= self.momentum < 1:
            found.append(f"momentum: {self.momentum} must lie in [0, 1)")
        return found

    @property
    def is_mean(self) -> bool:
        """True if the outer step ends at the mean of the replicas."""
        return self.learning_rate == 1.0 and self.momentum == 0.0


@dataclass(frozen=True)
class LocalSGDConfig:
    """Options of `local_sgd`.

    Fields:
      period: H, updates that each replica makes alone between two agreements.
      outer: the step that they agree on.
      compression: of the way that each replica has gone, as in `all_reduce`.
    Source: Stich 2019, Local SGD converges fast and communicates little; Douillard et al. 2023, DiLoCo, algorithm 1.
    """

    period: int = 8
    outer: OuterConfig = field(default_factory=OuterConfig)
    compression: Component = NO_COMPRESSION

    def problems(self) -> list[str]:
        found = [*_period_problems("period", self.period)]
        return [*found, *_component_problems("compression", self.compression, COMPRESSION_OPTIONS)]


@dataclass(frozen=True)
class GossipConfig:
    """Options of `gossip`.

    Fields:
      topology: whom each replica averages with: ring, torus, exponential or one_peer, or a mapping of its name as
        `kind` and its options.
      compression: of the change of each replica's weights, as in `all_reduce`; the peers then keep a copy of them.
      consensus_step: part of the way to the mean of the copies that one update goes; null for what is stable with the
        compression. Only with a compression: without one it is the whole way.
      publish_every: updates between two means over all replicas, which actors get.
      asynchronous: True for replicas on clocks of their own, each of which averages with one random peer of its
        topology at a time (AD-PSGD). Their mean is then taken whenever it is asked for.
      workers: of asynchronous replicas: "processes", or "threads" of the learner's process.
    Source: Lian et al. 2017, Can decentralized algorithms outperform centralized algorithms (D-PSGD); Lian et al. 2018,
      Asynchronous decentralized parallel stochastic gradient descent (AD-PSGD); Koloskova et al. 2019, Decentralized
      stochastic optimization and gossip algorithms with compressed communication (CHOCO-SGD).
    """

    topology: Component = "ring"
    compression: Component = NO_COMPRESSION
    consensus_step: float | None = None
    publish_every: int = 8
    asynchronous: bool = False
    workers: FreeWorkers = "processes"

    def problems(self) -> list[str]:
        found = [*_period_problems("publish_every", self.publish_every)]
        found += _component_problems("topology", self.topology, TOPOLOGY_OPTIONS)
        found += _component_problems("compression", self.compression, COMPRESSION_OPTIONS)
        compression = kind_of(self.compression)
        if self.consensus_step is not None and not 0 < self.consensus_step <= 1:
            found.append(f"consensus_step: {self.consensus_step} is not in (0, 1]")
        elif self.consensus_step is not None and compression == NO_COMPRESSION:
            found.append(f"consensus_step: {self.consensus_step} is for a compression, and there is none; use null")
        if self.asynchronous and compression != NO_COMPRESSION:
            found.append(
                f"compression: {compression} is for gossip in lockstep, and asynchronous peers change weights in "
                "memory that they share; use none"
            )
        if kind_of(self.topology) == "one_peer" and compression != NO_COMPRESSION:
            found.append(
                f"topology: one_peer changes its peers with every update, but {compression} needs a copy of each "
                "peer's weights; use exponential"
            )
        return found


UPDATE_MODE_OPTIONS: Mapping[str, type] = {
    "all_reduce": AllReduceConfig,
    "local_sgd": LocalSGDConfig,
    "gossip": GossipConfig,
    "hogwild": HogwildConfig,
    "parameter_server": ParameterServerConfig,
}
"""Name of a registered update mode -> the record of its options."""


def replica_problems(choice: Component, *, replicas: int, value_normalisation: str) -> Iterator[str]:
    """Conflicts of a registered update mode in lockstep with other settings, as sentences that start with the key.

    Args:
      choice: of the mode, with options that are valid by themselves.
      replicas, value_normalisation: of the learner.
    """
    kind, place = kind_of(choice), "pipeline.update_mode"
    record = UPDATE_MODE_OPTIONS.get(kind)
    if record not in (AllReduceConfig, LocalSGDConfig, GossipConfig):
        return
    try:
        options = make_options(record, given_options(choice), place=place)
    except OptionsError:
        return  # named where the options are checked
    is_free = isinstance(options, GossipConfig) and options.asynchronous  # these refusals are those of a free group
    if replicas == 1 and not is_free and not isinstance(options, AllReduceConfig):
        yield f"{place}: {kind} is for several replicas, but pipeline.replicas is 1; use all_reduce or more replicas"
    if isinstance(options, GossipConfig):
        yield from _torus_problems(options.topology, replicas=replicas, place=place)
    if value_normalisation == "popart" and not _is_whole_mean(options):
        yield (
            f"{place}: value_normalisation popart rescales a row of weights together with its moments, which only "
            "whole weights can be averaged with: use an outer step of learning_rate 1 without momentum, and no "
            "compression"
        )


def _is_whole_mean(options: object) -> bool:
    """True if replicas only ever get weights, or gradients, in one piece."""
    if isinstance(options, AllReduceConfig):
        return True
    assert isinstance(options, LocalSGDConfig | GossipConfig)
    whole = kind_of(options.compression) == NO_COMPRESSION
    return whole and (isinstance(options, GossipConfig) or options.outer.is_mean)


def _torus_problems(topology: Component, *, replicas: int, place: str) -> Iterator[str]:
    if kind_of(topology) != "torus":
        return
    torus: TorusConfig = make_options(TorusConfig, given_options(topology), place=place)
    if torus.sides(replicas) is None:
        rows = "rows" if torus.rows is None else f"{torus.rows} rows"
        yield (
            f"{place}.topology: {replicas} replicas do not fill a torus of {rows} times columns, each at least 2; "
            "use another number or a ring"
        )


def _period_problems(name: str, period: int) -> Iterator[str]:
    if not 1 <= period <= MAX_PERIOD:
        yield f"{name}: {period} is not between 1 and {MAX_PERIOD}"


def _component_problems(name: str, choice: Component, records: Mapping[str, type | None]) -> Iterator[str]:
    """Options that do not fit their component; those of one from outside are checked with its code."""
    kind = kind_of(choice)
    if ":" in kind:
        return
    if kind not in records:
        yield f"{name}: {kind!r} is none of {', '.join(records)}"
        return
    record = records[kind]
    try:
        if record is None:
            require_no_options(choice, place=name)
        else:
            make_options(record, given_options(choice), place=name)
    except OptionsError as error:
        yield from error.problems
