"""The choice of a population by what the run measures: the newest weights alone, past opponents, exploiters, counters.

A scout is an exploiter that waits until the main agents have learnt something. Then it has a life of its own against
their newest weights, with a learner made for it, and what it learns from is counted. How well it does in the end, who
beats whom in a ring, and what each seat wins are the evidence. Where nothing is found, nobody joins the main agents.
A choice only ever adds opponents, so that none can oscillate.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from league.core.diagnosis import freezes_of
from league.core.matchmaking.roles import MAIN_ROLE
from league.core.metagame.cycles import CycleReport, league_cycles
from league.core.metagame.ratings import ELO_PER_LOGIT, league_ratings, win_probability
from league.core.settings import value_of
from league.core.state.presets import CROSS_PLAY_EXPONENT
from league.core.state.records import GameKind
from league.core.state.state import LeagueState, PlayerState

Array = NDArray[np.float64]

SCOUT = "scout"
"""Name of the scout's group of players."""
MEASURED = "measured"
"""The `league.population.choice` under which anything here happens."""
MIN_LIFE_UPDATES = 100
"""Updates of a life below which an exploiter has learnt nothing that means something."""
MAX_SHARE = 0.05
"""Most that the decisions that scouts learn from may be of those of the main agents in the whole run."""
BEGINNINGS = (0.15, 0.3, 0.45, 0.6)
"""Fractions of the budget from which scouts begin, one after the other: entropy falls, and with it play changes."""
BEATEN = {"wins": 0.6, "returns": 0.53}
"""Score of a scout from which it beats the newest main agents, by what games count. A best reply may gain little of the
range of returns: 0.1 where newest-only play ended in a random table of teams."""
FOUND, ABOVE_OWN = 0.3, 0.2
"""Least score of a scout that has found a weakness, and least lead over what the main agent's own weights of as many
updates score. Connect Four, after a fifth of 120 core-seconds: a scout of 500 updates scored 0.43
against plain self-play, and 0.12 where a fifth of the games were against the past."""
MAX_PAIRED = 64
"""Newest snapshots of a main agent among which the score of each seat is taken."""
MIN_GAMES, MIN_SEAT_GAMES = 100.0, 50.0
"""Games below which a score says nothing: of a scout against others, and of one seat."""
ONE_SIDED = 0.2
"""By how much a scout scores above even players in one seat from which the main agents are beaten there."""
RING = 0.6
"""Least win rate of each of three snapshots over the next from which they count as a ring."""
PAST_OF_MIXED, PAST_OF_OPEN, PAST_BESIDE_EXPLOITER = 0.1, 0.2, 0.15
"""Shares of the games against the past: where play is mixed, where nothing is hidden, and the most beside an exploiter,
so that four fifths are the main's. The trials stand in benchmarks/figures/choosing-defaults.md."""
EXPLOITER_PART = 1.0 / 9.0
"""Step weight of an exploiter that stays, over that of the main agents."""
COUNTER_GAMES = {"self_play": 0.1, "pfsp": 0.9, "weighting": "hard", "pfsp_exponent": CROSS_PLAY_EXPONENT}
"""Options of a main agent's matchmaker beside counters, as in the preset `cross_play`."""

NEWEST, PAST, EXPLOITERS, COUNTERS = "newest only", "past opponents", "exploiters", "counters"
"""Populations, in the order in which they may follow each other; counters are those of games of teams."""


@dataclass(frozen=True)
class ScoutStep:
    """Something that is due: a scout begins, or a population is chosen. Fields: as of `adapting.Remedy`."""

    name: str
    pairs: tuple[tuple[str, object], ...]
    reason: str
    resets: str = ""


