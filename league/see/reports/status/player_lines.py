"""A player in the status of its run, in words: its versions, games, rating and last returns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from league.core.player_account import PlayerAccount
from league.envs.text.number_text import number_text
from league.wording import noun_for, seat_text


def player_lines(player: PlayerAccount, seat_names: Sequence[str]) -> Iterator[str]:
    """Yields a row of the table of players, and its last games if there were any. seat_names: of the game, or none."""
    yield (
        f"  {player.player:<24} {player.role:<18} version {player.version:>7,}  "
        f"{player.trained_steps:>13,} trained steps  "
        f"{player.games:>10,} {noun_for(player.games, 'game'):<5}  "
        f"{player.snapshots:>4} {noun_for(player.snapshots, 'snapshot'):<9}  "
        f"{player.resets:>3} {noun_for(player.resets, 'reset'):<6}  "
    ) + ("unrated" if player.rating is None else f"{player.rating:+z.0f} Elo")
    if player.mean_return is not None:
        yield f"    lately {', '.join(_last_games(player, player.mean_return, seat_names))}"


def _last_games(player: PlayerAccount, mean_return: float, seat_names: Sequence[str]) -> Iterator[str]:
    seats = [f"{seat_text(seat_names, seat)} {number_text(mean, 4)}" for seat, mean in enumerate(player.seat_returns)]
    yield f"return {number_text(mean_return, 4)}" + (f" ({', '.join(seats)})" if len(seats) > 1 else "")
    yield f"{player.episode_length:.1f} decisions an episode"
    if player.score is not None:
        yield f"score {player.score:.2f}"
    if player.lost_steps:
        yield f"{player.lost_steps:,} trained steps lost"
