"""Settings of a player's own: partial sections of its group, laid over those of the run."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from league.agents.learner.config import LearnerConfig
from league.agents.nets.config import NetworkConfig
from league.config.actor_config import ActorConfig
from league.config.checks import acting_conflicts, learner_conflicts, search_problems, section_problems, wait_problems
from league.config.learner_options import CHOICES, with_options
from league.config.problems import known_paths, validate
from league.config.run_config import RunConfig, plain_of
from league.core.state.league_config import PlayerConfig
from league.envs.component_choice import Component, given_options, kind_of
from league.errors import ConfigError
from league.wording import counted


@dataclass(frozen=True)
class PlayerSections:
    """The sections that a player may have of its own, whole. Every field names a section of the run and of a group."""

    learner: LearnerConfig
    network: NetworkConfig
    actors: ActorConfig

    @classmethod
    def of_run(cls, config: RunConfig) -> PlayerSections:
        """Those of a player without any of its own."""
        return cls(**{section: getattr(config, section) for section in SECTIONS})

    def in_place_of(self, config: RunConfig) -> RunConfig:
        """The configuration of a run in which every player has these settings."""
        return dataclasses.replace(config, **{section: getattr(self, section) for section in SECTIONS})


SECTIONS = tuple(item.name for item in dataclasses.fields(PlayerSections))
KNOWN = known_paths(PlayerSections, options={path: tuple(choice.records.values()) for path, choice in CHOICES.items()})

OF_THE_RUN = {
    "learner": {"precision": "a host computes in one type for all of its players"},
    "actors": {
        item.name: "the games are of all players"
        for item in dataclasses.fields(ActorConfig)
        if item.name not in ("acting", "acting_frozen")
    },
}
"""Section -> keys that no player has of its own, and why."""

_PLAYER = re.compile(r"(.+)-\d+(?:-s\d+)?")


def settings_of(config: RunConfig, player: str) -> PlayerSections:
    """The settings of a player by its id; the run's where its group has none of its own, or there is no such group.

    Raises:
      ConfigError: they do not fit, which is found when a configuration is loaded.
    """
    prefix = prefix_of(player)
    group = next((group for group in config.league.players if group.prefix == prefix), None)
    if group is None or not has_own(group):
        return PlayerSections.of_run(config)
    made, problems = _made(config, group)
    if made is None:
        raise ConfigError(f"the settings of {player}", problems)
    return made


def own_settings(config: RunConfig) -> dict[str, PlayerSections]:
    """Prefix of the ids of a group -> the settings of its players, for each group that has some of its own."""
    return {group.prefix: settings_of(config, group.player_id(0)) for group in config.league.players if has_own(group)}


def prefix_of(player: str) -> str:
    """The prefix of the ids of a group, from a player or a snapshot of one; empty for any other policy."""
    found = _PLAYER.fullmatch(player)
    return found[1] if found else ""


def has_own(group: PlayerConfig) -> bool:
    """True if the players of a group have a section of their own."""
    return any(getattr(group, section) for section in SECTIONS)


def player_problems(config: RunConfig) -> Iterator[str]:
    """Problems of the own settings of each group, one sentence each that starts with the full key."""
    of_run = {problem for section in SECTIONS for problem in section_problems(section, getattr(config, section))}
    of_run |= {*learner_conflicts(config.learner, config.network)}
    for index, group in enumerate(config.league.players):
        if not has_own(group):
            continue
        place = f"league.players.{index}"
        made, problems = _made(config, group)
        if made is not None:
            problems += [problem for problem in _problems_of(config, group, made) if problem not in of_run]
        yield from (f"{place}.{problem}" for problem in problems)


def replay_host_problems(config: RunConfig) -> Iterator[str]:
    """Replay hosts of a run in which no player's rows are kept."""
    hosts, groups = config.runtime.replay_hosts, config.league.players
    learners = [made.learner for group in groups if (made := _made(config, group)[0]) is not None]
    kinds = sorted({kind_of(learner.row_source) for learner in learners})
    if hosts > 0 and config.runtime.kind == "ray" and kinds and "replay" not in kinds:
        yield (
            f"runtime.replay_hosts: {counted(hosts, 'host')} would have nothing to do, as learner.row_source of every "
            f"player is {' or '.join(kinds)}; use 0, or row_source: {{kind: replay}}"
        )


