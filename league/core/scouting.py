"""The choice of a population by what the run measures: the newest weights alone, past opponents, exploiters, counters.

A scout is an exploiter that waits until the main agents have learnt something. Then it has a life of its own against
their newest weights, with a learner made for it, and what it learns from is counted. How well it does in the end, who
beats whom in a ring, and what each seat wins are the evidence. Where nothing is found, nobody joins the main agents.

Games of teams begin with counters: scouts that start again and again from the start. They go once the newest lives all
find nothing, and scouts may bring them back. Scouts are few, so that no choice can oscillate.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from league.core.matchmaking.roles import MAIN_ROLE
from league.core.metagame.cycles import CycleReport, league_cycles
from league.core.metagame.ratings import ELO_PER_LOGIT, league_ratings, win_probability
from league.core.settings import value_of
from league.core.state.presets import CROSS_PLAY_EXPONENT
from league.core.state.records import GameKind
from league.core.state.state import LeagueState, Life, PlayerState

Array = NDArray[np.float64]

SCOUT = "scout"
"""Name of the scout's group of players."""
MEASURED = "measured"
"""The `league.population.choice` under which anything here happens."""
MIN_LIFE_UPDATES = 100
"""Updates of a life below which an exploiter has learnt nothing that means something."""
MAX_SHARE = 0.05
"""Most that the decisions that scouts learn from may be of those that all players learn from in the whole run."""
SCOUT_WEIGHT = 0.25
"""Step weight of a scout over that of the main agent, while it lives."""
BEGINNINGS = (0.15, 0.3, 0.45, 0.6)
"""Fractions of the budget from which scouts begin, one after the other: entropy falls, and with it play changes."""
BEATEN = {"wins": 0.6, "returns": 0.53}
"""Score of a scout from which it beats the newest main agents, by what games count. A best reply may gain little of the
range of returns: 0.1 where newest-only play ended in a random table of teams."""
LIVES = 8
"""Newest lives of counters of which one must beat the main agents, or they go. In twelve runs on random tables, where
counters help, three lives in ten did not. Four in a row did not in three runs, five in one, six to eight in none."""
HOPELESS_LIVES, HOPELESS = 4, 0.4
"""Newest lives that are enough where all score below this. In the same runs the best of any four had 0.52."""
REST = 0.15
"""Part of the budget between the end of counters and a scout, and between the scouts after it."""
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
POPULATIONS = (NEWEST, PAST, EXPLOITERS, COUNTERS)


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
        one_sided = _is_one_sided(self.seat_scores, self.even_scores)
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


def _is_one_sided(scores: tuple[float, ...], even: tuple[float, ...]) -> bool:
    """True if a score is far above even play in one seat; of a seat without games it is not a number."""
    return any(one - other >= ONE_SIDED for one, other in zip(scores, even, strict=True))


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


def is_counter(state: LeagueState, player: PlayerState) -> bool:
    """True if a scout starts again whenever a life of its ends."""
    return state.config_of(player.name).gate.reset_probability == 1.0


def population_of(state: LeagueState) -> tuple[str, str]:
    """The population that was chosen last, and why; two empty texts where nothing is measured."""
    scout = scout_of(state)
    if scout is None:
        return "", ""
    chosen = _chosen(state)
    if chosen is not None:
        return chosen.kind, state.remedies[chosen.remedy].reason if chosen.remedy else _lives_text(state, scout.lives)
    if _begun(state):
        return NEWEST, f"a scout is at work, with {scout.version:,} updates so far"
    return NEWEST, "no scout has begun yet"


