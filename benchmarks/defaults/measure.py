"""One measurement of the shipped defaults: trains a run, continues it or uses it again, and keeps its figures.

Run folders and figures lie in folders named by the digest of their rules, so that figures of other rules are never
taken for these. A file of figures also names its conditions.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import yaml

from benchmarks.defaults.games import ALL, EXACT, RETURN, Game
from benchmarks.defaults.judge import LAST, Evaluation, exports_of, figures_of, reference_figures, versus
from benchmarks.strength.run_to_end import run_to_end, spend_budget
from benchmarks.strength.runs import core_budget, wall_limit
from league.envs.registry import spec_of
from league.policies.loading import OpenRun, open_run
from league.run.launch import has_spent_its_budget
from league.store.run_folder import RunFolder
from league.store.storage import Storage

LEAGUE, LATEST, HALF, TUNED = "league", "latest", "half", "tuned"
"""Populations: the defaults alone; the newest weights only; half of the games against the uniform past; a tuned
configuration of this repository."""
SECTIONS: Mapping[str, str | None] = {
    LEAGUE: None,
    LATEST: "{preset: self_play}",
    HALF: "{preset: window, population: {window: 1000000, play_against_latest_model_ratio: 0.5}}",
    TUNED: None,
}
"""Population -> the `league` section that its runs have; None leaves what the configuration has."""
INPROCESS_UP_TO_S = 60.0
"""Budgets up to this are trained in one process: starting Ray alone would take a tenth of them."""
EXPLOITED = (LAST, "average", "auto")
EXPLOITER_SHARE = 0.2
"""Of the budget of a run that each of its exploiters gets."""
ONE_HOST_OF_EACH = ("runtime.actor_hosts=1", "runtime.learner_hosts=1")
"""Of a configuration that asks for several, where it runs in one process."""


@dataclass(frozen=True, order=True)
class Job:
    """A run to be measured. core_seconds: its budget; seed: of its training."""

    core_seconds: float
    game: str
    population: str
    seed: int

    @property
    def name(self) -> str:
        """Its run folder's name, such as "kuhn-league-60-0"."""
        return f"{self.game}-{self.population}-{self.core_seconds:g}-{self.seed}"


@dataclass(frozen=True)
class Place:
    """Folders of one digest of the rules.

    Fields:
      runs: of the run folders. results: of the files of figures.
      settings: "key=value" for every run alike, which make it another measurement than that of the defaults.
    """

    runs: Path
    results: Path
    settings: tuple[str, ...] = ()


def measure(job: Job, place: Place, evaluation: Evaluation) -> dict[str, float]:
    """The figures of a job: the known ones, or else found now.

    Raises:
      SystemExit: a command failed or overran, or somebody stopped its run.
    """
    game = ALL[job.game]

    def find() -> dict[str, float]:
        run = trained(job, place)
        return figures_of(run, game, evaluation) | exploiter_figures(job, run, game, evaluation)

    return stored_or_found(path_of(job, place), conditions_of(job, place, evaluation), find)


def compare(job: Job, place: Place, evaluation: Evaluation) -> dict[str, float]:
    """Scores of a league's exports against the same exports of the newest weights only, of the same game and seed."""
    league, latest = (Job(job.core_seconds, job.game, name, job.seed) for name in (LEAGUE, LATEST))

    def find() -> dict[str, float]:
        one, other = (exports_of(trained(each, place), seed=evaluation.seed) for each in (league, latest))
        return {
            f"{export} v newest only": versus(ALL[job.game], one[export], other[export], evaluation)
            for export in EXPLOITED
            if export in one and export in other
        }

    conditions = conditions_of(league, place, evaluation) | {"against": LATEST}
    return stored_or_found(versus_path(league, place), conditions, find)


def stored_games(job: Job, place: Place, evaluation: Evaluation) -> dict[str, float]:
    """Stored scores of a league against its control; none without."""
    conditions = conditions_of(job, place, evaluation) | {"against": LATEST}
    return stored(versus_path(job, place), conditions) or {}


def stored_reference(name: str, place: Place, evaluation: Evaluation) -> dict[str, float]:
    """Stored figures of uniform play; none without."""
    return stored(_reference_path(name, place), _reference_conditions(name, evaluation)) or {}


def reference(name: str, place: Place, evaluation: Evaluation) -> dict[str, float]:
    """The figures of uniform play."""
    conditions = _reference_conditions(name, evaluation)
    return stored_or_found(_reference_path(name, place), conditions, lambda: reference_figures(ALL[name], evaluation))


def _reference_path(name: str, place: Place) -> Path:
    return place.results / f"{name}-uniform.json"


def _reference_conditions(name: str, evaluation: Evaluation) -> dict[str, object]:
    return {"game": _env(ALL[name]), "evaluation": asdict(evaluation)}


def is_compared(game: Game) -> bool:
    """True for a game in which a league meets its control."""
    return game.judge not in (EXACT, RETURN) and len(set(spec_of(game.env).teams)) > 1


def path_of(job: Job, place: Place) -> Path:
    """The file of a job's figures."""
    return place.results / f"{job.name}.json"


def versus_path(job: Job, place: Place) -> Path:
    """The file of the games between a job's run and its control."""
    return place.results / f"{job.name}-versus.json"


