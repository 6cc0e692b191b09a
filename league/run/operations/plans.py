"""Plans of operations: the commands that an operation comes to in the league as it stands, or the rule against it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from league.config.changes import differences, live_problem
from league.config.commented import recommented
from league.config.loading import config_of
from league.config.plugin_names import outside_names, with_absolute_files
from league.config.problems import apply_override
from league.config.run_config import RunConfig, config_plain
from league.core.retention import plan_retention
from league.core.settings import is_of_league, value_of
from league.core.state.commands import (
    AddPlayer,
    ChangeLeague,
    Command,
    Refused,
    RequestReset,
    RequestSnapshot,
    RetireSnapshots,
)
from league.core.state.events import ConfigChange, Event, PolicyImported, SettingsChanged
from league.core.state.league_config import PlayerConfig
from league.core.state.state import LeagueState, PlayerState
from league.envs.guard.settings import working_folder
from league.errors import ConfigError, LeagueError
from league.policies.auto_export import AUTO, EXPORTS
from league.store.snapshots import SnapshotManifest
from league.wording import counted

MANUAL = "manual"
"""Reason of a snapshot that somebody asked for."""

MAX_SHOWN = 4


class OperationRefused(LeagueError):  # noqa: N818 - it is an answer
    """An operation does not fit the league as it stands; the sentence names the rule."""


@dataclass(frozen=True)
class PlanInputs:
    """The inputs of a plan.

    Fields:
      state: of the league. config: of the run as it is now.
      by: user and machine, or the run itself. reason: for people; may be empty.
      event_of: the event of a number in the journal; None for none.
      hosts: names of the actor hosts. learner_hosts: of the learner hosts.
    """

    state: LeagueState
    config: RunConfig
    by: str
    reason: str
    event_of: Callable[[int], Event | None]
    hosts: tuple[str, ...] = ()
    learner_hosts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Plan:
    """The result of planning an operation.

    Fields:
      words: what it does, one sentence without a full stop. commands: in order.
      config: of the run afterwards.
      stored: weights with their manifests that lie in the run's store before the commands are carried out.
      is_undoable: whether `undo` takes it back, where it takes back operations of this kind.
    """

    words: str
    commands: tuple[Command, ...]
    config: RunConfig
    stored: tuple[tuple[bytes, SnapshotManifest], ...] = ()
    is_undoable: bool = True


def plan_set(
    inputs: PlanInputs, pairs: Sequence[tuple[str, object]], *, undoes: int = 0, remedy: str = "", allowed: str = ""
) -> Plan:
    """Settings get other values: of the configuration, of one player, or of the league's pauses.

    Args:
      pairs: (key, value) each. `league.players.NAME.*` may name a group by the prefix of its players' ids;
        `players.NAME.*` are one player's own.
      allowed: a key that this operation may change live although nobody else may.
    Raises:
      OperationRefused: a key may not change live, or not to that value.
    """
    own = [(key, value) for key, value in pairs if is_of_league(key)]
    for name in (AUTO, *EXPORTS):
        if dict(own).get(f"tags.{name}") is not None:
            raise OperationRefused(f"{name} names a policy in every run; choose another tag")
    others = [(_with_group(inputs.config, key), value) for key, value in pairs if not is_of_league(key)]
    config, text = inputs.config, ""
    changes = [ConfigChange(key, json.dumps(_held(inputs, key)), json.dumps(value)) for key, value in own]
    if others:
        config = overridden(inputs.config, others)
        before, after = config_plain(inputs.config), config_plain(config)
        found = tuple(differences(before, after))
        _require_live([change for change in found if change.key != allowed], before, after)
        changes += found
        text = recommented(config, inputs.state.config_text) if found else ""
    if not changes:
        key, value = pairs[0]
        raise OperationRefused(f"{key} is {json.dumps(value)} already")
    command = ChangeLeague(tuple(changes), text, inputs.by, inputs.reason, undoes, remedy)
    return Plan(_words_of(changes), (command,), config)


def plan_flag(inputs: PlanInputs, player: str, what: str, *, value: bool, words: str) -> Plan:
    """A flag of one player, or of every player of a role that has the other value."""
    names = [known.name for known in players_named(inputs.state, player) if getattr(known, what) != value]
    if not names:
        raise OperationRefused(f"{player} is {f'{what} already' if value else f'not {what}'}")
    plan = plan_set(inputs, [(f"players.{name}.{what}", value) for name in names])
    return replace(plan, words=f"{words} {', '.join(names)}")


def plan_freeze(inputs: PlanInputs, player: str) -> Plan:
    """A snapshot, and no more learning; its weights are met as they are."""
    plan = plan_flag(inputs, player, "paused", value=True, words="freezes")
    names = [known.name for known in players_named(inputs.state, player) if not known.paused]
    for name in names:
        if inputs.state.open_directives(name):
            raise OperationRefused(f"{name} waits for its learner to carry out a directive; ask again after that")
    return replace(plan, commands=(*plan.commands, *(RequestSnapshot(name, MANUAL) for name in names)))


def plan_snapshots(inputs: PlanInputs, player: str) -> Plan:
    """A snapshot of a player, or of every active one."""
    everyone = [known for known in inputs.state.players.values() if known.is_active]
    chosen = players_named(inputs.state, player) if player else everyone
    names = [known.name for known in chosen]
    return Plan(
        f"takes a snapshot of {', '.join(names)}", tuple(RequestSnapshot(name, MANUAL) for name in names), inputs.config
    )


def plan_reset(inputs: PlanInputs, player: str) -> Plan:
    """A player is frozen and starts again."""
    (known, *more) = players_named(inputs.state, player)
    if more:
        raise OperationRefused(f"{player} names {len(more) + 1} players; name the one that is to start again")
    return Plan(f"freezes {known.name} and lets it start again", (RequestReset(known.name),), inputs.config)


def plan_add(inputs: PlanInputs, role: str, *, parent: str, step_weight: float | None) -> Plan:
    """One player more of a role or group; of a new group where none has that role.

    Args:
      parent: snapshot or tag that it starts from; empty for new weights.
      step_weight: of a new group; a group that is there has its own.
    """
    parent = inputs.state.tags.get(parent, parent)
    plain = config_plain(inputs.config)
    groups = inputs.config.league.players
    index = next((i for i, group in enumerate(groups) if role in (group.role, group.prefix)), len(groups))
    if index < len(groups):
        if step_weight is not None:
            raise OperationRefused(f"players of {groups[index].prefix} have the step_weight of their group: set that")
        there = sum(player.group == index for player in inputs.state.players.values())
        override: tuple[str, object] = (f"league.players.{index}.count", there + 1)
    else:
        try:
            group = PlayerConfig(role=role, step_weight=1.0 if step_weight is None else step_weight)
        except (ValueError, ModuleNotFoundError) as error:
            raise OperationRefused(f"role {role}: {error}") from error
        section = plain["league"]
        assert isinstance(section, dict)
        override = ("league.players", [*section["players"], _group_plain(group)])
    config = overridden(inputs.config, [override])
    changes = tuple(differences(plain, config_plain(config)))
    source = f" from {parent}" if parent else ""
    return Plan(
        f"adds a player of {role}{source}",
        (AddPlayer(index, changes, recommented(config, inputs.state.config_text), parent, inputs.by, inputs.reason),),
        config,
    )


def plan_gc(inputs: PlanInputs, keep: int) -> Plan:
    """The weights of the snapshots that are needed least go, until so many have theirs."""
    there = len(inputs.state.population.snapshots())
    retired = len(plan_retention(inputs.state, keep=keep).retired) if keep >= 1 else 0
    if not retired:
        raise OperationRefused(
            f"{counted(there, 'snapshot')} with weights, of which {keep} may keep theirs: none can go"
        )
    note = f"by {inputs.by}" + (f": {inputs.reason}" if inputs.reason else "")
    words = f"removes the weights of {retired} of {counted(there, 'snapshot')}, once games in flight do without them"
    return Plan(words, (RetireSnapshots(keep, is_exact=True, note=note),), inputs.config)


def adds_player(event: SettingsChanged) -> bool:
    """True if a change came with a new player, which is taken back by retiring that player."""
    return any(change.key.endswith((".count", "league.players")) for change in event.changes)


def plan_undo(inputs: PlanInputs, number: int) -> Plan:
    """The changes of an event are taken back, where nothing has changed them again since."""
    event = inputs.event_of(number)
    while isinstance(event, PolicyImported):  # the change of the settings that follows names it
        number += 1
        event = inputs.event_of(number)
    if event is None:
        raise OperationRefused(f"the journal has no event {number}")
    if not isinstance(event, SettingsChanged):
        raise OperationRefused(
            f"event {number} is {type(event).__name__}, which has no inverse; only changes of settings have one"
        )
    if adds_player(event):
        raise OperationRefused(f"event {number} added a player; retire that player instead")
    for change in event.changes:
        if json.dumps(_present(inputs, change.key)) != change.new:
            raise OperationRefused(f"{change.key} was changed again after event {number}")
    plan = plan_set(inputs, [(change.key, json.loads(change.old)) for change in event.changes], undoes=number)
    return replace(plan, words=f"takes back event {number}: {plan.words}")


def players_named(state: LeagueState, name: str) -> list[PlayerState]:
    """The player of that id, or every player of that role that has not retired.

    Raises:
      OperationRefused: there is none.
    """
    if name in state.players:
        return [state.players[name]]
    found = [player for player in state.players.values() if player.role == name and not player.retired]
    if not found:
        raise OperationRefused(f"no player or role {name!r}; there are {', '.join(list(state.players)[:10])}")
    return found


def _held(inputs: PlanInputs, key: str) -> object:
    try:
        return value_of(inputs.state, key)
    except Refused as error:
        raise OperationRefused(str(error)) from error


def _present(inputs: PlanInputs, key: str) -> object:
    if is_of_league(key):
        return _held(inputs, key)
    place: object = config_plain(inputs.config)
    for part in key.split("."):
        if isinstance(place, list):
            place = place[int(part)] if part.isdigit() and int(part) < len(place) else None
        else:
            place = place.get(part) if isinstance(place, dict) else None
    return place


def _with_group(config: RunConfig, key: str) -> str:
    """`league.players.NAME.*` with the number of the group whose players' ids begin with NAME."""
    parts = key.split(".")
    if key.startswith("league.players.") and len(parts) > 3 and not parts[2].isdigit():
        prefixes = [group.prefix for group in config.league.players]
        if parts[2] not in prefixes:
            raise OperationRefused(f"{key}: no group of players {parts[2]!r}; there are {', '.join(prefixes)}")
        parts[2] = str(prefixes.index(parts[2]))
    return ".".join(parts)


