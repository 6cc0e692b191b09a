"""The game between a run's strongest snapshots: mixture, alpha-rank, cycles, and the plane that it lies in.

Shape letter: N snapshots.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
from numpy.typing import NDArray

from league.core.metagame.alpha_rank import alpha_rank, nash_average
from league.core.metagame.cycles import cycles
from league.core.metagame.disc import disc_of
from league.core.metagame.meta_game import own_snapshots, pair_win_rates
from league.core.metagame.ratings import PairGames, RatingRow, frozen_pairs
from league.core.state.state import LeagueState
from league.policies.nash_lp import nash
from league.see.reports.figures.extent import Extent

MAX_SNAPSHOTS = 48
"""Snapshots that are compared: the strongest by rating, and the newest where too few are rated."""


class MetaGameMember(msgspec.Struct, frozen=True):
    """One snapshot in the game between snapshots.

    Fields:
      policy, player, role: who it is. elo: its rating, None without one.
      nash: its weight in the mixture that no snapshot beats. advantage: its win rate over a half against that mixture.
      alpha_rank: time that a population of copies dwells on it; over all members they sum to 1.
      x, y: its point in the disc plot.
    """

    policy: str
    player: str
    role: str
    elo: float | None
    nash: float
    advantage: float
    alpha_rank: float
    x: float
    y: float


class MetaGame(msgspec.Struct, frozen=True):
    """The game between some snapshots; no members where there are not two to compare.

    Fields:
      members: heaviest in the mixture first, then by alpha-rank. snapshots: which of all are compared.
      explained: part of the squared gains that the disc plot reproduces, in [0, 1].
      cyclic_fraction: part of the squared log-odds that no rating can express; None for fewer than three snapshots.
      num_cycles: triples in which each clearly beats the next. strongest: one of them, with its win rates in turn.
      misleads: whether one number per policy misleads. text: the same for people, empty for fewer than three.
      counts: what the games count by.
    """

    members: tuple[MetaGameMember, ...]
    snapshots: Extent
    explained: float
    cyclic_fraction: float | None
    num_cycles: int
    strongest: tuple[tuple[str, float], ...]
    misleads: bool
    text: str
    counts: str


@dataclass(frozen=True)
class MetaGameInputs:
    """A copy of the games between the snapshots that are compared, so that the league may continue meanwhile.

    Fields:
      names, players, roles: [N] of the snapshots, oldest first. elo: [N], None without a rating.
      pairs: their games. parents: int64 [N], index of each one's parent among them, -1 without one.
      parent_draws: virtual draws of a snapshot with its parent. total: snapshots of the league.
      counts: what the games count by.
    """

    names: tuple[str, ...]
    players: tuple[str, ...]
    roles: tuple[str, ...]
    elo: tuple[float | None, ...]
    pairs: PairGames
    parents: NDArray[np.int64]
    parent_draws: float
    total: int
    counts: str


def meta_game(state: LeagueState, ratings: Sequence[RatingRow]) -> MetaGame:
    """The game between the strongest snapshots of a league."""
    return solve_meta_game(meta_game_inputs(state, ratings))


def meta_game_inputs(state: LeagueState, ratings: Sequence[RatingRow]) -> MetaGameInputs:
    """Copies the games between the strongest snapshots that are rated; no names where the game has no opponents."""
    elo = {row.policy: row.elo for row in ratings if row.games}
    own = [name for name in own_snapshots(state) if name in elo] if state.is_competitive else []
    age = {name: number for number, name in enumerate(own)}
    strongest = sorted(own, key=lambda name: (-elo[name], -age[name]))[:MAX_SNAPSHOTS]
    names = sorted(strongest, key=age.__getitem__)
    places = {name: place for place, name in enumerate(names)}
    snapshots = [state.snapshots[name] for name in names]
    numbers = np.array([state.population.index[name] for name in names], dtype=np.int64)
    parents = [-1 if snapshot.parent is None else places.get(snapshot.parent, -1) for snapshot in snapshots]
    return MetaGameInputs(
        names=tuple(names),
        players=tuple(snapshot.player for snapshot in snapshots),
        roles=tuple(snapshot.role for snapshot in snapshots),
        elo=tuple(elo[name] for name in names),
        pairs=frozen_pairs(state, numbers),
        parents=np.array(parents, dtype=np.int64),
        parent_draws=1.0 if state.config is None else state.config.ratings.parent_draws,
        total=len(own),
        counts=state.counts,
    )


def solve_meta_game(inputs: MetaGameInputs) -> MetaGame:
    """The mixture, the ranking, the cycles and the points of a game between snapshots."""
    size = len(inputs.names)
    extent = Extent("snapshots", inputs.total, 0, size)
    if size < 2:
        empty = msgspec.structs.replace(extent, shown=0)
        return MetaGame((), empty, 0.0, None, 0, (), False, "", inputs.counts)
    win_rates = pair_win_rates(inputs.pairs, inputs.parents, inputs.parent_draws)
    mixture = nash(win_rates)
    advantage, shares, disc = nash_average(win_rates, mixture), alpha_rank(win_rates), disc_of(win_rates)
    members = [
        MetaGameMember(
            inputs.names[i],
            inputs.players[i],
            inputs.roles[i],
            inputs.elo[i],
            nash=float(mixture[i]),
            advantage=float(advantage[i]),
            alpha_rank=float(shares[i]),
            x=float(disc.points[i, 0]),
            y=float(disc.points[i, 1]),
        )
        for i in range(size)
    ]
    members.sort(key=lambda member: (-round(member.nash, 6), -member.alpha_rank, member.policy))
    report = None
    if size >= 3:
        games = np.zeros_like(win_rates)
        pairs = inputs.pairs
        games[pairs.first, pairs.second] = games[pairs.second, pairs.first] = pairs.games
        report = cycles(win_rates, games, list(inputs.names))
    return MetaGame(
        members=tuple(members),
        snapshots=extent,
        explained=disc.explained,
        cyclic_fraction=None if report is None else report.cyclic_fraction,
        num_cycles=0 if report is None else report.num_cycles,
        strongest=() if report is None else report.strongest,
        misleads=report is not None and report.misleads,
        text="" if report is None else report.text(),
        counts=inputs.counts,
    )
