"""`league train` and `league resume`: what stands before the first and every later session of a run.

A run is a folder. Starting it makes the folder, resuming it opens it; from there on both are one session.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from league.agents.learner.build import choose_dtype, default_device
from league.config.auto.resolve import resolve
from league.config.commented import dump_commented
from league.config.default_scoring import scoring_of
from league.config.game_kind import creation_of
from league.config.player_settings import own_values
from league.config.plugin_checks import require_working_names
from league.config.ray_address import joins_cluster
from league.config.run_config import BudgetConfig, RunConfig
from league.core.state.league_config import LeagueConfig
from league.envs.guard.settings import working_folder
from league.envs.plugins import admit as admit_names
from league.envs.protocol import EnvSpec
from league.envs.registry import GivenGame, config_of, spec_of
from league.errors import LeagueError
from league.policies.imported import ImportedPolicy, absent_imported, admit, find_imported, remarks, trust_sources
from league.policies.policy_store import is_game_of
from league.policies.teacher import find_teacher
from league.policies.trust import is_trusted, names_of_league, require_trusted
from league.run.budget import BUDGET, ClockFile, Limits, Spent, follows_clock
from league.run.config_changes import noted_config, settled_config
from league.run.monitor.metric_sinks import require_working_sinks
from league.run.session import Ended, PreparedRun, run_session
from league.stages import begin_stage
from league.store.journaled_league import JournaledLeague
from league.store.known_runs import note_run
from league.store.run_folder import CLOCK_FILE, RunFolder, new_run_path, require_lasting
from league.store.snapshots import LocalSnapshotStore
from league.wording import setting_text


def train(source: Path | str, *, overrides: Sequence[str], run_dir: Path | None, limits: Limits) -> Ended:
    """Start a new run, its open settings chosen by `league.config.auto`.

    Args:
      source: path of a configuration, or the id of an env; where it is trusted, so are the sources of its fixed
        opponents and its teacher, see `league.policies.trust`.
      limits: of this command; they are the budget where the configuration has none.
    Raises:
      LeagueError, EnvError: one sentence for the user.
    """
    runs, run_dir = Path("runs").absolute(), None if run_dir is None else run_dir.absolute()  # before code of others
    limit = BudgetConfig(limits.seconds, limits.core_seconds, limits.env_steps)
    found = resolve(str(source), overrides=overrides, limit=limit, ends_by_steps=limits.env_steps is not None)
    run_dir = run_dir or new_run_path(found.config.name, now=datetime.now(), root=runs)
    run = _new_run(found.config, found.reasons, source=Path(source), run_dir=run_dir, limits=limits)
    return run_session(run, limits=limits)


def train_game(
    env: GivenGame,
    *,
    settings: Mapping[str, Any] | None = None,
    folder: str | Path | None = None,
    seconds: float | None = None,
    core_seconds: float | None = None,
    env_steps: int | None = None,
) -> Path:
    """`league train` from Python, as `league.train`; its progress goes to standard output, also of a notebook.

    Args:
      env: the game: an id, a function or class that makes it, or EnvConfig. Hosts load the function from its file; one
        of the program or notebook itself is played in this process alone.
      settings: dotted key -> value, over what is fitted to the game.
      folder: of the run; by default one under runs/.
      seconds, core_seconds, env_steps: the budget.
    Returns:
      The run folder, for `league.load_policy` and every command.
    Raises: as `train`.
    """
    game, given = config_of(env), dict(settings or {})
    if game.id.startswith("__main__:"):
        given = {"runtime.kind": "inprocess", "env.workers": 0, **given}
    elif callable(env):
        game = replace(game, id=f"{inspect.getsourcefile(env)}:{game.id.partition(':')[2]}")
    if game.kwargs:
        given = {"env.kwargs": dict(game.kwargs), **given}
    overrides = [f"{key}={json.dumps(value)}" for key, value in given.items()]
    run_dir, limits = None if folder is None else Path(folder), Limits(seconds, core_seconds, env_steps)
    return train(game.id, overrides=overrides, run_dir=run_dir, limits=limits).folder.path


def start(
    config: RunConfig,
    reasons: Mapping[str, str],
    *,
    source: Path,
    run_dir: Path | None,
    limits: Limits,
) -> Ended:
    """Start a new run with a whole configuration.

    Args:
      reasons: dotted key -> reason, of settings that were chosen.
      source: the file that the configuration is from; beside it imported policies are looked for.
    Raises: as `train`.
    """
    run = _new_run(config, reasons, source=source, run_dir=run_dir, limits=limits)
    return run_session(run, limits=limits)


def _new_run(
    config: RunConfig,
    reasons: Mapping[str, str],
    *,
    source: Path,
    run_dir: Path | None,
    limits: Limits,
) -> PreparedRun:
    """Make the folder and the league of a run, once everything that the configuration names has been tried."""
    _require_our_trainer(config, str(source))
    path = (run_dir or new_run_path(config.name, now=datetime.now())).absolute()  # before code of others is run
    beside = source.absolute().parent
    if is_trusted(source):
        trust_sources(config, folder=beside)
    begin_stage("trying the parts that the configuration names")
    spec = spec_of(config.env)
    config, imported = find_imported(config, spec, folder=beside)
    config = find_teacher(config, spec, folder=beside)
    require_working_names(config, spec, source=str(source), folder=path)
    require_working_sinks(config, source=str(source))
    config, reason = with_precision(config, spec, repeats=not follows_clock(config.budget, limits))
    if reason:
        reasons = {**reasons, "learner.precision": reason}
    scoring_of(config.league.payoff, spec)  # refused before a folder is made
    text = dump_commented(config, reasons)
    require_lasting(path)
    folder = RunFolder.create(path, config_yaml=text)
    with contextlib.ExitStack() as held:
        held.enter_context(folder.lock)
        league = JournaledLeague.create(folder.journal_path, wall_time=time.time, storage=folder.storage)
        held.callback(league.close)
        league.execute(creation_of(config, spec))
        league.execute(noted_config(text))
        notes = [*preset_remarks(config.league), *player_remarks(config), *remarks(imported, config.env)]
        _take_in(imported, folder, league)
        return PreparedRun(config, spec, folder, league, notes, held.pop_all())


def resume(
    path: Path,
    *,
    limits: Limits,
    overrides: Sequence[str] = (),
    restore_config: bool = False,
) -> Ended:
    """Continue a run from its journal and stores; one that the user trusts is from then on theirs.

    Args:
      overrides: "dotted.key=value" each, a change of the configuration that the journal keeps.
      restore_config: write config.yaml again as the journal has it.
    Raises:
      LeagueError, EnvError: one sentence for the user.
    """
    run = _known_run(path, overrides=overrides, restore_config=restore_config)
    return run_session(run, limits=limits)


def _known_run(path: Path, *, overrides: Sequence[str], restore_config: bool) -> PreparedRun:
    """Open a run as its journal knows it."""
    folder = RunFolder.open(path)
    with contextlib.ExitStack() as held:
        held.enter_context(folder.lock)
        begin_stage(f"reading {path}")
        league = JournaledLeague.open(
            folder.journal_path, at_least_seq=folder.durable_seq(), wall_time=time.time, storage=folder.storage
        )
        held.callback(league.close)
        config = settled_config(folder, league, overrides=overrides, restore=restore_config)
        _require_our_trainer(config, str(path))
        if is_trusted(folder.path):  # with its journal and the sources of its imported policies
            admit_names(found.entry for found in names_of_league(league.state))
            trust_sources(config, folder=working_folder())
        require_trusted(names_of_league(league.state), what=str(folder.path))
        spec = spec_of(config.env)
        require_working_names(config, spec, source=str(folder.path))
        if league.state.config is None:
            league.execute(creation_of(config, spec))
            league.execute(noted_config(folder.read_config()))
        elif not is_game_of(league.state, LocalSnapshotStore(folder.snapshots_path, storage=folder.storage), spec):
            raise LeagueError(
                f"{config.env.id} has changed since this run began: seats, teams, observations, actions or the mask "
                f"differ from what its policies were trained on. Undo the change, or train a new run."
            )
        _take_in(absent_imported(config, league.state, spec), folder, league)
        return PreparedRun(config, spec, folder, league, league.notes, held.pop_all())


def _take_in(imported: Sequence[ImportedPolicy], folder: RunFolder, league: JournaledLeague) -> None:
    """Take policies from outside into the league; from then on the run is known to this user's commands."""
    admit(imported, league=league, store=LocalSnapshotStore(folder.snapshots_path, storage=folder.storage))
    league.commit()
    note_run(folder.path)


