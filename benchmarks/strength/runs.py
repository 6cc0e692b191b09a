"""The training runs behind a strength benchmark: one finished run for each population and seed."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.report import Report
from benchmarks.strength.run_to_end import spend_budget
from league.config.commented import reasons_in
from league.config.loading import load_config, parse_config, plain_config
from league.config.run_config import paths_that_differ
from league.config.yaml import parse_yaml
from league.run.launch import has_spent_its_budget
from league.store.run_folder import RunFolder
from league.store.storage import Storage

ROOT = Path(__file__).resolve().parents[2]
WALL_FACTOR = 4.0
"""Seconds on the clock that a core-second may take on a busy machine."""
START_UP_S = 300.0
"""Allowed beside the budget: bringing up hosts, draining, final ratings."""

LEAGUE, LATEST, HALF, NAIVE, CROSS_PLAY = "league", "latest", "half past", "naive", "cross_play"
"""Populations: the configuration's own; the newest weights only; half of the games against the uniform past; the newest
weights only with hardly any entropy and a constant step; the preset of that name."""
FOLDER_WORDS = {LEAGUE: "league", LATEST: "latest", HALF: "half", NAIVE: "naive", CROSS_PLAY: "cross"}
"""Population -> its word in the names of run folders."""

MUST_AGREE = ("seed", "env", "network", "budget")
"""Sections of a configuration in which a run that is there already has to agree with what is asked for."""
MAY_DIFFER = ("name", "wandb", "evaluation")
"""Sections that change nothing in what is trained."""


@dataclass(frozen=True)
class Plan:
    """The plan of one call of a benchmark.

    Fields:
      seeds: of the training runs.
      populations: which of those that the game knows.
      core_seconds: budget of each run; None for the game's own. seconds: the same on the clock, where it counts.
      games: of each match.
      evaluation_seed: of openings, bots and sampled actions; one that no run has seen.
      folder: of the run folders; what lies there is used again.
      results: where figures lie that earlier calls found, a file for each run; what is known is not trained again.
    """

    seeds: tuple[int, ...]
    populations: tuple[str, ...]
    core_seconds: float | None
    seconds: float
    games: int
    evaluation_seed: int
    folder: Path
    results: Path | None = None

    def run_dir(self, game: str, population: str, seed: int) -> Path:
        """Folder of the run of a population and seed, such as "c4-half-0"."""
        return self.folder / f"{game}-{FOLDER_WORDS[population]}-{seed}"

    def figures(
        self, run_dir: Path, *, config: Path, settings: Sequence[str], find: Callable[[], dict[str, float]]
    ) -> dict[str, float]:
        """The figures of one run: those in its file, where it was asked for in the same way, or else found now.

        Args:
          run_dir: of the run; the file has its name. config, settings: what the run is trained with.
        """
        conditions = {
            "config": _without(parse_yaml(config.read_text(), source=str(config)), settings),
            "settings": [*settings],
            "games": self.games,
            "evaluation_seed": self.evaluation_seed,
        }
        if self.results is None:
            return stored_or_found(self.folder / f"{run_dir.name}.json", conditions=conditions, find=find)
        self.results.mkdir(parents=True, exist_ok=True)
        return stored_or_found(self.results / f"{run_dir.name}.json", conditions=conditions, find=find, replace=False)


def add_plan_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments that `measured` reads, but for the budget."""
    parser.add_argument("--seeds", nargs="*", type=int, default=[0, 1, 2])
    parser.add_argument("--runs", type=Path, help="where run folders are kept; a temporary folder if not given")
    parser.add_argument("--results", type=Path, help="where figures are kept")
    parser.add_argument("--json", action="store_true")


def measured(
    options: argparse.Namespace,
    measure: Callable[[Plan], Report],
    *,
    games: int = 0,
    evaluation_seed: int = 0,
    populations: tuple[str, ...] = (LEAGUE,),
) -> int:
    """Measure and print what a command line asks for, with `core_seconds`; returns the exit code."""
    with tempfile.TemporaryDirectory() as passing:
        plan = Plan(
            seeds=tuple(options.seeds),
            populations=populations,
            core_seconds=options.core_seconds,
            seconds=0.0,
            games=games,
            evaluation_seed=evaluation_seed,
            folder=(options.runs or Path(passing)).absolute(),
            results=options.results,
        )
        plan.folder.mkdir(parents=True, exist_ok=True)
        report = measure(plan)
    report.print(sys.stdout, as_json=options.json)
    return 1 if report.failed else 0


def control_sections(*, save_steps: int, rest: str) -> Mapping[str, str]:
    """Control -> the `league` section that takes the place of the configuration's.

    Args:
      save_steps: trained steps between two snapshots.
      rest: further settings of the section, in YAML.
    """
    return {
        LATEST: f"{{preset: self_play, population: {{save_steps: {save_steps}}}, {rest}}}",
        HALF: f"{{preset: window, population: {{save_steps: {save_steps}, window: 1000000,"
        f" play_against_latest_model_ratio: 0.5}}, {rest}}}",
    }


