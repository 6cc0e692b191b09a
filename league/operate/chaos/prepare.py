"""Prepares the run to strike: a new one of a configuration, or a copy of another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from league.config.auto.resolve import resolve
from league.config.run_config import RunConfig
from league.errors import LeagueError
from league.operate.chaos.plan import FAULTS, FORK_SERVER, HEAD, ONE_PROCESS
from league.operate.history.fork import fork_run
from league.policies.trust import is_trusted, read_config
from league.store.run_folder import RunFolder


@dataclass(frozen=True)
class Prepared:
    """A run that can be started. first: the `league` arguments that do so. targets: what it has to strike."""

    run: Path
    first: tuple[str, ...]
    targets: tuple[str, ...]


def prepare(target: Path, run: Path, *, overrides: Sequence[str]) -> Prepared:
    """A run of its own at `run`, of a configuration or as a copy of the run at `target`.

    Raises:
      LeagueError, EnvError: one sentence for the user.
    """
    run = run.absolute()
    if RunFolder(run).config_path.exists():
        raise LeagueError(f"{run} already holds a run: give --run-dir a folder that is not there.")
    options = ["--no-eval", *(["--trust"] if is_trusted(target) else [])]
    if RunFolder(target).config_path.is_file():
        fork_run(target, run, at="latest", overrides=overrides)
        config = read_config(RunFolder.open(run))
        return Prepared(run, ("resume", str(run), *options), targets_of(config))
    config = resolve(str(target), overrides=list(overrides)).config
    words = [word for setting in overrides for word in ("-s", setting)]
    source = str(target.absolute()) if target.is_file() else str(target)
    return Prepared(run, ("train", source, "--run-dir", str(run), *words, *options), targets_of(config))


def targets_of(config: RunConfig) -> tuple[str, ...]:
    """The parts of a run that can be struck; in one process there are neither hosts nor a Ray."""
    if config.runtime.kind == "inprocess":
        return ONE_PROCESS
    targets = dict.fromkeys(target for _, target, _ in FAULTS)
    is_own = config.runtime.address == "local"
    return tuple(target for target in targets if is_own or target not in (HEAD, FORK_SERVER))
