"""Turns a YAML file with its overrides into the records of a configuration, and lists all that is wrong with it."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path

from league.agents.learner.config import LearnerConfig
from league.config.actor_config import ActorConfig
from league.config.checks import joint_problems, section_problems
from league.config.learner_options import CHOICES, with_options
from league.config.player_settings import player_problems, replay_host_problems
from league.config.plugin_names import outside_names, with_absolute_files
from league.config.problems import apply_override, known_paths, validate
from league.config.run_config import RunConfig
from league.config.yaml import parse_yaml
from league.envs.guard.settings import working_folder
from league.envs.plugins import admit
from league.errors import ConfigError

KNOWN = known_paths(RunConfig, options={path: tuple(choice.records.values()) for path, choice in CHOICES.items()})


def load_config(path: Path, *, overrides: Sequence[str] = ()) -> RunConfig:
    """The configuration in a YAML file of the user's own: code that it names may be loaded in this process.

    Args:
      overrides: "dotted.key=value" each, the value in YAML, applied in order over the file.
    Raises:
      ConfigError: with every problem of file and overrides at once.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigError(str(path), [f"the file cannot be read: {reason}"]) from error
    plain, problems = plain_config(text, source=str(path), overrides=overrides, folder=path.parent)
    admit(found.entry for found in outside_names(plain))
    return config_of(plain, problems, source=str(path))


def parse_config(text: str, *, source: str, overrides: Sequence[str] = (), folder: Path | None = None) -> RunConfig:
    """As `load_config`, from the text itself, and without a word on trust.

    Args:
      folder: where files are looked for beside the current one.
    """
    plain, problems = plain_config(text, source=source, overrides=overrides, folder=folder)
    return config_of(plain, problems, source=source)


def plain_config(
    text: str, *, source: str, overrides: Sequence[str] = (), folder: Path | None = None
) -> tuple[dict[str, object], list[str]]:
    """A configuration's text as plain values with its overrides, files by absolute paths; and what is wrong so far.

    Raises:
      ConfigError: it is no YAML with keys and values.
    """
    plain = parse_yaml(text, source=source)
    if plain is None:
        plain = {}
    if not isinstance(plain, dict):
        raise ConfigError(source, [f"it holds a {type(plain).__name__}, not `key: value` lines"])
    return overridden(plain, overrides, folder=folder)


def overridden(
    plain: Mapping[str, object], overrides: Sequence[str], *, folder: Path | None = None
) -> tuple[dict[str, object], list[str]]:
    """A copy of plain values with overrides, files by absolute paths; and what is wrong with the overrides."""
    changed = copy.deepcopy(dict(plain))
    problems = [problem for one in overrides if (problem := apply_override(changed, one)) is not None]
    with_absolute_files(changed, (working_folder(), *([] if folder is None else [folder.absolute()])))
    return changed, problems


def config_of(plain: dict[str, object], problems: list[str], *, source: str) -> RunConfig:
    """The records of plain values; `problems` is what is wrong with them already."""
    sections, found = validate(plain, RunConfig, KNOWN)
    problems = [*problems, *found]
    for section, default in {"learner": LearnerConfig(), "actors": ActorConfig()}.items():
        sections[section], wrong_options = with_options(section, sections.get(section, default))
        problems += wrong_options
    problems += [problem for section, value in sections.items() for problem in section_problems(section, value)]
    if not found:
        whole = RunConfig(**sections)  # type: ignore[arg-type]  # validated against its fields
        problems += [*joint_problems(whole), *player_problems(whole), *replay_host_problems(whole)]
    if problems:
        raise ConfigError(source, problems)
    return RunConfig(**sections)  # type: ignore[arg-type]  # as above
