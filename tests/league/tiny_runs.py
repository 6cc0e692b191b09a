"""Whole runs small enough for a test: a tiny network, a tiny game, one process, a second or two."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import yaml

from league.config.loading import load_config
from league.core.state.events import EVENTS, CheckpointSaved, Event, RunStarted, RunStopped
from league.core.state.state import LeagueState
from league.run import launch
from league.run.budget import Limits
from league.run.launch import resume
from league.run.session import Ended
from league.store.journal_reader import JournalReader
from league.store.journaled_league import state_of_run
from league.store.run_folder import RunFolder

GATE = {"min_steps": 100, "timeout_steps": 350, "test": {"min_games": 4}}
TINY: dict[str, Any] = {
    "env": {"id": "tic_tac_toe"},
    "name": "tiny",
    "seed": 5,
    "network": {"hidden": [12]},
    "learner": {"unroll_length": 4, "batch_rows": 16, "precision": "float32"},
    "actors": {"num_envs": 12},
    "league": {
        "lease_steps": 16,
        "players": [
            {"role": "main_agent", "step_weight": 2.0, "gate": GATE},
            {"role": "main_exploiter", "gate": GATE},
            {"role": "league_exploiter", "gate": {**GATE, "reset_probability": 0.5}},
        ],
        "payoff": {"half_life_steps": 2_000_000},
        "ratings": {"step_fraction": 0.1, "final_leases": 2},
    },
    "runtime": {"kind": "inprocess", "checkpoint_updates": 6},
    "budget": {"env_steps": 1_000_000},
    "evaluation": {"bots": []},
    "wandb": {"mode": "disabled"},
    "control": {"door": False},
}
ONE_PLAYER = {"players": [{"role": "main_agent", "gate": GATE}]}


def tiny(**changes: Any) -> dict[str, Any]:
    """TINY with sections changed: a section that is a dict is updated, anything else takes the place of the old."""
    plain = copy.deepcopy(TINY)
    for section, value in changes.items():
        if isinstance(value, dict) and isinstance(plain.get(section), dict) and section != "env":
            plain[section].update(value)
        else:
            plain[section] = value
    return plain


def write_config(folder: Path, plain: dict[str, Any] | None = None) -> Path:
    """The configuration as a file."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(tiny() if plain is None else plain))
    return path


def start(folder: Path, plain: dict[str, Any] | None = None, *, env_steps: int, run: str = "run") -> Ended:
    """Train a new run in `folder/run`; what is not given has the defaults of its record, whatever the rules choose."""
    limits, path = Limits(env_steps=env_steps), write_config(folder, plain)
    return launch.start(load_config(path), {}, source=path, run_dir=folder / run, limits=limits)


def go_on(path: Path, *, env_steps: int) -> Ended:
    """Resume a run."""
    return resume(path, limits=Limits(env_steps=env_steps))


def state_of(path: Path) -> LeagueState:
    """The league of a run."""
    return state_of_run(RunFolder.open(path))


def head_of(path: Path) -> tuple[int, str]:
    """Number and chain hash of the last event."""
    with JournalReader.open_readonly(path / "journal.db", events=EVENTS) as journal:
        return journal.head().seq, journal.head().chain


def events_of(path: Path) -> list[Event]:
    """The whole journal."""
    with JournalReader.open_readonly(path / "journal.db", events=EVENTS) as journal:
        return [event for _, event in journal.replay()]  # type: ignore[misc]


def history_of(path: Path) -> list[Event]:
    """What the league did: the journal without starts, stops and restart states, and with one token for all starts."""
    return [
        _without_token(event)
        for event in events_of(path)
        if not isinstance(event, RunStarted | RunStopped | CheckpointSaved)
    ]


def _without_token(event: Event) -> Event:
    changed = copy.copy(event)
    for record in (changed, getattr(changed, "lease", None)):
        if record is not None and hasattr(record, "token"):
            object.__setattr__(record, "token", 0)
    return changed


def checkpoints_of(path: Path) -> dict[str, str | None]:
    """Player -> digest of its whole restart state: weights, optimizer, counters and scales."""
    players = state_of(path).players
    return {name: None if p.checkpoint is None else p.checkpoint.digest for name, p in players.items()}
