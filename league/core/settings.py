"""Changes of a league while it runs: which settings may change, what follows from it, and players that join late.

A key is a dotted path. `league.*` are keys of the configuration that the core itself holds. `players.NAME.*`,
`league_state.*` and the marks of `league.core.marks` belong to this league and stand in no file. Every other key is of
a section that the core only notes.
"""

from __future__ import annotations

import copy
import fnmatch
import json
from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from league.core.directives import BEFORE_RESET, start_again_from
from league.core.marks import apply_mark, check_mark, is_mark, mark_of
from league.core.pbt.pbt import first_values
from league.core.state.commands import AddPlayer, ChangeLeague, Refused, RequestReset
from league.core.state.events import ConfigChange, DirectiveIssued, Event, PlayerAdded, SettingsChanged
from league.core.state.league_config import LeagueConfig
from league.core.state.population_config import check_hyperparameter
from league.core.state.records import INITIAL, Directive, DirectiveKind, Hyperparameter
from league.core.state.state import AppliedRemedy, LeagueState, Pause, PlayerState
from league.core.state.state_codec import decode, encode

RETIRED_PLAYER = "retired"
"""Reason of the snapshot of a player that leaves; a player that is only paused needs none."""

LIVE = (
    "lease_steps",
    "ratings.step_fraction",
    "ratings.parent_draws",
    "ratings.opponents_per_lease",
    "ratings.final_*",
    "payoff.half_life_steps",
    "payoff.half_life_snapshots",
    "meta_game.growth",
    "meta_game.max_policies",
    "meta_game.explore",
    "pbt.period_steps",
    "pbt.burn_in_steps",
    "pbt.min_games",
    "pbt.factor",
    "pbt.mutation",
    "pbt.resample",
    "pbt.across_roles",
    "fixed_opponents",
    "fixed_opponents.*.probability",
    "players.*.step_weight",
    "players.*.gate.*",
    "players.*.matchmaker.*",
    "players.*.opponents_per_lease",
)
"""Keys under `league` that may change while the league runs, as patterns."""

FIXED_OPPONENTS = "league.fixed_opponents"
PLAYER_KEYS = ("paused", "retired", "step_weight")
TRAINING_PAUSED = "league_state.training_paused"
STATE_KEYS = (TRAINING_PAUSED, "league_state.rating_paused")
LIVE_VALUES = ("learning_rate", "entropy_cost", "pfsp_exponent", "self_play")
"""Hyperparameters of one player that may change while it learns."""


def is_live(key: str) -> bool:
    """True if a key under `league` may change while the league runs."""
    section, _, rest = key.partition(".")
    return section == "league" and any(fnmatch.fnmatchcase(rest, pattern) for pattern in LIVE)


def is_of_league(key: str) -> bool:
    """True if a key stands in no configuration: of this league's state, of one player, or a mark."""
    return key in STATE_KEYS or key.startswith("players.") or is_mark(key)


def change_settings(state: LeagueState, command: ChangeLeague, rng: np.random.Generator) -> list[Event]:
    """Note the changes; a player that retires is frozen first.

    Raises:
      Refused: a key may not change, has that value already, or cannot have it; the sentence names the rule.
    """
    if not command.changes:
        raise Refused("no change is given")
    changes = tuple(_checked(state, change) for change in command.changes)
    league_of(state, changes)
    retiring = [key.split(".")[1] for key, new in _values(changes) if key.endswith(".retired") and new is True]
    _require_learners(state, changes)
    event = SettingsChanged(changes, command.text, command.by, command.reason, command.undoes, command.remedy)
    numbers = iter(range(state.next_directive_id, state.next_directive_id + len(retiring)))
    frozen = [
        DirectiveIssued(Directive(next(numbers), DirectiveKind.SNAPSHOT, name, RETIRED_PLAYER))
        for name in retiring
        if not state.open_directives(name)
    ]
    return [event, *frozen]


