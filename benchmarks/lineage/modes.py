"""Update modes in lockstep: the bytes that they send, and what they learn from equally many decisions.

Shape letters: P numbers of a vector, R replicas, H updates between two agreements.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import multiprocessing
from torch.multiprocessing.spawn import spawn

from benchmarks.report import Report
from benchmarks.strength.games.exact_runs import nash_conv
from league.agents.learner.algorithms.loss_stats import COLUMNS, stack_stats
from league.agents.learner.replicas.replica_group import ProcessReplicas
from league.agents.learner.replicas.update_mode import make_update_mode
from league.config.loading import load_config
from league.envs.component_choice import Component
from league.policies.exact.behaviours import members_of
from league.policies.loading import load_from_run, open_run
from league.run import launch
from league.run.budget import Limits

ROOT = Path(__file__).resolve().parents[2]
P, R, H = 5_003, 4, 8
UPDATES = 2 * H
TOP_10 = {"kind": "top_k", "fraction": 0.1}
KEPT = round(0.1 * P)
RING = 2 * (R - 1) * 4 * P
"""Bytes of one all-reduce of P float32 numbers, of all replicas together: 8 P (R - 1)."""

BYTES: Mapping[str, tuple[Component, float]] = {
    "all_reduce: 8P(R-1)": ("all_reduce", RING),
    "all_reduce, bf16: 2P R(R-1)": ({"kind": "all_reduce", "compression": "bf16"}, 2 * P * R * (R - 1)),
    "all_reduce, int8: (P + 4 ceil(P/256)) R(R-1)": (
        {"kind": "all_reduce", "compression": "int8"},
        (P + 4 * math.ceil(P / 256)) * R * (R - 1),
    ),
    "all_reduce, sign: (ceil(P/8) + 4) R(R-1)": (
        {"kind": "all_reduce", "compression": "sign"},
        (math.ceil(P / 8) + 4) * R * (R - 1),
    ),
    "all_reduce, top 10 %: 8k R(R-1)": ({"kind": "all_reduce", "compression": TOP_10}, 8 * KEPT * R * (R - 1)),
    "local_sgd: 8P(R-1) / H": ({"kind": "local_sgd", "period": H}, RING / H),
    "gossip, ring: 2 * 4P R + 8P(R-1) / H": ({"kind": "gossip", "publish_every": H}, 2 * 4 * P * R + RING / H),
    "gossip, one peer: 4P R + 8P(R-1) / H": (
        {"kind": "gossip", "topology": "one_peer", "publish_every": H},
        4 * P * R + RING / H,
    ),
    "gossip, ring, top 10 %: 2 * 8k R + 8P(R-1) / H": (
        {"kind": "gossip", "compression": TOP_10, "publish_every": H},
        2 * 8 * KEPT * R + RING / H,
    ),
}
"""Name with the formula -> the mode, and the bytes of one update of all replicas together on average."""

DILOCO = {"kind": "local_sgd", "period": 8, "outer": {"learning_rate": 0.7, "momentum": 0.9}}
SEVENTH = ("learner.learning_rate=2.9e-4", "learner.learning_rate_end=4.3e-6")
"""Of the inner steps of DiLoCo: with its momentum, the outer steps add up to 0.7 / (1 - 0.9) = 7 times their way."""
KUHN: Mapping[str, tuple[Component, tuple[str, ...]]] = {
    "all_reduce": ("all_reduce", ()),
    "parameter averaging, H 8": ({"kind": "local_sgd", "period": 8}, ()),
    "DiLoCo, H 8": (DILOCO, ()),
    "DiLoCo, H 8, a seventh of the learning rate": (DILOCO, SEVENTH),
    "gossip, ring, top 10 %": ({"kind": "gossip", "compression": TOP_10}, ()),
    "server, waits beyond a lag of 4": (
        {"kind": "parameter_server", "max_staleness": 4, "on_stale": "wait", "workers": "threads"},
        (),
    ),
    "Hogwild": ({"kind": "hogwild", "workers": "threads"}, ()),
}
"""Name -> the mode, and the settings that it has beside those of all."""
KUHN_REPLICAS, KUHN_SEEDS, KUHN_STEPS = 4, (0, 1, 2), 1_200_000
KUHN_SETTINGS = (
    "league={lease_steps: 64, players: [{role: main_agent}], ratings: {step_fraction: 0.0, final_share: 0.0}}",
    "learner.precision=float32",
    "evaluation.bots=[]",
    "wandb.mode=disabled",
    "control.door=false",
    f"learner.pipeline.replicas={KUHN_REPLICAS}",
    f"budget={{env_steps: {KUHN_STEPS}}}",
)


def bytes_sent(folder: Path) -> Report:
    """Bytes of an update of every mode, counted in replicas that are processes, beside the formula."""
    report = Report()
    counted = multiprocessing.get_context("spawn").SimpleQueue()
    spawn(_replica, args=(str(folder / "meeting"), counted), nprocs=R, join=True)  # type: ignore[no-untyped-call]
    sent = [counted.get() for _ in range(R)]
    for name, (_, expected) in BYTES.items():
        found = sum(of_one[name] for of_one in sent) / UPDATES
        report.add(f"bytes of an update, {R} replicas, {P} parameters; {name}", found, "bytes")
        report.add(f"bytes beside the formula; {name}", abs(found - expected), "bytes", at_most=0.0)
    return report


def kuhn(folder: Path) -> Report:
    """NashConv of Kuhn poker after equally many decisions, medians over seeds, over that of all_reduce."""
    report, baseline = Report(), 0.0
    for name, (mode, settings) in KUHN.items():
        values = [
            _kuhn_run(folder / f"{len(report.rows)}-{seed}", mode, settings=settings, seed=seed) for seed in KUHN_SEEDS
        ]
        median = statistics.median(values)
        report.add(f"Kuhn NashConv, {KUHN_STEPS} decisions, {KUHN_REPLICAS} replicas; {name}", median, "chips")
        if name == "all_reduce":
            baseline = median
        else:
            report.add(f"Kuhn NashConv over all_reduce's; {name}", median / baseline, "", at_most=1.5)
        print(name, values, flush=True)
    return report


class _Vector:
    """A vector whose gradient never changes it."""

    def __init__(self) -> None:
        self.values = torch.linspace(-1.0, 1.0, P)
        self.gradients = torch.zeros(P)

    def squared_norm(self) -> torch.Tensor:
        return torch.dot(self.gradients, self.gradients)[None]

    def clip(self, *, count: float, squared_norm: float) -> float:
        return math.sqrt(squared_norm) / count

    def step(self, *, count: float, squared_norm: float, learning_rate: float) -> float:
        return math.sqrt(squared_norm) / count


def _replica(rank: int, meeting: str, counted: Any) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=R)
    found = {}
    for name, (choice, _) in BYTES.items():
        mode, vector = make_update_mode(choice, ProcessReplicas(dist.group.WORLD)), _Vector()
        sums = stack_stats(**dict.fromkeys(COLUMNS, 1.0))
        found[name] = sum(mode.step(vector, sums, learning_rate=0.1).bytes_sent for _ in range(UPDATES))
    counted.put(found)
    dist.destroy_process_group()


def _kuhn_run(run_dir: Path, mode: Component, *, settings: Sequence[str], seed: int) -> float:
    overrides = (*KUHN_SETTINGS, *settings, f"seed={seed}", f"learner.pipeline.update_mode={json.dumps(mode)}")
    source = ROOT / "configs" / "kuhn.yaml"
    config = load_config(source, overrides=overrides)
    launch.start(config, {}, source=source, run_dir=run_dir, limits=Limits(env_steps=KUHN_STEPS))
    return nash_conv(config.env, members_of(load_from_run(open_run(run_dir), "ema")))
