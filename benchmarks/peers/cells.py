"""A cell of the table: one training of one peer on one game, and its figures in a file that is made once."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from benchmarks.peers import judge
from benchmarks.peers.games import GAMES, Game
from benchmarks.peers.peer_list import ARMS, LEAGUE, PEERS, POPULATIONS, venv_of
from benchmarks.strength.run_to_end import run_to_end, spend_budget
from benchmarks.strength.runs import ROOT, core_budget
from league.policies.loading import open_run
from league.processes.processor_time import children_cpu_seconds
from league.store.run_folder import RunFolder
from league.store.storage import Storage

LEAGUE_COMMAND = str(Path(sys.executable).with_name("league"))
WALL_FACTOR = 20.0
"""Seconds on the clock that a core-second may take where others use the machine."""
NO_TRAINING = ("wandb.mode=disabled", "evaluation.bots=[]")
"""Settings that train nothing: no tracker, and no bots met after the training, since the judge here meets them."""
Figures = Mapping[str, Any]


@dataclass(frozen=True, order=True)
class Cell:
    """core_seconds: of the whole process tree. peer: one of `ARMS`."""

    core_seconds: float
    game: str
    seed: int
    peer: str

    @property
    def name(self) -> str:
        """Its file's name, such as "hex-sb3_ppo-120-0"."""
        return f"{self.game}-{self.peer}-{self.core_seconds:g}-{self.seed}"


@dataclass(frozen=True)
class Place:
    """Folders. results: of the cells' files, networks and runs. venvs: of the peers' venvs."""

    results: Path
    venvs: Path

    def file(self, cell: Cell) -> Path:
        """The file of a cell's figures."""
        return self.results / "cells" / f"{cell.name}.json"

    def trained(self, cell: Cell) -> Path:
        """The run folder or the network's file of a cell."""
        return self.results / "trained" / (cell.name if cell.peer in POPULATIONS else f"{cell.name}.npz")


def cells_of(games: Iterable[str], peers: Iterable[str], budgets: Iterable[float], seeds: Iterable[int]) -> list[Cell]:
    """All cells: the smallest budget first, then by seed; those that are compared lie side by side in time."""
    order = list(GAMES)
    cells = [Cell(budget, game, seed, peer) for budget in budgets for game in games for seed in seeds for peer in peers]
    return sorted(cells, key=lambda cell: (cell.core_seconds, cell.seed, order.index(cell.game), ARMS.index(cell.peer)))


def missing(cells: Sequence[Cell], place: Place) -> list[Cell]:
    """The cells that have no figures yet."""
    return [cell for cell in cells if not place.file(cell).is_file()]


def stored(cell: Cell, place: Place) -> Figures | None:
    """The figures of a cell; None without."""
    path = place.file(cell)
    return read(path) if path.is_file() else None


def read(path: Path) -> dict[str, Any]:
    """The figures of a file."""
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def measure(cell: Cell, place: Place) -> None:
    """Train and judge a cell, and leave its figures.

    Raises:
      SystemExit: its training failed or overran.
    """
    game, trained = GAMES[cell.game], place.trained(cell)
    trained.parent.mkdir(parents=True, exist_ok=True)
    spent = trained.parent / f"{cell.name}.spent.json"
    if not spent.is_file():
        _train(cell, game, place, spent)
    figures = json.loads(spent.read_text()) | judge.judged(game, policy_of(cell, place))
    keep(place.file(cell), figures)


def policy_of(cell: Cell, place: Place) -> judge.Trained:
    """The trained policy of a cell."""
    trained = place.trained(cell)
    return judge.of_run(trained) if cell.peer in POPULATIONS else judge.of_file(trained)


def keep(path: Path, figures: Figures) -> None:
    """Leave figures in a file, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Storage().atomic_write_bytes(path, json.dumps(figures).encode())


def _train(cell: Cell, game: Game, place: Place, spent: Path) -> None:
    train = _train_league if cell.peer in POPULATIONS else _train_peer
    command = train(cell, game, place)
    before = spent.with_suffix(".part")  # of a run that was interrupted and is now resumed
    already = read(before)["core_seconds"] if before.is_file() and cell.peer in POPULATIONS else 0.0
    begun = children_cpu_seconds(os.getpid())
    try:
        figures = command()
    finally:
        core_seconds = already + children_cpu_seconds(os.getpid()) - begun
        keep(before, {"core_seconds": core_seconds})
    keep(spent, {"core_seconds": core_seconds, **figures})


def _train_league(cell: Cell, game: Game, place: Place) -> Callable[[], Figures]:
    """The training by `league train` with the shipped defaults: game, budget and seed alone are given."""
    run_dir = place.trained(cell)
    log = run_dir.with_suffix(".log")
    config = place.results / "trained" / f"{cell.game}.yaml"
    config.write_text(game_yaml(game))
    budget = core_budget(cell.core_seconds)
    settings = [f"seed={cell.seed}", budget, *NO_TRAINING, *POPULATIONS[cell.peer]]
    words = [word for setting in settings for word in ("-s", setting)]
    command = [LEAGUE_COMMAND, "train", str(config), "--run-dir", str(run_dir), *words]
    if RunFolder(run_dir).config_path.is_file():
        command = [LEAGUE_COMMAND, "resume", str(run_dir)]

    def run() -> Figures:
        spend_budget(command, run_dir=run_dir, log=log, timeout_s=WALL_FACTOR * cell.core_seconds)
        return {"decisions": float(open_run(run_dir).state.totals.decisions)}

    return run


def _train_peer(cell: Cell, game: Game, place: Place) -> Callable[[], Figures]:
    """The training by the peer's file in its venv."""
    python = venv_of(cell.peer, place.venvs) / "bin" / "python"
    out = place.trained(cell).absolute()
    order = out.with_suffix(".order.json")
    asked = {
        "env_id": game.env.id,
        "kwargs": dict(game.env.kwargs),
        "original": game.original,
        "hidden": hidden_of(cell.game, cell.core_seconds, place),
        "core_seconds": allowed(cell, place),
        "seed": cell.seed,
        "out": str(out),
    }
    order.write_text(json.dumps(asked))
    variables = [f"PYTHONPATH={ROOT}", "OMP_NUM_THREADS=1"]
    command = ["env", *variables, str(python), "-m", PEERS[cell.peer].module, str(order)]

    def run() -> Figures:
        run_to_end(command, log=out.with_suffix(".log"), timeout_s=WALL_FACTOR * cell.core_seconds)
        return read(out.with_suffix(".json")) | {"hidden": asked["hidden"]}

    return run


def allowed(cell: Cell, place: Place) -> float:
    """Core-seconds of a peer: those of the whole process tree of League's run, whose budget leaves out its start.

    Where there is no such run, the budget itself.
    """
    league = stored(replace(cell, peer=LEAGUE), place)
    return cell.core_seconds if league is None else max(cell.core_seconds, float(league["core_seconds"]))


def game_yaml(game: Game) -> str:
    """The whole configuration of a League run."""
    return yaml.safe_dump({"env": {"id": game.env.id, "kwargs": dict(game.env.kwargs)}})


@functools.cache
def hidden_of(name: str, core_seconds: float, place: Place) -> list[int]:
    """Widths of the network that League's defaults choose for a game and a budget, which peers then have too."""
    path = place.results / "trained" / f"{name}.yaml"
    path.write_text(game_yaml(GAMES[name]))
    command = [LEAGUE_COMMAND, "init", str(path), "--core-seconds", f"{core_seconds:g}"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [int(width) for width in yaml.safe_load(text)["network"]["hidden"]]
