"""The choice of teams: seats that always earn the same, in a game that does not say who plays together."""

from __future__ import annotations

from dataclasses import replace

from envs.facts.game_facts import GameFacts
from envs.protocol import EnvConfig, EnvError
from envs.registry import spec_of
from league.config.auto.draft import AutoValue

TEAMS = "env.teams"


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
    try:
        spec_of(replace(env, teams=teams))
    except EnvError:
        return None
    count = sum(len(group) for group in game.equal_seats)
    reason = f"{count} seats earned the same as others in each of {game.episodes} random games"
    return AutoValue(TEAMS, [list(team) for team in teams], reason)