@dataclass(frozen=True)
class ScoutEvidence:
    """The numbers at the end of a scout's life.

    Fields:
      updates: of the scout so far. main_updates: of the main agent meanwhile and before.
      beaten: score from which the scout beats the main agents.
      score: of the scout's last games against the main agents. games: that it rests on.
      expected: score of the main agent's own snapshot of as many updates, by the ratings; None where none is rated.
      seat_scores: [S] over its life, by the first seat of its team; NaN for others, and where there are too few games.
      even_scores: [S] of the main agent's snapshots against each other, by the same seats.
      cycles: among the frozen policies; None where too few can be compared.
    """

    updates: int
    main_updates: int
    beaten: float
    score: float
    games: float
    expected: float | None
    seat_scores: tuple[float, ...]
    even_scores: tuple[float, ...]
    cycles: CycleReport | None

    @property
    def beats(self) -> bool:
        """True if the scout beats the newest main agents: in all seats together, or in one far above even play."""
        gains = [score - even for score, even in zip(self.seat_scores, self.even_scores, strict=True)]
        one_sided = any(gain >= ONE_SIDED for gain in gains)  # of a seat without games it is not a number
        return self.games >= MIN_GAMES and (self.score >= self.beaten or one_sided)

    @property
    def exploits(self) -> bool:
        """True if the scout beats them, or does much better than as much training does without a target."""
        above = self.expected is not None and self.score >= max(FOUND, self.expected + ABOVE_OWN)
        return self.beats or (self.games >= MIN_GAMES and above)

    @property
    def has_ring(self) -> bool:
        """True if three frozen policies clearly beat each other in a ring."""
        strongest = () if self.cycles is None else self.cycles.strongest
        return bool(strongest) and min(rate for _, rate in strongest) >= RING

    @property
    def text(self) -> str:
        """The numbers, for people."""
        own = "" if self.expected is None else f" ({self.expected:.2f} by the main agent's own weights of then)"
        ring = self.cycles.text() if self.cycles is not None and self.has_ring else "no ring"
        return (
            f"the scout scored {self.score:.2f} after {self.updates:,} updates{own}, "
            f"by seat {_seats(self.seat_scores)} where even players score {_seats(self.even_scores)}; "
            f"the main agent had {self.main_updates:,} updates; "
            f"{ring} among the frozen policies"
        )


def _seats(scores: tuple[float, ...]) -> str:
    return ", ".join(f"{score:.2f}" for score in scores if not math.isnan(score)) or "nothing"


def past_share(kind: GameKind) -> float:
    """The share of a main agent's games against the past, by the kind of the game."""
    return PAST_OF_OPEN if kind.is_won_by_strength else PAST_OF_MIXED


def scout_of(state: LeagueState) -> PlayerState | None:
    """The scout of a league whose population is chosen by measurement; None in any other."""
    config = state.config
    if config is None or config.population.choice != MEASURED:
        return None
    return state.players.get(f"{SCOUT}-0")


def population_of(state: LeagueState) -> tuple[str, str]:
    """The population that was chosen last, and why; two empty texts where nothing is measured."""
    scout = scout_of(state)
    if scout is None:
        return "", ""
    chosen = _chosen(state)
    if chosen is not None:
        number, kind = chosen
        return kind, state.remedies[_verdict(number, kind)].reason
    if _begun(state):
        return NEWEST, f"a scout is at work, with {scout.version:,} updates so far"
    return NEWEST, "no scout has begun yet"


def next_step(state: LeagueState, budget_fraction: float | None) -> Iterator[ScoutStep]:
    """The next step of the choice of a population. budget_fraction: spent, in [0, 1]; None where it must not count."""
    scout = scout_of(state)
    main = next((player for player in state.players.values() if player.role == MAIN_ROLE and player.is_active), None)
    if scout is None or main is None or scout.retired:
        return
    begun = _begun(state)
    if begun and _judged(state) < begun:
        if len(freezes_of(state, scout)) >= begun and not scout.paused:
            yield _judge(state, scout, main, number=begun)
    elif scout.paused and state.config_of(scout.name).gate.reset_probability == 0.0:
        life_steps = state.config_of(scout.name).gate.timeout_steps
        if _is_due(scout, main, begun, budget_fraction, life_steps=life_steps):
            reason = f"{main.name} has had {main.version:,} updates, and nobody has tried to exploit it since"
            pairs = ((f"players.{scout.name}.paused", False),)
            yield ScoutStep(_begin(begun + 1), pairs, reason, resets=scout.name if begun else "")


def evidence_of(state: LeagueState, scout: PlayerState, main: PlayerState) -> ScoutEvidence:
    """The evidence of a scout's life."""
    clock = state.population.staleness_clock.values
    return ScoutEvidence(
        updates=scout.version,
        main_updates=main.version,
        beaten=BEATEN[state.scoring.score],
        score=scout.episodes.score,
        games=scout.episodes.score_games,
        expected=expected_score(state, main, updates=scout.version),
        seat_scores=_by_seat(state.payoff.seat_games(scout.policy, main.policy, clock)),
        even_scores=_by_seat(_among_snapshots(state, main)),
        cycles=league_cycles(state),
    )