@dataclass(frozen=True)
class OwnValue:
    """A setting of a group that differs from the run's. place: of the group; key: within it, as in the run."""

    place: int
    key: str
    own: object
    run: object


def own_values(config: RunConfig) -> Iterator[OwnValue]:
    """Every setting in which the players of a group differ from the run."""
    run = plain_of(PlayerSections.of_run(config))
    for place, group in enumerate(config.league.players):
        if has_own(group):
            own = plain_of(settings_of(config, group.player_id(0)))
            yield from (OwnValue(place, *difference) for difference in _differences(own, run, ""))


def _differences(own: object, run: object, path: str) -> Iterator[tuple[str, object, object]]:
    if isinstance(own, dict) and isinstance(run, dict):
        same_kind = own.get("kind") == run.get("kind")
        for key in own if same_kind else ("kind",):
            yield from _differences(own[key], run.get(key), f"{path}.{key}" if path else key)
    elif own != run:
        yield path, own, run


def _made(config: RunConfig, group: PlayerConfig) -> tuple[PlayerSections | None, list[str]]:
    """The whole settings of a group, and what is wrong with their keys and types."""
    whole: dict[str, object] = {
        section: _overlaid(plain_of(getattr(config, section)), getattr(group, section), (section,))
        for section in SECTIONS
    }
    sections, problems = validate(whole, PlayerSections, KNOWN)
    if problems:
        return None, problems
    for section, value in sections.items():
        sections[section], found = with_options(section, value)
        problems += found
    return PlayerSections(**sections), problems  # type: ignore[arg-type]  # validated against its fields


def _problems_of(config: RunConfig, group: PlayerConfig, made: PlayerSections) -> Iterator[str]:
    for section in SECTIONS:
        yield from section_problems(section, getattr(made, section))
    yield from learner_conflicts(made.learner, made.network)
    yield from acting_conflicts(made.actors, made.learner)
    yield from search_problems(made.actors, made.network, config.env)
    for problem in wait_problems(config.actors, made.learner):
        yield f"learner.{problem}"
    for section, keys in OF_THE_RUN.items():
        for key in sorted(getattr(group, section).keys() & keys.keys()):
            yield f"{section}.{key}: {keys[key]}; set {section}.{key}"
    if made.learner.has_teacher and made.network != config.network:
        yield "network: the teacher is of the run's network, not of this one; set learner.teacher_cost to 0 beside it"
    if made.learner.has_teacher and not config.teacher.source:
        yield "learner.teacher_cost: the run has no teacher; give teacher.source"


def _overlaid(run: object, own: Mapping[str, object], path: tuple[str, ...]) -> dict[str, object]:
    """A plain section of the run with a player's keys over it; options of a component only over those of its kind."""
    assert isinstance(run, dict)
    whole = dict(run)
    for key, value in own.items():
        here = (*path, str(key))
        hint, before = KNOWN.types.get(here), run.get(key)
        if dataclasses.is_dataclass(hint) and isinstance(value, Mapping):
            whole[key] = _overlaid(before, value, here)
        elif hint == Component and isinstance(value, str | Mapping):
            whole[key] = _chosen(before, value)
        else:
            whole[key] = value
    return whole


def _chosen(run: object, own: Component) -> Component:
    assert isinstance(run, str | Mapping)
    kind = kind_of(own) or kind_of(run)
    options = {**(given_options(run) if kind == kind_of(run) else {}), **given_options(own)}
    return {"kind": kind, **options} if options else kind
