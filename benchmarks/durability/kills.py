"""200 SIGKILLs over daemon, actors, learners and Ray's head: what is lost, counted twice or left; how it recovers."""

from __future__ import annotations

from pathlib import Path

import yaml

from benchmarks.report import Report
from league.operate.chaos.chaos import Chaos, run_chaos
from league.operate.chaos.plan import KILL, Plan
from league.operate.chaos.prepare import prepare
from league.operate.chaos.verdict import Verdict

KILLS = 200
REQUIRED_S = {"kill actor": 3.0, "kill learner": 15.0}
"""Fault -> 95 % of its recoveries take at most so long."""

SETTINGS: dict[str, object] = {
    "env": {"id": "connect_four"},
    "name": "chaos",
    "network": {"hidden": [32]},
    "actors": {"num_envs": 64},
    "learner": {"batch_rows": 32, "precision": "float32"},
    "league": {
        "lease_steps": 64,
        "players": [
            {"role": role, "gate": {"min_steps": 10_000, "timeout_steps": 20_000}}
            for role in ("main_agent", "main_exploiter", "league_exploiter")
        ],
    },
    "runtime": {"kind": "ray", "address": "local", "object_store_mb": 100, "checkpoint_updates": 20},
    "evaluation": {"bots": []},
    "wandb": {"mode": "disabled"},
}
"""Small and busy: a lease takes a fraction of a second, snapshots, resets and checkpoints are always under way. The run
has a Ray of its own, whose head may be killed."""


def rows(report: Report, *, scale: float, seed: int, folder: Path) -> None:
    """Add the rows. scale: part of the full number of kills."""
    number = max(round(KILLS * scale), 1)
    config = folder / "kills.yaml"
    config.write_text(yaml.safe_dump(SETTINGS))
    prepared = prepare(config, folder / "run", overrides=[], trust=False)
    chaos = Chaos(prepared.run, first=prepared.first, folder=folder)
    plan = Plan(seed, kinds=(KILL,), targets=prepared.targets)
    add_rows(report, run_chaos(chaos, plan, seed=seed, strikes=number, say=print), number=number)


def add_rows(report: Report, verdict: Verdict, *, number: int) -> None:
    """The rows of a verdict."""
    report.add("SIGKILLs over daemon, actors, learners, Ray's head", sum(verdict.strikes.values()), "", at_least=number)
    report.add("finished leases seen by an outside reader", verdict.leases_seen, "leases", at_least=1)
    report.add("acknowledged results lost or changed", len(verdict.lost), "leases", at_most=0)
    report.add("results counted twice", len(verdict.doubled), "leases", at_most=0)
    report.add("totals that are not the sum of the leases", len(verdict.off), "totals", at_most=0)
    report.add("problems found by `league verify`", len(verdict.problems), "problems", at_most=0)
    report.add("things left 10 s after the end of a daemon", len(verdict.left), "things", at_most=0)
    report.add("daemons that ended unasked", len(verdict.left_early), "daemons", at_most=0)
    report.add("runs broken off", float(bool(verdict.failure)), "runs", at_most=0)
    for row in verdict.recoveries:
        name = f"{row.fault} to the next finished training lease, p95 of {row.number}"
        report.add(name, row.p95_s, "s", at_most=REQUIRED_S.get(row.fault))