def add_player(state: LeagueState, command: AddPlayer, rng: np.random.Generator) -> list[Event]:
    """Add one player to a group, and issue the snapshot of its first weights.

    Raises:
      Refused: no such group or snapshot, or the changes do not make room for exactly this player.
    """
    config = league_of(state, command.changes)
    if not 0 <= command.group < len(config.players):
        raise Refused(f"there is no group {command.group} of players; there are {len(config.players)}")
    group = config.players[command.group]
    there = sum(player.group == command.group for player in state.players.values())
    if group.count != there + 1:
        raise Refused(f"group {command.group} has {there} players; its count must become {there + 1}")
    source = command.parent or group.starts_from
    if source and not state.is_present(source):
        raise Refused(f"there is no snapshot {source!r} whose weights can be had")
    parent = state.snapshots[source].player if source else ""
    if parent in state.players and state.config_of(parent).network != group.network:
        raise Refused(f"{source} has another network than the players of {group.prefix}")
    name = group.player_id(there)
    values = first_values(config.pbt, group, rng, is_first=True)
    directive = Directive(state.next_directive_id, DirectiveKind.SNAPSHOT, name, INITIAL)
    return [
        SettingsChanged(command.changes, command.text, command.by, command.reason),
        PlayerAdded(name, group.role, command.group, group.step_weight, values, source or None),
        DirectiveIssued(directive),
    ]


def request_reset(state: LeagueState, command: RequestReset, rng: np.random.Generator) -> list[Event]:
    """Freeze a player, after which it starts again from where its role does.

    Raises:
      Refused: no such player, it waits for a directive already, or nothing is there to start from.
    """
    player = state.players.get(command.player)
    if player is None:
        raise Refused(f"no player {command.player!r}; there are {', '.join(list(state.players)[:10])}")
    if state.open_directives(player.name):
        raise Refused(f"{player.name} waits for its learner to carry out a directive; ask again after that")
    if start_again_from(state, player) is None:
        raise Refused(f"{player.name} has no snapshot to start again from")
    return [DirectiveIssued(Directive(state.next_directive_id, DirectiveKind.SNAPSHOT, player.name, BEFORE_RESET))]


def league_of(state: LeagueState, changes: Iterable[ConfigChange]) -> LeagueConfig:
    """The league's settings with the changes of `league.*` keys in them.

    Raises:
      Refused: they contradict each other or a limit.
    """
    assert state.config is not None
    mine = [(key, new) for key, new in _values(changes) if key.startswith("league.")]
    if not mine:
        return state.config
    plain = copy.deepcopy(encode(state.config))
    for key, new in mine:
        *path, last = key.split(".")[1:]
        place = plain
        for part in path:
            place = place[int(part) if isinstance(place, list) else part]
        place[int(last) if isinstance(place, list) else last] = new
    try:
        config = decode(LeagueConfig, plain)
    except (ValueError, TypeError) as error:
        raise Refused(str(error)) from error
    assert isinstance(config, LeagueConfig)
    return config


def apply_settings(state: LeagueState, event: SettingsChanged) -> None:
    """The settings hold from here on; a player's weight counts for the steps after this."""
    before = state.config
    state.config = league_of(state, event.changes)
    assert before is not None
    if event.remedy:
        times = state.remedies[event.remedy].times if event.remedy in state.remedies else 0
        state.remedies[event.remedy] = AppliedRemedy(
            times + 1, state.next_lease_id, state.totals.env_steps, event.reason
        )
    if event.text:
        state.config_text_before, state.config_text = state.config_text, event.text
    if not state.config.payoff.follows_snapshots:
        state.payoff.half_life_steps = state.config.half_life_steps
    for player in state.players.values():
        weight = state.config.players[player.group].step_weight
        if weight != before.players[player.group].step_weight:
            state.fair_share.reweight(player.index, weight)
    for key, new in _values(event.changes):
        section, _, rest = key.partition(".")
        if section == "players":
            name, _, what = rest.rpartition(".")
            _apply_to_player(state, state.players[name], what, new)
        elif is_mark(key):
            apply_mark(state, key, new)
        elif key in STATE_KEYS:
            setattr(state, rest, new)
            if key == TRAINING_PAUSED:
                state.training_pause = Pause(event.by, event.reason) if new else None


