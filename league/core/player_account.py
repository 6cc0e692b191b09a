"""The account of one player: what console, status and page tell of it alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from league.core.metagame.ratings import RatingRow, newest_rating
from league.core.state.state import LeagueState, PlayerState


@dataclass(frozen=True, kw_only=True)
class PlayerAccount:
    """One player.

    Fields:
      player, role: who. version: learner updates. trained_steps: decisions learnt from. games: trained on.
      snapshots: how many it has left. resets: how often it began again.
      rating, rating_low, rating_high: Elo of its newest rated snapshot with its interval; None before the first game.
      unfrozen_steps: trained since its newest snapshot.
      lost_steps: trained and lost when its learner fell back to a restart state.
      mean_return, seat_returns, episode_length, score: of its last games, see `league.core.state.episodes`; None and
        empty before the first, `score` also where it has met no other policy.
    """

    player: str
    role: str
    version: int = 0
    trained_steps: int = 0
    games: int = 0
    snapshots: int = 0
    resets: int = 0
    rating: float | None = None
    rating_low: float | None = None
    rating_high: float | None = None
    unfrozen_steps: int = 0
    lost_steps: int = 0
    mean_return: float | None = None
    seat_returns: tuple[float, ...] = ()
    episode_length: float | None = None
    score: float | None = None


def player_account(state: LeagueState, player: PlayerState, ratings: Mapping[str, RatingRow]) -> PlayerAccount:
    """The account of a player of a league. ratings: of snapshots, by name."""
    rating, newest, episodes = newest_rating(player, ratings), state.newest_snapshot(player), player.episodes
    return PlayerAccount(
        player=player.name,
        role=player.role,
        version=player.version,
        trained_steps=player.trained_steps,
        games=player.games,
        snapshots=player.num_snapshots,
        resets=player.generation,
        rating=None if rating is None else rating.elo,
        rating_low=None if rating is None else rating.low,
        rating_high=None if rating is None else rating.high,
        unfrozen_steps=player.trained_steps - (0 if newest is None else newest.trained_steps),
        lost_steps=player.lost_steps,
        mean_return=episodes.mean_return,
        seat_returns=episodes.seat_returns,
        episode_length=episodes.decisions if episodes.games else None,
        score=episodes.score if episodes.score_games else None,
    )