def expected_score(state: LeagueState, main: PlayerState, *, updates: int) -> float | None:
    """Score, by the ratings, of a main agent's snapshot nearest to so many updates against its newest one."""
    elo = {row.policy: row.elo for row in league_ratings(state) if row.games > 0}
    rated = [state.snapshots[name] for name in main.snapshot_ids() if name in elo]
    if not rated:
        return None
    nearest = min(rated, key=lambda snapshot: abs(snapshot.version - updates))
    lead = (elo[nearest.snapshot_id] - elo[rated[0].snapshot_id]) / ELO_PER_LOGIT
    return float(win_probability(np.array(lead)))


def _among_snapshots(state: LeagueState, main: PlayerState) -> Array:
    """float64 [S, 2], scores and games of a main agent's snapshots against each other by the home's seat."""
    clock, payoff = state.population.staleness_clock.values, state.payoff
    numbers = np.array([state.population.index[name] for name in main.snapshot_ids()], dtype=np.int64)
    found = np.zeros((state.num_seats, 2))
    for number in numbers[:MAX_PAIRED].tolist():
        cells = payoff.cells_of(number)
        cells = cells[np.isin(payoff.away[cells], numbers)]
        found += [payoff.present_on(seat, cells, clock).sum(axis=0) for seat in range(state.num_seats)]
    return found


def _by_seat(games: Array) -> tuple[float, ...]:
    """[S] mean scores, NaN of too few games. games: float64 [S, 2], scores and games."""
    return tuple(float(score / number) if number >= MIN_SEAT_GAMES else math.nan for score, number in games)


def _is_due(scout: PlayerState, main: PlayerState, begun: int, fraction: float | None, *, life_steps: int) -> bool:
    """True if another scout may begin: late enough, and within its share of what is learnt from in the whole run."""
    if fraction is not None and (begun >= len(BEGINNINGS) or fraction < BEGINNINGS[begun]):
        return False
    in_all = main.trained_steps / fraction if fraction else float(main.trained_steps)
    return scout.trained_steps + life_steps <= MAX_SHARE * in_all


def _judge(state: LeagueState, scout: PlayerState, main: PlayerState, *, number: int) -> ScoutStep:
    """The population that the evidence asks for."""
    evidence = evidence_of(state, scout, main)
    before = _chosen(state)
    kind = _wanted(state, evidence, NEWEST if before is None else before[1])
    pairs = tuple((key, value) for key, value in _pairs(state, scout, main, kind) if value_of(state, key) != value)
    return ScoutStep(_verdict(number, kind), pairs, f"{evidence.text}: {kind}")


def _wanted(state: LeagueState, evidence: ScoutEvidence, before: str) -> str:
    if evidence.beats and state.has_teammates:
        return COUNTERS
    if evidence.exploits:
        return PAST if before == NEWEST else EXPLOITERS
    return PAST if evidence.has_ring and before == NEWEST else before


def _pairs(state: LeagueState, scout: PlayerState, main: PlayerState, kind: str) -> Iterator[tuple[str, object]]:
    """The settings of a population."""
    options: dict[str, object] = {}
    if kind == COUNTERS:
        options = dict(COUNTER_GAMES)
    elif kind != NEWEST:
        share = past_share(state.kind)
        share = min(share, PAST_BESIDE_EXPLOITER) if kind == EXPLOITERS else share
        options = {"self_play": 1.0 - share, "pfsp": share}
    yield from ((f"league.players.{main.group}.matchmaker.{name}", value) for name, value in options.items())
    if kind in (NEWEST, PAST):
        yield f"players.{scout.name}.paused", True
        return
    weight = float(state.fair_share.step_weight.values[main.index])
    yield f"players.{scout.name}.step_weight", weight * (EXPLOITER_PART if kind == EXPLOITERS else 1.0)
    yield f"league.players.{scout.group}.gate.reset_probability", 1.0


def _begun(state: LeagueState) -> int:
    """Scouts that have begun."""
    return next(number for number in range(len(state.remedies) + 1) if _begin(number + 1) not in state.remedies)


def _judged(state: LeagueState) -> int:
    """Scouts that have been judged."""
    chosen = _chosen(state)
    return 0 if chosen is None else chosen[0]


def _chosen(state: LeagueState) -> tuple[int, str] | None:
    """The number of the scout that was judged last, and the population that it led to; None before the first."""
    for number in range(_begun(state), 0, -1):
        for kind in (NEWEST, PAST, EXPLOITERS, COUNTERS):
            if _verdict(number, kind) in state.remedies:
                return number, kind
    return None


def _begin(number: int) -> str:
    return f"scout {number} begins"


def _verdict(number: int, kind: str) -> str:
    return f"scout {number}: {kind}"