def conditions_of(job: Job, place: Place, evaluation: Evaluation) -> dict[str, object]:
    """The conditions of a job's figures, beside the rules."""
    return {"settings": _settings(job, place), "evaluation": asdict(evaluation), "exploiters": EXPLOITER_SHARE}


def stored(path: Path, conditions: Mapping[str, object]) -> dict[str, float] | None:
    """Figures that lie in a file under the same conditions; None without."""
    if not path.is_file():
        return None
    found = json.loads(path.read_text())
    if found["conditions"] != json.loads(json.dumps(conditions)):
        return None
    return {name: float(value) for name, value in found["figures"].items()}


def stored_or_found(
    path: Path, conditions: Mapping[str, object], find: Callable[[], dict[str, float]]
) -> dict[str, float]:
    """Figures of a file, or found now and left there."""
    known = stored(path, conditions)
    if known is not None:
        return known
    figures = find()
    path.parent.mkdir(parents=True, exist_ok=True)
    payload = json.dumps({"conditions": conditions, "figures": figures}, indent=1)
    Storage().atomic_write_bytes(path, payload.encode())
    return figures


def trained(job: Job, place: Place) -> OpenRun:
    """The run of a job at the end of its budget: a finished one, an interrupted one resumed, or a new one."""
    place.runs.mkdir(parents=True, exist_ok=True)
    run_dir = place.runs / job.name
    log = run_dir.with_suffix(".log")
    league = str(Path(sys.executable).with_name("league"))
    limit = wall_limit(job.core_seconds)
    if not RunFolder(run_dir).config_path.is_file():
        config = _config_file(job, place)
        words = [word for setting in _settings(job, place)[1:] for word in ("-s", setting)]
        command = [league, "train", str(config), "--run-dir", str(run_dir), *words]
        spend_budget(command, run_dir=run_dir, log=log, timeout_s=limit)
        print(f"{job.name}: trained", flush=True)
    elif not has_spent_its_budget(RunFolder.open(run_dir)):
        spend_budget([league, "resume", str(run_dir)], run_dir=run_dir, log=log, timeout_s=limit)
        print(f"{job.name}: resumed and finished", flush=True)
    return open_run(run_dir)


def exploiter_figures(job: Job, run: OpenRun, game: Game, evaluation: Evaluation) -> dict[str, float]:
    """Scores of new players that train against nothing but one export each; none where NashConv is exact."""
    if not is_compared(game):
        return {}
    figures, exports = {}, exports_of(run, seed=evaluation.seed)
    for export in (name for name in EXPLOITED if name in exports):
        player = exports[LAST].members[0][1].name if export == LAST else export
        report = run.path.with_name(f"{job.name}-exploiter-of-{export}.json")
        budget = EXPLOITER_SHARE * job.core_seconds
        command = [
            *(str(Path(sys.executable).with_name("league")), "exploit", str(run.path), "--player", player),
            *("--run-dir", str(report.with_suffix("")), "--core-seconds", f"{budget:g}"),
            *("--games", str(evaluation.games), "--seed", str(evaluation.seed)),
            *("-s", f"seed={job.seed}", "-s", "wandb.mode=disabled", "--json", str(report)),
        ]
        run_to_end(command, log=report.with_suffix(".log"), timeout_s=wall_limit(budget))
        figures[f"{export} v a fresh exploiter"] = 1.0 - float(
            json.loads(report.read_text())["match"]["score"]["value"]
        )
        print(f"{job.name}: {export} exploited", flush=True)
    return figures


def _settings(job: Job, place: Place) -> list[str]:
    """The configuration's file or env, and the "key=value" settings of a job."""
    game = ALL[job.game]
    origin = f"configs/{game.tuned.name}" if job.population == TUNED and game.tuned else yaml_of(game)
    section = SECTIONS[job.population]
    return [
        origin,
        f"seed={job.seed}",
        core_budget(job.core_seconds),
        "evaluation.bots=[]",
        "wandb.mode=disabled",
        *(["runtime.kind=inprocess"] if job.core_seconds <= INPROCESS_UP_TO_S else []),
        *(ONE_HOST_OF_EACH if job.core_seconds <= INPROCESS_UP_TO_S and job.population == TUNED else []),
        *([f"env={json.dumps(_env(game))}"] if job.population == TUNED else []),
        *([] if section is None else [f"league={section}"]),
        *place.settings,
    ]


def yaml_of(game: Game) -> str:
    """The whole configuration of a game: its env and nothing else."""
    return yaml.safe_dump({"env": _env(game)}, sort_keys=True)


def _env(game: Game) -> dict[str, object]:
    env: dict[str, object] = {"id": game.env.id}
    if game.env.kwargs:
        env["kwargs"] = dict(game.env.kwargs)
    if game.env.teams:
        env["teams"] = [list(team) for team in game.env.teams]
    return env


def _config_file(job: Job, place: Place) -> Path:
    game = ALL[job.game]
    if job.population == TUNED:
        assert game.tuned is not None
        return game.tuned
    path = place.runs / f"{job.game}.yaml"
    Storage().atomic_write_bytes(path, yaml_of(game).encode())
    return path
