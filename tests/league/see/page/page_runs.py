"""Run folders for the tests of the page: a simulated league in a real journal, without weights and without training."""

from __future__ import annotations

import json
import time
from pathlib import Path

import yaml

from league.config.loading import parse_config
from league.config.run_config import dump_config
from league.core.state.events import EVENTS
from league.http.address import Listening
from league.http.token_file import Tokens
from league.run.config_changes import noted_config
from league.run.monitor import names
from league.see.page.app import make_page
from league.see.page.guard import App, Keys
from league.see.page.runs.library import Library
from league.store.journal import Journal
from league.store.lock import this_process
from league.store.run_folder import RunFolder, RunStatus, WorkerStatus
from tests.league.core.simulated_league import SimulatedLeague

KEYS = Keys(Tokens("the-token", "the-reader"), 8420)
OPERATOR, READER = KEYS.entrances
PLAIN = {
    "env": {"id": "tic_tac_toe"},
    "name": "made",
    "league": {
        "players": [
            {"role": "main_agent", "step_weight": 2.0, "gate": {"min_steps": 1000, "timeout_steps": 6000}},
            {"role": "main_exploiter", "gate": {"min_steps": 1000, "timeout_steps": 6000}},
        ],
        "ratings": {"step_fraction": 0.2, "bots": ["bot:random"]},
    },
    "wandb": {"mode": "disabled"},
}


def made_league(*, leases: int, seed: int = 3) -> tuple[SimulatedLeague, str]:
    """A league that has played, and the text of its configuration."""
    config = parse_config(yaml.safe_dump(PLAIN), source="made")
    text = dump_config(config)
    league = SimulatedLeague(config.league, seed=seed, strength=lambda policy: 0.1 * len(policy))
    league.ask(noted_config(text))
    league.run(leases)
    return league, text


def write_run(path: Path, *, leases: int = 60, live: bool = False) -> RunFolder:
    """The folder of such a run, with metrics and a heartbeat; `live` has it be this process's."""
    league, text = made_league(leases=leases)
    folder = RunFolder.create(path, config_yaml=text)
    journal = Journal.create(folder.journal_path, events=EVENTS)
    for place, event in enumerate(league.journal):
        journal.append([event], wall_time=1_700_000_000.0 + place)
    journal.commit()
    journal.close()
    write_status(folder, live=live)
    write_metrics(folder, players=list(league.state.players))
    return folder


def write_part(folder: RunFolder, events: list[object]) -> None:
    """Append events to the journal of a run."""
    journal = Journal.open(folder.journal_path, events=EVENTS, at_least_seq=0)
    journal.append(events, wall_time=5.0)
    journal.commit()
    journal.close()


def write_status(folder: RunFolder, *, live: bool) -> None:
    """A heartbeat of this process."""
    now = time.time()
    actors = (WorkerStatus("actor_host", number, name=f"actor-{number}") for number in range(2))
    workers = (*actors, WorkerStatus("learner_host", 2, "cpu", "learner-0"))
    status = RunStatus(
        this_process(),
        "running" if live else "stopped",
        now - 60.0,
        now,
        1,
        workers,
        steps_per_s=1234.0,
        trained_s=55.0,
        budget_spent=0.25,
        message="" if live else "the budget is spent",
    )
    folder.write_status(status)


def write_metrics(folder: RunFolder, *, players: list[str], rows: int = 30) -> None:
    """Rows of metrics that grow with the steps."""
    lines = []
    for row in range(rows):
        values = {names.STEPS_PER_S.name: 900.0 + row, names.BEST_RATING.name: 20.0 * row}
        for player in players:
            values |= {
                names.LOSS_POLICY.of(player): 0.1 / (row + 1),
                names.LOSS_VALUE.of(player): 0.3 / (row + 1),
                names.ENTROPY.of(player): 1.5 - 0.02 * row,
                names.LAG_MEAN.of(player): 3.0,
                names.RHO_CLIP_FRACTION.of(player): 0.02,
                names.LEARNING_RATE.of(player): 1e-3 * (1 - row / 60),
                names.RATING.of(player): 10.0 * row,
            }
        lines.append(json.dumps({"step": 400 * row, "time": 1.7e9 + row, "values": values}))
    folder.metrics_path.write_text("\n".join(lines) + "\n")


def page_of(path: Path) -> tuple[Library, App]:
    """The application over a run or a folder of runs, with the token "the-token"."""
    library = Library(path)
    return library, make_page(library, KEYS, hosts=Listening().names)
