"""The choice of teams and of seats that share networks, in a game that does not say it itself."""

from __future__ import annotations

import re
from dataclasses import replace

from league.config.auto.draft import AutoValue
from league.envs.facts.game_facts import ENOUGH_EPISODES, GameFacts
from league.envs.protocol import EnvConfig, EnvError
from league.envs.registry import spec_of

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
