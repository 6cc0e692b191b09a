"""The generator of games: the newest accepted snapshot of a player plays all seats, and candidates are judged.

Rating games against the accepted snapshot measure a candidate. It is judged once, as soon as there are
enough of them, and what was decided stays: acceptance is a fold of the journal, and depends on no clock and no draw.

Shape letters: P policies of the population, S seats, K alternatives.
Source: Silver et al. 2017, AlphaGo Zero, methods, "evaluator".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import cast

import numpy as np

from league.core.gates.e_values import log_e_values, new_bets, observe
from league.core.matchmaking.matchmakers import Array, _Unjudged
from league.core.matchmaking.roles import MatchmakingView, matchmaker_of
from league.core.state.assignments import paired_assignments
from league.core.state.population_config import require
from league.core.state.records import Assignment
from league.core.state.state import Generation, LeagueState

NAME = "generator"


@dataclass(frozen=True)
class Generator(_Unjudged):
    """The newest accepted snapshot of the player makes the games, in all seats, and the player learns from all of them.

    Fields:
      games: rating games after which a candidate is judged (published 400).
      win_rate: a candidate of a higher one is accepted (published 0.55).
      confidence: 0 for that test. Above 0 a candidate is accepted as soon as an e-value says with this confidence that
        it wins more than half of its games, whenever one looks; it is passed over after `games` without that.
    """

    games: int = 400
    win_rate: float = 0.55
    confidence: float = 0.0

    def __post_init__(self) -> None:
        require(self.games >= 1, f"games must be at least 1, not {self.games}")
        require(0.0 < self.win_rate < 1.0, f"win_rate must lie between 0 and 1, not {self.win_rate}")
        require(0.0 <= self.confidence < 1.0, f"confidence must lie in [0, 1), not {self.confidence}")

    def opponents(self, view: MatchmakingView, rng: np.random.Generator) -> Array:
        """All of it against what makes the games; itself before there is one."""
        result = np.zeros(len(view.population))
        result[view.home if view.generator is None else view.generator] = 1.0
        return result

    def verdict(self, *, score: float, games: int) -> bool | None:
        """Whether a candidate of this score in so many games is accepted; None while more games are needed."""
        if self.confidence:
            bets = new_bets(0.5, 0.0)
            observe(bets, score, games - score)
            if log_e_values(bets)[0] >= -math.log(1.0 - self.confidence):
                return True
            return False if games >= self.games else None
        return score > self.win_rate * games if games >= self.games else None


def generator_rule(state: LeagueState, player: str) -> Generator | None:
    """The options of a player whose games a snapshot makes; None for every other."""
    config = state.config_of(player)
    return cast(Generator, matchmaker_of(config)) if config.matchmaker_name == NAME else None


def generator_of(state: LeagueState, player: str) -> str | None:
    """The snapshot that makes the games of a player; None where it makes them itself."""
    held = state.generations.get(player)
    return (
        held.accepted
        if held is not None and generator_rule(state, player) and state.is_present(held.accepted)
        else None
    )


def generated(state: LeagueState, player: str) -> tuple[Assignment, ...] | None:
    """The table of a lease in which a snapshot makes a player's games; None where the player makes them itself."""
    maker = generator_of(state, player)
    if maker is None:
        return None
    return (Assignment((maker,) * len(state.teams), (True,) * len(state.teams), 1.0),)


def is_made_for(state: LeagueState, player: str, policies: tuple[str, ...]) -> bool:
    """True if one snapshot of a player holds all seats: games that were made for it."""
    info = state.snapshots.get(policies[0])
    return info is not None and info.player == player and set(policies) == {policies[0]}


def candidate_of(state: LeagueState, player: str) -> str | None:
    """The snapshot that is to be judged: one that has games already, else the newest; None where all are judged."""
    held = state.generations.get(player)
    if held is None or generator_rule(state, player) is None or not state.is_present(held.accepted):
        return None
    first = list(state.players[player].snapshot_ids())[: state.players[player].num_snapshots - held.judged]
    waiting = [name for name in first if state.is_present(name) and name != held.accepted]
    begun = [name for name in waiting if _record(state, name, held.accepted)[1]]
    return next(iter(begun or waiting), None)


def evaluation(state: LeagueState) -> tuple[Assignment, ...]:
    """Rating games of the candidate with the fewest of them against what it would replace; empty for no candidate."""
    pairs = []
    for player, held in state.generations.items():
        name = candidate_of(state, player)
        if name is not None:
            pairs.append((_record(state, name, held.accepted)[1], name, held.accepted))
    if not pairs:
        return ()
    _, name, accepted = min(pairs)
    return paired_assignments(name, [(accepted, 1.0)], teams=state.teams, records=False)


def begin_generation(state: LeagueState, player: str) -> None:
    """The first snapshot of a player makes its games."""
    newest = next(state.players[player].snapshot_ids())
    if player not in state.generations and generator_rule(state, player) is not None:
        state.generations[player] = Generation(newest, judged=state.players[player].num_snapshots)


def restart_generation(state: LeagueState, player: str, source: str) -> None:
    """A player that started again from a snapshot has its games made by it."""
    if player in state.generations:
        state.generations[player] = Generation(source, judged=state.players[player].num_snapshots)


def judge_candidates(state: LeagueState) -> None:
    """Judge every candidate that has games enough; older ones that still waited are passed over."""
    for player, held in list(state.generations.items()):
        rule, name = generator_rule(state, player), candidate_of(state, player)
        if rule is None or name is None:
            continue
        score, games = _record(state, name, held.accepted)
        verdict = rule.verdict(score=score, games=games)
        if verdict is not None:
            number = int(name.rpartition("-s")[2]) + 1
            accepted = name if verdict else held.accepted
            state.generations[player] = Generation(accepted, number, held.num_judged + 1, held.num_accepted + verdict)


def _record(state: LeagueState, candidate: str, accepted: str) -> tuple[float, int]:
    """Sum of a candidate's scores against the accepted snapshot, and the number of games, over all seats."""
    index = state.population.index
    score, games = state.payoff.sums(index[candidate], index[accepted])
    return score, games
