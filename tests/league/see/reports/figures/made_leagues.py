"""A simulated league with everything that figures show: several roles, resets, a rated bot and unequal strength."""

from __future__ import annotations

import dataclasses
from functools import cache

from league.core.state.league_config import GateConfig, LeagueConfig, PlayerConfig, RatingConfig
from tests.league.core.simulated_league import QUICK_GATE, SimulatedLeague

BOT = "bot:random"


@cache
def made_league() -> SimulatedLeague:
    """Four players, whose later snapshots are stronger, after 260 leases; it is shared: do not change it."""
    exploiter: GateConfig = dataclasses.replace(QUICK_GATE, timeout_steps=3_000)
    config = LeagueConfig(
        players=(
            PlayerConfig(role="main_agent", count=2, step_weight=2.0, gate=QUICK_GATE),
            PlayerConfig(role="main_exploiter", gate=dataclasses.replace(exploiter, reset_to="main")),
            PlayerConfig(role="league_exploiter", gate=dataclasses.replace(exploiter, reset_probability=0.5)),
        ),
        ratings=RatingConfig(step_fraction=0.4, bots=(BOT,)),
    )
    league = SimulatedLeague(
        config, strength=lambda policy: 0.3 * int(policy.rpartition("-s")[2] or 0) if "-s" in policy else 0.0
    )
    league.run(260)
    return league