def _require_our_trainer(config: RunConfig, source: str) -> None:
    """Refuse what another program trains. Raises LeagueError."""
    if config.trainer.kind == "own":
        raise LeagueError(
            f"{source} is trained by a program of your own (trainer.kind: own): start that program, which continues "
            "where its `league.League` was stopped."
        )


def has_spent_its_budget(folder: RunFolder) -> bool:
    """True if a run ended because its budget was used up."""
    status = folder.read_status()
    return status is not None and (status.phase, status.message) == ("stopped", BUDGET)


def spent_by(path: Path) -> Spent:
    """Time and steps that a run has used since its first start; nothing before it was begun."""
    try:
        return ClockFile.decode(RunFolder(path).read_resume_file(CLOCK_FILE)).spent
    except FileNotFoundError:
        return Spent()


MAX_SHOWN = 6
"""Settings of one group of players that are shown."""


def preset_remarks(config: LeagueConfig) -> tuple[str, ...]:
    """A sentence where `players` stand beside a preset, whose own players they replace."""
    if not config.preset:
        return ()
    own = LeagueConfig(preset=config.preset, population=config.population).players
    if config.players == own:
        return ()
    names = ", ".join(dict.fromkeys(group.role for group in own))
    return (
        f"league.players replaces the players of the preset {config.preset} ({names}): leave it out to have those.",
    )