def next_step(state: LeagueState, budget_fraction: float | None) -> Iterator[ScoutStep]:
    """The next step of the choice of a population. budget_fraction: spent, in [0, 1]; None where it must not count."""
    scout = scout_of(state)
    main = next((player for player in state.players.values() if player.role == MAIN_ROLE and player.is_active), None)
    if scout is None or main is None or scout.retired:
        return
    begun, chosen = _begun(state), _chosen(state)
    if begun and (chosen is None or chosen.number < begun):
        if _lives_since(state, scout, _begin(begun)) and not scout.paused:
            yield _judge(state, scout, main, number=begun)
    elif chosen is not None and chosen.kind == COUNTERS:
        lives = _found_nothing(state, _lives_since(state, scout, chosen.remedy), main)
        if lives and not scout.paused:
            reason = f"{_lives_text(state, lives)}; {main.name} had {main.version:,} updates: {NEWEST}"
            yield ScoutStep(_go(chosen.number), _changed(state, _pairs(state, scout, main, NEWEST)), reason)
    elif _is_due(state, scout, budget_fraction):
        reason = f"{main.name} has had {main.version:,} updates, and nobody has tried to exploit it since"
        pairs = ((f"players.{scout.name}.paused", False),)
        yield ScoutStep(_begin(begun + 1), pairs, reason, resets=scout.name if scout.trained_steps else "")


def evidence_of(state: LeagueState, scout: PlayerState, main: PlayerState) -> ScoutEvidence:
    """The evidence of a scout's life."""
    clock, updates = state.population.staleness_clock.values, _updates_of(state, scout)
    return ScoutEvidence(
        updates=updates,
        main_updates=main.version,
        beaten=BEATEN[state.scoring.score],
        score=scout.episodes.score,
        games=scout.episodes.score_games,
        expected=expected_score(state, main, updates=updates),
        seat_scores=_by_seat(state.payoff.seat_games(scout.policy, main.policy, clock)),
        even_scores=_by_seat(_among_snapshots(state, main)),
        cycles=league_cycles(state),
    )


def _updates_of(state: LeagueState, scout: PlayerState) -> int:
    """Updates of a scout; in games of teams, where it was a counter before, of its life alone."""
    if not state.has_teammates:
        return scout.version
    return round(scout.version * (scout.trained_steps - scout.fresh_steps) / max(scout.trained_steps, 1))


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


def _is_due(state: LeagueState, scout: PlayerState, fraction: float | None) -> bool:
    """True if another scout may begin: late enough, and within its share of what is learnt from in the whole run."""
    begun = _begun(state)
    if not scout.paused or state.config_of(scout.name).gate.reset_probability != 0.0:
        return False
    if fraction is not None and (begun >= len(BEGINNINGS) or fraction < BEGINNINGS[begun]):
        return False
    spent = fraction or 1.0
    gone = next((number for number in range(begun, -1, -1) if _go(number) in state.remedies), None)
    if gone is not None:
        went = spent * state.remedies[_go(gone)].env_steps / max(state.totals.env_steps, 1)
        if spent < went + REST * (begun + 1 - gone):
            return False
    in_all = sum(player.trained_steps for player in state.players.values()) / spent
    return (begun + 1) * state.config_of(scout.name).gate.timeout_steps <= MAX_SHARE * in_all


def _lives_since(state: LeagueState, scout: PlayerState, remedy: str) -> list[Life]:
    """The lives that have ended since a remedy was taken; all where it is empty."""
    first = state.remedies[remedy].lease_id if remedy else 0
    return [life for life in scout.lives if life.lease_id >= first]


def _found_nothing(state: LeagueState, lives: Sequence[Life], main: PlayerState) -> Sequence[Life]:
    """The newest lives, if so many lost to the main agents that others would too; none else. Few games say nothing."""
    for number, beaten in ((HOPELESS_LIVES, HOPELESS), (LIVES, BEATEN[state.scoring.score])):
        newest = lives[-number:]
        if len(newest) == number and all(life.games >= MIN_GAMES and life.score < beaten for life in newest):
            even = _by_seat(_among_snapshots(state, main))
            if not any(_is_one_sided(_by_seat(np.array(life.seats)), even) for life in newest):
                return newest
    return ()


