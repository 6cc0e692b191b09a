"""The plan of an operation that takes a frozen policy from outside into a running league."""

from __future__ import annotations

from league.config.changes import differences
from league.config.commented import recommented
from league.config.run_config import RunConfig, config_plain
from league.core.state.commands import ChangeLeague, Command, ImportPolicy
from league.core.state.population_config import FixedOpponentConfig
from league.core.state.records import IMPORTED_PREFIX
from league.errors import LeagueError
from league.policies.imported import FromOutside, fits_running_hosts
from league.run.operations.plans import OperationRefused, Plan, PlanInputs, overridden

KEY = "league.fixed_opponents"


def plan_admit(
    inputs: PlanInputs, outside: FromOutside, *, source: str, name: str, player: str, probability: float, role: str
) -> Plan:
    """A frozen policy joins, as a fixed opponent that takes a fraction of the games and is rated.

    Args:
      outside: reads the policies that a fixed opponent stands for.
      source, player: the run folder, or that of one snapshot, and whom of it. name: of the policy here.
      role: that meets it; empty for every one.
    """
    policy = name if name.startswith(IMPORTED_PREFIX) else IMPORTED_PREFIX + name
    if policy in inputs.state.population.index:
        raise OperationRefused(f"{policy} is in the league already")
    if not inputs.state.is_competitive:
        raise OperationRefused("a game of one team has no opponents")
    try:
        opponent = FixedOpponentConfig(policy, probability, (role,) if role else (), source, player)
        joining = outside(inputs.config, opponent)
    except ValueError as error:
        raise OperationRefused(str(error)) from error
    except LeagueError as error:
        raise OperationRefused(str(error)) from error
    if problem := fits_running_hosts(inputs.config, joining):
        raise OperationRefused(problem)
    config = _with(inputs.config, [policy.opponent for policy in joining])
    changes = tuple(differences(config_plain(inputs.config), config_plain(config)))
    commands: list[Command] = [
        ImportPolicy(policy.opponent.policy, policy.copy.manifest.digest, policy.copy.manifest.version)
        for policy in joining
    ]
    text = recommented(config, inputs.state.config_text)
    commands.append(ChangeLeague(changes, text, inputs.by, inputs.reason))
    names = ", ".join(policy.opponent.policy for policy in joining)
    stored = tuple((policy.copy.weights, policy.copy.manifest) for policy in joining)
    return Plan(f"admits {names} from {source}", tuple(commands), config, stored)


def _with(config: RunConfig, joining: list[FixedOpponentConfig]) -> RunConfig:
    section = config_plain(config)["league"]
    assert isinstance(section, dict)
    added = [
        {
            "policy": opponent.policy,
            "probability": opponent.probability,
            "roles": list(opponent.roles),
            "source": opponent.source,
            "player": opponent.player,
        }
        for opponent in joining
    ]
    return overridden(config, [(KEY, [*section["fixed_opponents"], *added])])
