"""The small and busy run that the rows of durability strike, and the rows of its books afterwards."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import yaml

from benchmarks.report import Report
from league.operate.chaos.chaos import Chaos

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


def run_words(folder: Path, **changes: object) -> tuple[str, ...]:
    """Write the settings with changed sections into a folder; the `league` arguments that start their run there."""
    config = folder / "struck.yaml"
    config.write_text(yaml.safe_dump({**SETTINGS, **changes}))
    return ("train", str(config), "--run-dir", str(folder / "run"), "--no-eval")


@contextlib.contextmanager
def struck_run(folder: Path, runtime: Mapping[str, object]) -> Iterator[Chaos]:
    """A context in which such a run trains and may be struck; it is stopped in good order at the end."""
    chaos = Chaos(folder / "run", first=run_words(folder, runtime=dict(runtime)), folder=folder)
    try:
        chaos.start()
        yield chaos
        chaos.stop()
    finally:
        chaos.close()


def add_books(
    report: Report, *, lost: Sequence[str], doubled: Sequence[str], off: Sequence[str], problems: Sequence[str]
) -> None:
    """The rows of an audit and of `league verify`."""
    report.add("acknowledged results lost or changed", len(lost), "leases", at_most=0)
    report.add("results counted twice", len(doubled), "leases", at_most=0)
    report.add("totals that are not the sum of the leases", len(off), "totals", at_most=0)
    report.add("problems found by `league verify`", len(problems), "problems", at_most=0)