def _lives_text(state: LeagueState, lives: Sequence[Life]) -> str:
    """The scores of counters' newest lives, for people."""
    if not lives:
        return "counters from the start, and no life of theirs has ended yet"
    scores = ", ".join(f"{life.score:.2f}" for life in lives[-LIVES:])
    return f"the newest lives of counters scored {scores}, and {BEATEN[state.scoring.score]} beats the main agents"


def _judge(state: LeagueState, scout: PlayerState, main: PlayerState, *, number: int) -> ScoutStep:
    """The population that the evidence asks for."""
    evidence = evidence_of(state, scout, main)
    before = _chosen(state)
    kind = _wanted(state, evidence, NEWEST if before is None else before.kind)
    pairs = _changed(state, _pairs(state, scout, main, kind))
    return ScoutStep(_verdict(number, kind), pairs, f"{evidence.text}: {kind}")


def _changed(state: LeagueState, pairs: Iterator[tuple[str, object]]) -> tuple[tuple[str, object], ...]:
    """The pairs that are not in force already."""
    return tuple((key, value) for key, value in pairs if value_of(state, key) != value)


def _wanted(state: LeagueState, evidence: ScoutEvidence, before: str) -> str:
    if evidence.beats and state.has_teammates:
        return COUNTERS
    if evidence.exploits:
        return PAST if before == NEWEST else EXPLOITERS
    return PAST if evidence.has_ring and before == NEWEST else before


def _pairs(state: LeagueState, scout: PlayerState, main: PlayerState, kind: str) -> Iterator[tuple[str, object]]:
    """The settings of a population."""
    options: dict[str, object] = {}
    goes = kind == NEWEST and is_counter(state, scout)
    if kind == COUNTERS:
        options = dict(COUNTER_GAMES)
    elif goes:
        weighting = "squared" if state.kind.is_won_by_strength else "uniform"  # as if there had been none
        options = {"self_play": 1.0, "pfsp": 0.0, "weighting": weighting}
    elif kind != NEWEST:
        share = past_share(state.kind)
        share = min(share, PAST_BESIDE_EXPLOITER) if kind == EXPLOITERS else share
        options = {"self_play": 1.0 - share, "pfsp": share}
    yield from ((f"league.players.{main.group}.matchmaker.{name}", value) for name, value in options.items())
    weight = float(state.fair_share.step_weight.values[main.index])
    if goes:
        yield f"players.{scout.name}.step_weight", weight * SCOUT_WEIGHT
        yield f"league.players.{scout.group}.gate.reset_probability", 0.0
    if kind in (NEWEST, PAST):
        yield f"players.{scout.name}.paused", True
        return
    yield f"players.{scout.name}.step_weight", weight * (EXPLOITER_PART if kind == EXPLOITERS else 1.0)
    yield f"league.players.{scout.group}.gate.reset_probability", 1.0


def _begun(state: LeagueState) -> int:
    """Scouts that have begun."""
    return next(number for number in range(len(state.remedies) + 1) if _begin(number + 1) not in state.remedies)


class _Chosen(NamedTuple):
    """A population: the scout that was judged last, 0 before the first; the remedy is empty for that of the start."""

    number: int
    kind: str
    remedy: str


def _chosen(state: LeagueState) -> _Chosen | None:
    """The population that was chosen last; None before the first choice where the league began without counters."""
    for number in range(_begun(state), -1, -1):
        names = {_go(number): NEWEST, **{_verdict(number, kind): kind for kind in POPULATIONS}}
        for remedy, kind in names.items():
            if remedy in state.remedies:
                return _Chosen(number, kind, remedy)
    scout = scout_of(state)
    return _Chosen(0, COUNTERS, "") if scout is not None and is_counter(state, scout) else None


def _begin(number: int) -> str:
    return f"scout {number} begins"


def _go(number: int) -> str:
    return f"counters go after scout {number}" if number else "counters go"


def _verdict(number: int, kind: str) -> str:
    return f"scout {number}: {kind}"
