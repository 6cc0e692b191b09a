"""The scoring rule of a run: taken from the configuration, else suggested by its game."""

from __future__ import annotations

from league.core.state.league_config import PayoffConfig
from league.core.state.scoring import BY_WINS, Scoring
from league.envs.protocol import EnvSpec
from league.errors import ConfigError


def scoring_of(settings: PayoffConfig, spec: EnvSpec) -> Scoring:
    """The scoring of a league; where the configuration leaves it open, returns wherever they say more than who won.

    A game that does not state the range of its returns is counted by games won, unless configured otherwise.

    Raises:
      ConfigError: returns are asked for without a scale, of a game that has none itself.
    """
    score = settings.score
    if score is None:
        says_more = spec.return_range is not None and not spec.win_draw_loss
        score = "returns" if settings.return_scale is not None or says_more else "wins"
    if score == "wins":
        return BY_WINS
    scale = settings.return_scale
    if scale is None and spec.return_range is not None:
        low, high = spec.return_range
        scale = high - low
    if scale is None:
        problem = (
            f"league.payoff.score: returns needs a scale, and {spec.env_id} does not say how far its returns can lie "
            "apart; set league.payoff.return_scale to the largest difference between the returns of two sides in one "
            "game (2 where a side earns -1 to 1), or use score: wins"
        )
        raise ConfigError(f"env {spec.env_id}", [problem])
    if scale <= 0.0:
        return BY_WINS
    return Scoring("returns", scale)
