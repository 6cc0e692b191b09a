"""Resolves a user's file, or the mere id of a game, into a whole configuration, with the reason of every choice."""

from __future__ import annotations

import difflib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from league.agents.nets.config import NetworkConfig
from league.config.auto import rules_actors, rules_cores, rules_league, rules_learner, rules_network, rules_run
from league.config.auto.draft import AutoValue, Draft, Rule, without_auto
from league.config.auto.measure import measure, network_costs
from league.config.auto.situation import NetworkCosts, Situation
from league.config.checks import section_problems
from league.config.loading import KNOWN, config_of, plain_config
from league.config.plugin_names import outside_names
from league.config.problems import validate
from league.config.run_config import BudgetConfig, GameConfig, RunConfig
from league.envs.facts.game_facts import ENOUGH_EPISODES, GameFacts
from league.envs.plugins import admit
from league.envs.protocol import EnvConfig, EnvError, EnvSpec
from league.envs.registry import BUILT_IN, spec_of
from league.errors import ConfigError

EARLY_RULES: tuple[Rule, ...] = (*rules_run.RULES, *rules_network.RULES)
"""Rules that decide on the network; the others also look at its costs."""
RULES: tuple[Rule, ...] = (
    *rules_actors.RULES,
    *rules_learner.RULES,
    *rules_cores.RULES,
    *rules_actors.LATE_RULES,
    *rules_league.RULES,
    *rules_cores.LATE_RULES,
    *rules_run.LATE_RULES,
)
"""The rules that follow, in the order in which they see each other's choices."""

NO_RULE = "the same for every game and budget"


@dataclass(frozen=True)
class Resolved:
    """A whole configuration.

    Fields:
      config: of the run. choices: what was chosen, in order. situation: what the choices rest on.
      given: dotted keys of the user's own values.
    """

    config: RunConfig
    choices: tuple[AutoValue, ...]
    situation: Situation
    given: frozenset[str]

    @property
    def reasons(self) -> dict[str, str]:
        """Dotted key -> reason of every choice."""
        return {choice.key: choice.reason for choice in self.choices}


def resolve(
    source: str,
    *,
    overrides: Sequence[str] = (),
    limit: BudgetConfig | None = None,
    ends_by_steps: bool = False,
) -> Resolved:
    """The configuration in a file of the user's own, or of a game by its id, with all open settings chosen.

    Args:
      source: path of a YAML file, or the id of an env.
      overrides: "dotted.key=value" each, the value in YAML, applied in order over the file.
      limit: of the command; it is the budget where the file has none.
      ends_by_steps: whether the command is limited by env steps, so that a run in one process repeats exactly.
    Raises:
      ConfigError: with every problem at once.
      EnvError: the game cannot be made, or raised.
    """
    given, open_keys, sections = _checked(source, overrides)
    env, budget = sections["env"], sections.get("budget", BudgetConfig())
    assert isinstance(env, EnvConfig) and isinstance(budget, BudgetConfig)
    draft = Draft(given)
    if budget == BudgetConfig() and limit is not None and limit != BudgetConfig():
        budget = limit
        draft.take(
            AutoValue(f"budget.{key}", value, "the limit of the command that started the run")
            for key, value in asdict(limit).items()
            if value is not None
        )
    chosen = sections.get("game", GameConfig())
    assert isinstance(chosen, GameConfig)
    is_exact = _is_exact(draft, budget, ends_by_steps=ends_by_steps)
    situation = measure(env, budget, is_exact=is_exact)
    teams = None if draft.has(TEAMS) else chosen_teams(env, situation.game)
    policies = None if draft.has(POLICIES) else chosen_policies(env, situation.game)
    seats = [choice for choice in (teams, policies) if choice is not None]
    if seats:
        draft.take(seats)
        named = validate(draft.plain, RunConfig, KNOWN)[0]["env"]
        assert isinstance(named, EnvConfig)
        situation = measure(named, budget, is_exact=is_exact)
    situation = replace(situation, chosen=chosen)
    situation, choices = settle(draft, situation, open_keys=open_keys, costs_of=network_costs)
    return Resolved(config_of(draft.plain, [], source=source), choices, situation, frozenset(_leaves(given, "")))


def run_name(source: str, overrides: Sequence[str]) -> str:
    """The name that `resolve` gives to a run, without a look at its game. Raises ConfigError."""
    given, _, sections = _checked(source, overrides)
    env = sections["env"]
    assert isinstance(env, EnvConfig)
    return str(given.get("name") or rules_run.name_of_game(env.id) or RunConfig(env=env).name)


def _checked(source: str, overrides: Sequence[str]) -> tuple[dict[str, Any], Sequence[str], dict[str, Any]]:
    """The settings that a source gives, the keys that it leaves to `auto`, and its sections.

    Raises:
      ConfigError: with every problem that shows without the game.
    """
    text, folder = _text_of(source)
    plain, problems = plain_config(text, source=source, overrides=overrides, folder=folder)
    admit(found.entry for found in outside_names(plain))
    given, open_keys = without_auto(plain, KNOWN.types)
    sections, found = validate(given, RunConfig, KNOWN)
    if problems or found or list(section_problems("budget", sections.get("budget", BudgetConfig()))):
        config_of(given, problems, source=source)  # raises, with what is wrong beside that
    return given, open_keys, sections