def overridden(config: RunConfig, pairs: Iterable[tuple[str, object]]) -> RunConfig:
    """A configuration with keys set. Raises OperationRefused."""
    overrides = [f"{key}={json.dumps(value)}" for key, value in pairs]
    plain = config_plain(config)
    problems = [problem for override in overrides if (problem := apply_override(plain, override)) is not None]
    with_absolute_files(plain, (working_folder(),))
    try:
        return config_of(plain, problems, source="the configuration")
    except ConfigError as error:
        raise OperationRefused("; ".join(error.problems[:MAX_SHOWN])) from error


def _require_live(changes: Sequence[ConfigChange], before: object, after: object) -> None:
    for change in changes:
        rule = live_problem(change.key)
        if rule is not None:
            raise OperationRefused(f"{change.key} cannot change while the run goes: {rule}")
    known = {found.entry for found in outside_names(before)}
    strange = [found for found in outside_names(after) if found.entry not in known]
    if strange:
        raise OperationRefused(
            f"{strange[0].path} names code of your own, which a running league does not load: stop it, then "
            f"`league resume RUN -s {strange[0].path}=...`"
        )


def _words_of(changes: Sequence[ConfigChange]) -> str:
    shown = ", ".join(f"{change.key} {change.old} -> {change.new}" for change in changes[:MAX_SHOWN])
    more = f" and {len(changes) - MAX_SHOWN} more" if len(changes) > MAX_SHOWN else ""
    return f"sets {shown}{more}"


def _group_plain(group: PlayerConfig) -> object:
    """A group of players as the configuration holds it."""
    return {"role": group.role, "step_weight": group.step_weight}
