"""`league check-env`: whether an environment keeps the contract, as facts and broken rules."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from league.config.auto.resolve import resolve
from league.config.run_config import BudgetConfig
from league.config.yaml import parse_yaml
from league.envs.conformance import STEPS, Finding, check_env
from league.envs.protocol import EnvConfig
from league.errors import ConfigError, LeagueError
from league.json_report import JsonReport
from league.processes.task_thread import watched
from league.see.reports.env_play import Measures, measure
from league.stages import begin_stage

CALL_DEADLINE_S = 120.0
"""For one call of the env, as in a run where nothing else is configured."""

BUDGET = BudgetConfig(seconds=600.0)
"""Budget that settings are chosen for."""

SECONDS = 6.0
"""Of processor time for the measures by default."""

LIMIT_S = 15.0
"""Of the turns that a check plays, which a slow env plays fewer of; it plays them twice."""


@dataclass(frozen=True)
class EnvReport(JsonReport):
    """Result of `league check-env`.

    Fields:
      facts: one line each. problems: broken rules with their remedies.
      measures: of random play; None if the env cannot be played, or no time was given.
      settings: dotted key -> value and reason, that a run with nothing set would have for `BUDGET`; empty with them.
    """

    env_id: str
    facts: tuple[str, ...]
    problems: tuple[str, ...]
    measures: Measures | None = None
    settings: Mapping[str, tuple[object, str]] = field(default_factory=dict)

    def json_extras(self) -> Mapping[str, object]:
        """`ok`: true where nothing is wrong; `share_of_bare`: the speed over that of the bare game."""
        share = {} if self.measures is None else {"share_of_bare": self.measures.share}
        return {**share, "ok": not self.problems}

    def text(self) -> str:
        count = len(self.problems)
        places = f"{count} place" if count == 1 else f"{count} places"
        verdict = f"breaks the contract in {places}" if count else "ready to train on"
        measured = () if self.measures is None else self.measures.lines()
        lines = [f"  {line}" for line in (*self.facts, *measured)] + [f"  BAD  {line}" for line in self.problems]
        if self.settings:
            lines.append("settings that are chosen for ten minutes on this machine:")
            lines += [f"  {key} = {json.dumps(value)}  ({why})" for key, (value, why) in self.settings.items()]
        return "\n".join([f"{self.env_id}: {verdict}", *lines])


def check_environment(
    env_id: str, options: Sequence[str], *, teams: str = "[]", steps: int = STEPS, seconds: float = SECONDS
) -> EnvReport:
    """Try an environment against the contract.

    Args:
      env_id: as in a configuration. options: "name=value" each, the value in YAML.
      teams: as in a configuration, in YAML.
      steps: turns that are played at random.
      seconds: of processor time for the measures; 0 for none.
    Raises:
      LeagueError: an option or the teams are not of that form.
      EnvError: a call of the env did not come back within `CALL_DEADLINE_S`.
    """
    kwargs = {}
    for option in options:
        name, equals, value = option.partition("=")
        if not equals or not name:
            raise LeagueError(f"{option!r} is not NAME=VALUE.")
        kwargs[name] = parse_yaml(value, source=option)
    config = EnvConfig(env_id, kwargs, teams=_teams(teams))
    findings: list[Finding] = []
    measures: list[Measures] = []

    def check() -> None:
        begin_stage(f"trying {env_id} against the contract")
        findings.extend(check_env(config, steps=steps, limit_s=LIMIT_S))
        if seconds > 0 and not any(found.kind == "fault" for found in findings):
            begin_stage("measuring its speed and its games", seconds=seconds)
            measures.append(measure(config, seconds=seconds))

    watched(
        check,
        deadline_s=CALL_DEADLINE_S,
        say=lambda sentence: print(sentence, file=sys.stderr, flush=True),
    )
    return EnvReport(
        env_id,
        facts=tuple(f"{found.rule}: {found.text}" for found in findings if found.kind == "fact"),
        problems=tuple(f"{found.rule}: {found.text}" for found in findings if found.kind == "fault"),
        measures=measures[0] if measures else None,
        settings=_settings(config) if measures else {},
    )


def _settings(env: EnvConfig) -> dict[str, tuple[object, str]]:
    """The chosen settings of a game that keeps the contract."""
    given = {"kwargs": env.kwargs, "teams": env.teams}
    overrides = [f"env.{key}={json.dumps(value)}" for key, value in given.items() if value]
    found = resolve(env.id, overrides=overrides, limit=BUDGET)
    return {choice.key: (choice.value, choice.reason) for choice in found.choices}


def _teams(text: str) -> tuple[tuple[str, ...], ...]:
    """The teams that YAML lists of names and patterns give.

    Raises:
      LeagueError: it is something else.
    """
    try:
        teams = parse_yaml(text, source="--teams")
    except ConfigError:
        teams = None
    if not isinstance(teams, list) or not all(isinstance(team, list) and team for team in teams):
        raise LeagueError(f'--teams: {text!r} is no list of lists of seats; write it as "[[red_*], [blue_*]]".')
    return tuple(tuple(str(seat) for seat in team) for team in teams)