def settle(
    draft: Draft,
    situation: Situation,
    *,
    open_keys: Sequence[str] = (),
    costs_of: Callable[[EnvSpec, NetworkConfig], NetworkCosts] | None = None,
) -> tuple[Situation, tuple[AutoValue, ...]]:
    """Fill all open settings of a draft by the rules, in order; returns the situation with its network, and choices.

    Args:
      open_keys: keys given as `auto`; one without a rule has its default.
      costs_of: measures the network; None for nominal costs, which a run that repeats exactly has in any case.
    """
    for rule in EARLY_RULES:
        draft.take(rule(situation, draft))
    if costs_of is not None and not situation.is_exact:
        network = validate(draft.plain, RunConfig, KNOWN)[0].get("network", NetworkConfig())
        assert isinstance(network, NetworkConfig)
        situation = replace(situation, network=costs_of(situation.game.spec, network))
    for rule in RULES:
        draft.take(rule(situation, draft))
    left = [key for key in open_keys if not draft.has(key)]
    draft.take([AutoValue(key, value, NO_RULE) for key in left if not isinstance(value := draft.value(key), Mapping)])
    return situation, draft.choices


def _leaves(value: object, path: str) -> Iterator[str]:
    """Dotted keys of all values in nested mappings; a list is one value."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _leaves(item, f"{path}.{key}" if path else str(key))
    else:
        yield path


def _is_exact(draft: Draft, budget: BudgetConfig, *, ends_by_steps: bool) -> bool:
    """True for a run in one process that only env steps end: it must repeat exactly, so no choice may use a clock."""
    timed = budget.seconds is not None or budget.core_seconds is not None
    if draft.has("runtime.kind"):
        in_process = draft.value("runtime.kind") == "inprocess"
    else:
        in_process = budget.seconds is None and not rules_run.asks_for_hosts(draft)
    return in_process and (ends_by_steps or (budget.env_steps is not None and not timed))


def _text_of(source: str) -> tuple[str, Path | None]:
    """The text of a configuration and its folder; for the id of a game a text that names it.

    Raises:
      ConfigError: it looks like a file, and there is none that can be read.
    """
    path = Path(source)
    if source not in BUILT_IN and (problem := _no_file_problem(path)):
        raise ConfigError(source, [problem])
    is_file_name = path.suffix in (".yaml", ".yml") or path.is_file()
    if not is_file_name or path.suffix == ".py":  # a game whose function is missing, as the env says
        return json.dumps({"env": {"id": source}}, ensure_ascii=False), None
    try:
        return path.read_text(encoding="utf-8"), path.parent
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigError(source, [f"the file cannot be read: {reason}{_near_files(path)}"]) from error


def _no_file_problem(path: Path) -> str:
    """The problem of a path that is a folder, or that leads nowhere and is no id; empty for anything else."""
    if (path / "config.yaml").is_file():
        return f"it is the folder of a run: `league resume {path}` continues it, {path / 'config.yaml'} begins another"
    if path.is_dir():
        return "it is a folder without a run: give the YAML file of a configuration, or the id of a game"
    if os.sep in str(path) and ":" not in str(path) and not path.suffix and not path.exists():
        return f"there is no such file or folder{_near_files(path) or ', and the id of a game has no path'}"
    return ""


def _near_files(path: Path) -> str:
    """The nearest files beside one that does not exist."""
    if path.exists() or not path.parent.is_dir():
        return ""
    names = [found.name for found in path.parent.iterdir() if found.suffix in (".yaml", ".yml")]
    near = difflib.get_close_matches(path.name, names, n=3, cutoff=0.5)
    return f"; did you mean {' or '.join(str(path.parent / name) for name in near)}?" if near else ""


TEAMS, POLICIES = "env.teams", "env.policies"


def chosen_teams(env: EnvConfig, game: GameFacts) -> AutoValue | None:
    """The teams by what seats returned in random play; None if none show, or if the game has its own way to say it.

    Seats with equal returns want the same, whatever the game calls them: against each other they would be taught that
    a partner's mistake is their luck.
    """
    spec = game.spec
    if not game.equal_seats or not spec.seat_names or spec.num_teams < spec.num_seats:
        return None
    grouped = {seat for group in game.equal_seats for seat in group}
    groups = [*game.equal_seats, *((seat,) for seat in range(spec.num_seats) if seat not in grouped)]
    teams = tuple(tuple(spec.seat_names[seat] for seat in group) for group in sorted(groups))
    if not _fits(replace(env, teams=teams)):
        return None
    count = sum(len(group) for group in game.equal_seats)
    where = f"{game.episodes} random games" if game.episodes >= ENOUGH_EPISODES else "all of random play"
    reason = f"{count} seats earned the same as others, or nearly so, in {where}"
    return AutoValue(TEAMS, [list(team) for team in teams], reason)


def chosen_policies(env: EnvConfig, game: GameFacts) -> AutoValue | None:
    """Networks for each role, where random play shows that seats with equal spaces do not have the same one.

    A network that is shown the same for two roles would play both alike, and groups of seats have scales of rewards of
    their own. None where all seats with equal spaces may share, or the game takes no groups.
    """
    if not game.roles:
        return None
    names = game.spec.seat_names
    labels = [re.sub(r"[^A-Za-z0-9_-]", "_", names[group[0]])[:64] for group in game.roles]
    if len(set(labels)) < len(labels):  # in letters of another script
        labels = [f"seat-{group[0]}" for group in game.roles]
    policies = {label: tuple(names[seat] for seat in group) for label, group in zip(labels, game.roles, strict=True)}
    if not _fits(replace(env, policies=policies)):
        return None
    return AutoValue(POLICIES, {name: list(seats) for name, seats in policies.items()}, game.roles_differ)


def _fits(env: EnvConfig) -> bool:
    """True if the game takes these seats."""
    try:
        spec_of(env)
    except EnvError:
        return False
    return True