def core_budget(core_seconds: float) -> str:
    """The setting of a budget of processor time alone."""
    return f"budget={{core_seconds: {core_seconds:g}}}"


def wall_limit(core_seconds: float) -> float:
    """Seconds after which a run of that budget counts as hanging."""
    return WALL_FACTOR * core_seconds + START_UP_S


def finished_run(config: Path, *, run_dir: Path, settings: Sequence[str], timeout_s: float) -> None:
    """Have a run at the end of its budget: train it, continue one that was interrupted, or use a finished one.

    Args:
      config: its YAML file. settings: "key=value", which count over the file.
      timeout_s: after which the command is ended.
    Raises:
      SystemExit: the run that lies there is another one or is being trained just now; the command failed or overran; or
        somebody stopped the run before the end of its budget.
    """
    settings = [*settings, "wandb.mode=disabled"]
    league = str(Path(sys.executable).with_name("league"))
    log = run_dir.with_suffix(".log")
    if not RunFolder(run_dir).config_path.is_file():
        words = [word for setting in settings for word in ("-s", setting)]
        command = [league, "train", str(config), "--run-dir", str(run_dir), *words]
        spend_budget(command, run_dir=run_dir, log=log, timeout_s=timeout_s)
        print(f"{run_dir.name}: trained", flush=True)
        return
    note = _differences(run_dir, config, settings)
    folder = RunFolder.open(run_dir)
    status = folder.read_status()
    if status is not None and folder.is_live(status):
        pid = status.daemon.pid
        raise SystemExit(f"{run_dir} is being trained by pid {pid}: wait for it, or give another --runs folder.")
    if has_spent_its_budget(folder):
        print(f"{run_dir.name}: finished before, used again{note}", flush=True)
        return
    spend_budget([league, "resume", str(run_dir)], run_dir=run_dir, log=log, timeout_s=timeout_s)
    print(f"{run_dir.name}: resumed and finished{note}", flush=True)


def _without(sections: object, settings: Sequence[str]) -> object:
    """The sections of a configuration that no setting replaces as a whole and that have an effect on training."""
    assert isinstance(sections, dict)
    replaced = {setting.partition("=")[0] for setting in settings}
    return {name: value for name, value in sections.items() if name not in replaced and name not in MAY_DIFFER}


def stored_or_found(
    path: Path, *, conditions: Mapping[str, object], find: Callable[[], dict[str, float]], replace: bool = True
) -> dict[str, float]:
    """Figures that an earlier call left in a file under the same conditions, or found now and left there.

    A call without an evaluation seed of its own draws a new one and so measures everything again.

    Args:
      replace: whether figures of other conditions are written over.
    Raises:
      SystemExit: there are such figures, and they are not to be.
    """
    if path.is_file():
        stored = json.loads(path.read_text())
        if stored["conditions"] == conditions:
            print(f"{path.name}: found before under the same conditions, used again", flush=True)
            return {name: float(value) for name, value in stored["figures"].items()}
        if not replace:
            places = ", ".join(paths_that_differ(stored["conditions"], dict(conditions)))
            raise SystemExit(f"{path} holds figures of other conditions ({places}): give another folder, or remove it.")
    figures = find()
    Storage().atomic_write_bytes(path, json.dumps({"conditions": conditions, "figures": figures}, indent=1).encode())
    return figures


def _differences(run_dir: Path, config: Path, settings: Sequence[str]) -> str:
    """Words on the settings in which the run of a folder differs from what is asked for now; none where it does not.

    A setting that the run chose by itself differs only where it is now asked for.

    Raises:
      SystemExit: it differs in what makes it another run.
    """
    folder = RunFolder.open(run_dir)
    text = folder.read_config()
    found = asdict(parse_config(text, source=str(folder.config_path)))
    wanted = asdict(load_config(config, overrides=settings))
    given, _ = plain_config(config.read_text(), source=str(config), overrides=settings, folder=config.parent)
    chosen = set(reasons_in(text)) - set(_leaves(given, ""))
    different = [
        path
        for path in paths_that_differ(found, wanted)
        if path.partition(".")[0] not in MAY_DIFFER and not any(_covers(key, path) for key in chosen)
    ]
    different = [path for path in different if path != "learner.precision"]  # "auto" stands in a run as what it meant
    grave = [path for path in different if path.partition(".")[0] in MUST_AGREE or path == "league.preset"]
    if grave:
        raise SystemExit(
            f"{run_dir} is another run than the one asked for: {', '.join(grave)} differ; give another --runs folder."
        )
    return f"; its settings differ from today's in {', '.join(different)}" if different else ""


def _covers(chosen: str, path: str) -> bool:
    """True if a path lies in a chosen value, or has one in it; with the kind of a component come all of its options."""
    section = chosen.removesuffix("kind") if chosen.endswith(".kind") else f"{chosen}."
    return f"{chosen}.".startswith(f"{path}.") or path.startswith(section)


def _leaves(value: object, path: str) -> Iterator[str]:
    """Dotted keys of all values in nested mappings; a list is one value."""
    if not isinstance(value, Mapping):
        yield path
        return
    for key, item in value.items():
        yield from _leaves(item, f"{path}.{key}" if path else str(key))