def player_remarks(config: RunConfig) -> tuple[str, ...]:
    """A line for each group of players that differs from the run, with the settings in which it does."""
    found: dict[int, list[str]] = {}
    for value in own_values(config):
        text = f"{value.key} {setting_text(value.own)} (run: {setting_text(value.run)})"
        found.setdefault(value.place, []).append(text)
    return tuple(
        f"{config.league.players[place].prefix}: {', '.join(texts[:MAX_SHOWN])}"
        + (f" and {len(texts) - MAX_SHOWN} more" if len(texts) > MAX_SHOWN else "")
        for place, texts in found.items()
    )


def with_precision(config: RunConfig, spec: EnvSpec, *, repeats: bool) -> tuple[RunConfig, str]:
    """The precision that "auto" means here, noted in the run: a resumed run must not depend on another measurement.

    A cluster's hosts may be of another kind than this machine, and where there is a GPU the learners have it and the
    actors do not: there every host measures for itself.

    Args:
      repeats: whether no clock may decide.
    Returns:
      The configuration, and the reason of the choice; empty where nothing was chosen.
    """
    is_mixed = config.runtime.kind == "ray" and default_device().type != "cpu"
    is_elsewhere = config.runtime.kind == "ray" and joins_cluster(config.runtime.address, os.environ)
    if config.learner.precision != "auto" or is_elsewhere or is_mixed:
        return config, ""
    if repeats and config.runtime.kind == "inprocess":
        return _with(config, "float32"), "a run that repeats exactly looks at no clock"
    begin_stage("choosing the precision of the learners")
    dtype = choose_dtype(spec, config.network, config.learner.precision)
    return _with(config, str(dtype).removeprefix("torch.")), "the fastest here"


def _with(config: RunConfig, precision: str) -> RunConfig:
    return replace(config, learner=replace(config.learner, precision=precision))
