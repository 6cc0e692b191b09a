"""The file of a study: its arms, their seeds and budget, and how arms are compared."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from league.config.auto.draft import without_auto
from league.config.loading import KNOWN, config_of, plain_config
from league.config.plugin_names import outside_names
from league.config.problems import known_paths, validate
from league.config.yaml import parse_yaml
from league.envs.plugins import admit
from league.envs.protocol import EnvError
from league.envs.registry import spec_of
from league.errors import ConfigError, LeagueError
from league.judge.matches.sprt import SprtConfig, elo_of
from league.lab.trials.objective import TrialObjective

MIN_CORE_SECONDS = 1.0
MAX_RUNS = 1_000
MAX_LEAST_SCORE = 0.4
"""A least difference of scores beyond which no match shows it."""
OF_THE_STUDY = {"seed": "seeds", "budget": "core_seconds"}
"""Key of a configuration -> that of the study which decides it."""
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.]*")


@dataclass(frozen=True)
class ArmConfig:
    """One arm.

    Fields:
      name: of letters, digits, "_" and ".". config: configuration file or id of a game; empty for that of the study.
      settings: dotted key -> value, over those of the study.
    """

    name: str
    config: str = ""
    settings: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class CompareConfig:
    """The comparison of two arms.

    Fields:
      by: "matches" between the arms' `auto` exports of equal seeds, with common openings; "yardsticks", "exploiter" and
        "exact" as of `league sweep`; or "column".
      column: a cost of the run such as "games", or the name of a metric, whose last value is taken.
      least: the least difference that matters, in scores or in the unit of the value.
      games: most of each match. bots: yardsticks. core_seconds: budget of an exploiter. opening_plies: of matches.
    """

    by: Literal["matches", "yardsticks", "exploiter", "exact", "column"] = "matches"
    column: str = ""
    least: float = 0.03
    games: int = 1_000
    bots: tuple[str, ...] = TrialObjective().bots
    core_seconds: float = 10.0
    opening_plies: int = 2

    def problems(self) -> Iterator[str]:
        if (self.by == "column") != bool(self.column):
            yield f"column: {self.column!r} does not go with by: {self.by}; only by: column takes one, and needs it"
        if self.least <= 0.0:
            yield f"least: {self.least:g} must be above 0"
        elif self.by == "matches" and self.least > MAX_LEAST_SCORE:
            yield f"least: {self.least:g} is too far from even for a score, give at most {MAX_LEAST_SCORE:g}"
        if self.games < 2:
            yield f"games: {self.games} must be at least 2"
        if self.core_seconds < MIN_CORE_SECONDS:
            yield f"core_seconds: {self.core_seconds:g} must be at least {MIN_CORE_SECONDS:g}"

    @property
    def objective(self) -> TrialObjective:
        """The measure of each run; where matches decide, what it has trained."""
        if self.by == "matches":
            return TrialObjective("column", column="core_seconds")
        return TrialObjective(self.by, self.bots, self.games, self.core_seconds, self.column)

    @property
    def sprt(self) -> SprtConfig:
        """The test that ends a match: stronger by the least difference, or weaker by as much."""
        elo = elo_of(0.5 + self.least)
        return SprtConfig(-elo, elo)


@dataclass(frozen=True)
class StudyConfig:
    """A study.

    Fields:
      arms: two at least, in the order in which they are named. core_seconds: budget of each run.
      base: configuration file or id of a game, of arms without one. settings: dotted key -> value, of all arms.
      seeds: trained in this order, each by every arm; a study that is there may get more of them.
      compare: how arms are compared.
    """

    arms: tuple[ArmConfig, ...]
    core_seconds: float
    base: str = ""
    settings: dict[str, object] = field(default_factory=dict)
    seeds: tuple[int, ...] = (0, 1, 2)
    compare: CompareConfig = CompareConfig()

    def source_of(self, arm: ArmConfig) -> str:
        """Configuration file or id of a game."""
        return arm.config or self.base

    def overrides_of(self, arm: ArmConfig, seed: int) -> tuple[str, ...]:
        """ "dotted.key=value" each."""
        values: Mapping[str, object] = {**self.settings, **arm.settings, "seed": seed}
        return tuple(f"{key}={json.dumps(value)}" for key, value in values.items())

    def problems(self) -> Iterator[str]:
        """Sentences that begin with a key."""
        names = [arm.name for arm in self.arms]
        if len(names) < 2:
            yield f"arms: a study compares two at least, {len(names)} given"
        if len(set(names)) < len(names):
            yield f"arms: {max(names, key=names.count)} is there twice"
        for number, arm in enumerate(self.arms):
            if not _NAME.fullmatch(arm.name):
                yield f"arms.{number}.name: {arm.name!r} must be of letters, digits, _ and ."
            if not self.source_of(arm):
                yield f"arms.{number}.config: is missing, and so is base"
            yield from _own_keys(f"arms.{number}.settings", arm.settings)
        yield from _own_keys("settings", self.settings)
        if not self.seeds or len(set(self.seeds)) < len(self.seeds) or min(self.seeds) < 0:
            yield f"seeds: {list(self.seeds)} must be one or more whole numbers from 0, each once"
        if self.core_seconds < MIN_CORE_SECONDS:
            yield f"core_seconds: {self.core_seconds:g} must be at least {MIN_CORE_SECONDS:g}"
        if len(names) * len(self.seeds) > MAX_RUNS:
            product = len(names) * len(self.seeds)
            yield f"seeds: {len(names)} arms x {len(self.seeds)} seeds = {product:,} runs, at most {MAX_RUNS:,}"
        yield from (f"compare.{sentence}" for sentence in self.compare.problems())


def _own_keys(place: str, settings: Mapping[str, object]) -> Iterator[str]:
    """A sentence on each setting that the study decides."""
    for key in settings:
        section = key.partition(".")[0]
        if section in OF_THE_STUDY:
            yield f"{place}.{key}: give {OF_THE_STUDY[section]} at the top instead"


def read_study(path: Path) -> StudyConfig:
    """The study in a file, with its configuration files by absolute paths.

    Raises:
      ConfigError: with every problem of the file at once, or of the configurations of its arms.
    """
    try:
        plain = parse_yaml(path.read_text(encoding="utf-8"), source=str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(str(path), ["the file cannot be read"]) from error
    if not isinstance(plain, dict):
        raise ConfigError(str(path), ["it holds no `key: value` lines; arms and core_seconds are needed"])
    values, problems = validate(plain, StudyConfig, known_paths(StudyConfig))
    if problems:
        raise ConfigError(str(path), problems)
    study = StudyConfig(**values)  # type: ignore[arg-type]  # validated against its fields
    problems = [*study.problems()]
    if problems:
        raise ConfigError(str(path), problems)
    arms = tuple(replace(arm, config=_source(arm.config, path.parent)) for arm in study.arms)
    study = replace(study, arms=arms, base=_source(study.base, path.parent))
    problems = [f"arms.{number}: {text}" for number, arm in enumerate(arms) for text in _arm_problems(study, arm)]
    if problems:
        raise ConfigError(str(path), problems)
    return study


def _source(text: str, folder: Path) -> str:
    """A file of the study's folder or the current one by its absolute path; the id of a game as it is."""
    found = next((place for place in (folder / text, Path(text)) if text and place.is_file()), None)
    return text if found is None else str(found.absolute())


def _arm_problems(study: StudyConfig, arm: ArmConfig) -> Iterator[str]:
    """Sentences on the configuration of an arm, and on a comparison that its game does not allow."""
    source = study.source_of(arm)
    path = Path(source)
    try:
        text = path.read_text(encoding="utf-8") if path.is_file() else json.dumps({"env": {"id": source}})
        folder = path.parent if path.is_file() else None
        plain, wrong = plain_config(
            text, source=source, overrides=study.overrides_of(arm, study.seeds[0]), folder=folder
        )
        admit(found.entry for found in outside_names(plain))
        given, _ = without_auto(plain, KNOWN.types)
        env = config_of(given, wrong, source=source).env
        teams = spec_of(replace(env, workers=0)).num_teams
    except ConfigError as error:
        yield from error.problems
    except (LeagueError, EnvError) as error:
        yield str(error)
    else:
        if teams < 2 and study.compare.by in ("matches", "exploiter"):
            yield f"{env.id} is a game of one team without an opponent: give compare.by: yardsticks, its mean return"