def _apply_to_player(state: LeagueState, player: PlayerState, what: str, new: object) -> None:
    if what == "step_weight":
        assert isinstance(new, int | float)
        state.fair_share.reweight(player.index, float(new))
    elif what in PLAYER_KEYS:
        was_active = player.is_active
        setattr(player, what, new)
        if what == "retired" and new:
            state.population.set_aside(player.policy, reason=RETIRED_PLAYER)
        elif what == "retired":
            state.population.take_back(player.policy)
        if was_active != player.is_active:
            state.fair_share.num_blocking.values[player.index] += 1 if was_active else -1
            if player.is_active:
                state.fair_share.rejoin(player.index)
    else:
        others = tuple(item for item in player.hyperparameters if item.name != what)
        assert isinstance(new, int | float)
        player.hyperparameters = (*others, Hyperparameter(what, float(new)))


def value_of(state: LeagueState, key: str) -> object:
    """The present value of a key that the core holds.

    Raises:
      Refused: there is no such key.
    """
    section, _, rest = key.partition(".")
    if key in STATE_KEYS:
        return getattr(state, rest)
    if is_mark(key):
        return mark_of(state, key)
    if section == "players":
        name, _, what = rest.rpartition(".")
        player = state.players.get(name)
        if player is None:
            raise Refused(f"{key}: no player {name!r}; there are {', '.join(list(state.players)[:10])}")
        if what == "step_weight":
            return float(state.fair_share.step_weight.values[player.index])
        if what in PLAYER_KEYS:
            return getattr(player, what)
        if what in LIVE_VALUES:
            return next((item.value for item in player.hyperparameters if item.name == what), 1.0)
        raise Refused(f"{key}: of a player {', '.join((*PLAYER_KEYS, *LIVE_VALUES))} may change, not {what!r}")
    place = encode(state.config)
    for part in rest.split("."):
        try:
            place = place[int(part) if isinstance(place, list) else part]
        except (KeyError, IndexError, ValueError, TypeError):
            raise Refused(f"{key}: there is no such setting") from None
    return place


def _checked(state: LeagueState, change: ConfigChange) -> ConfigChange:
    """The change with the value that the core has now as its old one.

    Raises:
      Refused: the key may not change, or not to this value.
    """
    section = change.key.partition(".")[0]
    if section == "league" and not is_live(change.key):
        raise Refused(f"{change.key} was settled when the league was created; `league train` creates another one")
    if section != "league" and not is_of_league(change.key):
        return change
    old, new = value_of(state, change.key), json.loads(change.new)
    if change.key == FIXED_OPPONENTS:
        _require_there(state, new)
    if is_mark(change.key):
        check_mark(state, change.key, new)
    elif section != "league":
        _check_own(change.key, old, new)
    if old == new:
        raise Refused(f"{change.key} is {change.new} already")
    return replace(change, old=json.dumps(old))


def _require_there(state: LeagueState, opponents: object) -> None:
    """Refuse fixed opponents that have not joined: a setting brings no weights."""
    assert isinstance(opponents, list)
    for opponent in opponents:
        if opponent["policy"] not in state.population.index:
            raise Refused(f"{opponent['policy']} is not in the league; `league admit` takes a policy in")


def _check_own(key: str, old: object, new: object) -> None:
    """Refuse a value of a key that stands in no file."""
    if isinstance(old, bool):
        if not isinstance(new, bool):
            raise Refused(f"{key}: give true or false, not {new!r}")
        return
    if isinstance(new, bool) or not isinstance(new, int | float):
        raise Refused(f"{key}: give a number, not {new!r}")
    what = key.rpartition(".")[2]
    try:
        check_hyperparameter("learning_rate" if what == "step_weight" else what, float(new))
    except ValueError as error:
        raise Refused(f"{key}: {str(error).replace('learning_rate', what)}") from error


def _require_learners(state: LeagueState, changes: Iterable[ConfigChange]) -> None:
    """Refuse changes after which nobody would learn, though training is not paused."""
    values = dict(_values(changes))
    left = [
        name
        for name, player in state.players.items()
        if not values.get(f"players.{name}.retired", player.retired)
        and not values.get(f"players.{name}.paused", player.paused)
    ]
    if not left and any(key.startswith("players.") for key in values):
        raise Refused("no player would learn any more; pause training instead, or add a player first")


def _values(changes: Iterable[ConfigChange]) -> Iterator[tuple[str, object]]:
    for change in changes:
        yield change.key, json.loads(change.new)
