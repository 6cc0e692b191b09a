"""The part of a run's status that is about one player: its versions, games, rating and last returns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from league.core.metagame.ratings import RatingRow, newest_rating
from league.core.state.state import LeagueState, PlayerState
from league.envs.text.number_text import number_text
from league.wording import noun_for, seat_text


@dataclass(frozen=True)
class PlayerStatus:
    """One player.

    Fields:
      rating: Elo of its newest rated snapshot, None before the first rated game.
      unfrozen_steps: trained since its newest snapshot.
      lost_steps: trained and lost when its learner fell back to a restart state.
      mean_return, seat_returns, episode_length, score: of its last games, see `league.core.state.episodes`; None and
        empty before the first, `score` also where it has met no other policy. seat_names: of the game, if it has any.
    """

    player: str
    role: str
    version: int
    trained_steps: int
    games: int
    snapshots: int
    resets: int
    rating: float | None
    unfrozen_steps: int
    lost_steps: int = 0
    mean_return: float | None = None
    seat_returns: tuple[float, ...] = ()
    episode_length: float | None = None
    score: float | None = None
    seat_names: tuple[str, ...] = ()

    def lines(self) -> Iterator[str]:
        """Yields a row of the table of players, and its last games where there were any."""
        yield (
            f"  {self.player:<24} {self.role:<18} version {self.version:>7,}  {self.trained_steps:>13,} trained steps  "
            f"{self.games:>10,} {noun_for(self.games, 'game'):<5}  "
            f"{self.snapshots:>4} {noun_for(self.snapshots, 'snapshot'):<9}  "
            f"{self.resets:>3} {noun_for(self.resets, 'reset'):<6}  "
        ) + ("unrated" if self.rating is None else f"{self.rating:+z.0f} Elo")
        if self.mean_return is not None:
            yield f"    lately {', '.join(self._last_games(self.mean_return))}"

    def _last_games(self, mean_return: float) -> Iterator[str]:
        names = self.seat_names
        seats = [f"{seat_text(names, seat)} {number_text(mean, 4)}" for seat, mean in enumerate(self.seat_returns)]
        yield f"return {number_text(mean_return, 4)}" + (f" ({', '.join(seats)})" if len(seats) > 1 else "")
        yield f"{self.episode_length:.1f} decisions an episode"
        if self.score is not None:
            yield f"score {self.score:.2f}"
        if self.lost_steps:
            yield f"{self.lost_steps:,} trained steps lost"


def player_status(
    state: LeagueState, player: PlayerState, ratings: Mapping[str, RatingRow], seat_names: tuple[str, ...]
) -> PlayerStatus:
    """The status of one player.

    Args:
      ratings: of snapshots, by name. seat_names: of the game.
    """
    rating, newest, episodes = newest_rating(player, ratings), state.newest_snapshot(player), player.episodes
    return PlayerStatus(
        player=player.name,
        role=player.role,
        version=player.version,
        trained_steps=player.trained_steps,
        games=player.games,
        snapshots=player.num_snapshots,
        resets=player.generation,
        rating=None if rating is None else rating.elo,
        unfrozen_steps=player.trained_steps - (0 if newest is None else newest.trained_steps),
        lost_steps=player.lost_steps,
        mean_return=episodes.mean_return,
        seat_returns=episodes.seat_returns,
        seat_names=seat_names,
        episode_length=episodes.decisions if episodes.games else None,
        score=episodes.score if episodes.score_games else None,
    )
