"""Remedies that a league takes by itself: findings of `league doctor` for which there is one bounded change.

Every remedy has a name, under which the state counts how often it was taken and when. It is taken a few times at most,
each time after the league has played a fifth more. It only ever goes in one direction, so that none can oscillate. The
entropy of another budget goes either way, towards a number that is then counted better. The choice of a population by
measurement is one too; nothing else here changes its scout.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from league.core import diagnosis, scouting
from league.core.directives import view_of
from league.core.gates.gates import beaten_at
from league.core.matchmaking.roles import MAIN_ROLE
from league.core.metagame.ratings import league_ratings
from league.core.plugin_calls import gate_opponents
from league.core.state.league_config import PlayerConfig
from league.core.state.records import SnapshotInfo
from league.core.state.state import LeagueState, PlayerState
from league.envs.text.number_text import number_text

LOOK_EVERY = 25
"""Finished leases between two looks."""
MIN_LEASES = 50
"""Leases between two remedies of the same name."""
GROWTH = 1.2
"""Factor by which env steps must have grown since a remedy was last taken."""

EARLY = 0.1
"""Fraction of the budget before which nothing is projected from it but the number of decisions."""
PACE_KNOWN = 0.05
"""Fraction of the budget from which the decisions made so far tell those of the whole."""
MIN_FREEZES = 8
"""Snapshots of a player in a whole run below which its gate is too far away."""
AIMED_FREEZES = 24
AIMED_LIVES = 4
"""Most of a player's budget that one life may take, as one part of so many, where each snapshot ends one. Its gate ends
it earlier where it wins. A counter in pursuit needed 400 updates to beat the main agents, an attack as many."""
WIN_RATE_STEP, MIN_WIN_RATE = 0.05, 0.6
COLLAPSED = 0.05
"""Fraction of the highest entropy seen below which it has collapsed."""
MIN_ENTROPY_COST, NEW_ENTROPY_COST = 0.02, 0.1
ENTROPY_GROWTH, FULL_ENTROPY_DECISIONS, MIN_FIRST_COST = 0.45, 1e7, 0.05
"""Power of the decisions in a budget by which the entropy cost grows that self-play in turns can afford; decisions from
which it can afford its full entropy, since fewer must be spent on good play; the least first cost."""
SAME_BUDGET = 1.5
"""Factor by which the decisions that a budget turns out to hold may differ from those expected."""
MAX_OPPONENTS = 16
MAIN_SHARE, MAIN_GROWTH = 0.8, 1.5
MORE_STEPS = "main agents get more steps"
MAX_RATED = 500
"""Snapshots up to which ratings are looked at here; beyond it they cost too much."""


@dataclass(frozen=True)
class Facts:
    """Facts beside the state. A run that must repeat exactly gives none that depend on a clock.

    Fields:
      budget_fraction: spent, in [0, 1]; None where it must not count.
      snapshots_by_budget: True if main agents are frozen as the budget is spent, whatever their gates say.
      entropies: player -> (entropy of its newest update, the highest seen, entropy cost in force).
      expected_decisions: in the whole budget, that the entropy cost was chosen for; 0 where it was chosen for none.
      entropy_costs: first and last of the run.
    """

    budget_fraction: float | None = None
    snapshots_by_budget: bool = False
    entropies: Mapping[str, tuple[float, float, float]] = field(default_factory=dict)
    expected_decisions: int = 0
    entropy_costs: tuple[float, float] = (0.0, 0.0)


@dataclass(frozen=True)
class Remedy:
    """A change that the league makes by itself.

    Fields:
      name: under which it is counted. most: times that it may be taken.
      pairs: (key, value) of the settings, as for the operation `set`.
      reason: what was found, one sentence without a full stop.
      resets: player that starts again with the change; empty for none.
    """

    name: str
    most: int
    pairs: tuple[tuple[str, object], ...]
    reason: str
    resets: str = ""


def next_remedy(state: LeagueState, facts: Facts) -> Remedy | None:
    """The first remedy that is due; None for none."""
    for step in scouting.next_step(state, facts.budget_fraction):
        remedy = Remedy(step.name, 1, step.pairs, step.reason, step.resets)
        if _may_be_taken(state, remedy):
            return remedy
    for find in FINDERS:
        for remedy in find(state, facts):
            if _may_be_taken(state, remedy) and not _is_of_scout(state, remedy):
                return remedy
    return None


def _is_of_scout(state: LeagueState, remedy: Remedy) -> bool:
    """True if a remedy would change the scout, or the main agents' weight beside it: its life is measured out."""
    scout = scouting.scout_of(state)
    if scout is None:
        return False
    places = (f"players.{scout.name}.", f"league.players.{scout.group}.")
    return remedy.name == MORE_STEPS or any(key.startswith(places) for key, _ in remedy.pairs)


def _may_be_taken(state: LeagueState, remedy: Remedy) -> bool:
    known = state.remedies.get(remedy.name)
    if known is None:
        return True
    rested = state.next_lease_id - known.lease_id >= MIN_LEASES
    return known.times < remedy.most and rested and state.totals.env_steps >= GROWTH * known.env_steps


def far_gates(state: LeagueState, facts: Facts) -> Iterator[Remedy]:
    """Gates that would freeze a player hardly ever in the whole run come nearer."""
    fraction = facts.budget_fraction
    if fraction is None or fraction < EARLY:
        return
    for number, group, players in _groups(state):
        if facts.snapshots_by_budget and group.role == MAIN_ROLE:
            continue
        player = players[0]
        taken = sum(snapshot.trained_steps > 0 for snapshot in _snapshots_of(state, player))
        in_all = player.trained_steps / fraction
        timeout = max(int(in_all / AIMED_FREEZES), 1)
        min_steps = timeout // 2
        if group.reset_probability >= 1.0:  # each snapshot ends a life, in which something must be learnt
            min_steps = scouting.MIN_LIFE_UPDATES * player.trained_steps // max(player.version, 1)
            timeout = max(int(in_all / AIMED_LIVES), min_steps)
        if taken / fraction >= MIN_FREEZES or timeout >= group.gate.timeout_steps or not player.trained_steps:
            continue
        yield Remedy(
            f"gate of group {number} comes nearer",
            2,
            (
                (f"league.players.{number}.gate.min_steps", min(group.gate.min_steps, min_steps)),
                (f"league.players.{number}.gate.timeout_steps", timeout),
            ),
            f"{player.name} has {taken} {'snapshot' if taken == 1 else 'snapshots'} after {fraction:.0%} of the "
            "budget, as its gate waits for "
            f"{group.gate.timeout_steps:,} trained steps and the whole run has about {in_all:,.0f}",
        )


def idle_exploiters(state: LeagueState, facts: Facts) -> Iterator[Remedy]:
    """Exploiters that beat nobody get less of the steps, and leave in the end; main agents get what is left."""
    for idle in diagnosis.idle_exploiters(state, lambda player: _best_win_rate(state, player)):
        player = idle.player
        found = (
            f"{player.name} was frozen {idle.frozen} times, the last three by the timeout, and wins at most "
            f"{idle.best:.0%}"
        )
        less = Remedy(
            f"{player.name} gets fewer steps",
            2,
            ((f"players.{player.name}.step_weight", 0.5 * _weight(state, player)),),
            found,
        )
        yield less
        known = state.remedies.get(less.name)
        if known is not None and known.times >= less.most and _has_rested(state, known.env_steps):
            yield Remedy(f"{player.name} retires", 1, ((f"players.{player.name}.retired", True),), found)


def silent_gates(state: LeagueState, facts: Facts) -> Iterator[Remedy]:
    """Gates that only ever fire by their timeout ask for less."""
    first = _first_of_groups(state)
    for silent in diagnosis.silent_gates(state):
        number, gate = silent.player.group, state.config_of(silent.player.name).gate
        lower = round(beaten_at(gate).win_rate - WIN_RATE_STEP, 3)
        if silent.player is not first[number] or lower < MIN_WIN_RATE:
            continue
        if not isinstance(gate.test, dict) or "win_rate" not in gate.test:
            continue
        yield Remedy(
            f"gate of group {number} asks for less",
            3,
            ((f"league.players.{number}.gate.test.win_rate", lower),),
            f"the gate of {silent.player.name} has never fired: all {silent.timeouts} snapshots were taken by the "
            "timeout",
        )


def collapsed_entropy(state: LeagueState, facts: Facts) -> Iterator[Remedy]:
    """Players that have all but stopped to try anything get more for doing so, in games against others.

    Not a scout or a counter: who has one opponent need not mix.
    """
    if not state.is_competitive or (facts.budget_fraction is not None and facts.budget_fraction > 0.5):
        return
    for name, (entropy, highest, cost) in facts.entropies.items():
        player = state.players.get(name)
        if player is None or not player.is_active or entropy >= COLLAPSED * highest or _is_answer(state, player):
            continue
        if entropy < 0.0:  # of a density: how narrow is too narrow depends on the unit
            continue
        found = f"the entropy of {name} fell to {number_text(entropy)} from {number_text(highest)} early in the run"
        if cost < MIN_ENTROPY_COST:
            yield Remedy(
                "entropy costs something",
                1,
                (("learner.entropy_cost", NEW_ENTROPY_COST), ("learner.entropy_cost_end", NEW_ENTROPY_COST / 2)),
                found,
            )
            continue
        factor = next((item.value for item in player.hyperparameters if item.name == "entropy_cost"), 1.0)
        yield Remedy(f"entropy of {name} is worth more", 3, ((f"players.{name}.entropy_cost", 2.0 * factor),), found)


def _is_answer(state: LeagueState, player: PlayerState) -> bool:
    """True if a player has nobody to beat but the main agents as they are: a scout, or a counter of teams."""
    is_scout = player is scouting.scout_of(state)
    return is_scout or (state.has_teammates and state.config_of(player.name).reset_probability >= 1.0)


def other_budget(state: LeagueState, facts: Facts) -> Iterator[Remedy]:
    """An entropy cost that was chosen for many more decisions than the budget turns out to hold, or far fewer."""
    fraction, expected = facts.budget_fraction, facts.expected_decisions
    if fraction is None or fraction < PACE_KNOWN or expected <= 0 or min(facts.entropy_costs) <= 0.0:
        return
    found = float(f"{state.totals.decisions / fraction:.2g}")
    change = min(found, FULL_ENTROPY_DECISIONS) / min(expected, FULL_ENTROPY_DECISIONS)
    if found <= 0.0 or 1.0 / SAME_BUDGET <= change <= SAME_BUDGET:
        return
    first, last = facts.entropy_costs
    new = max(first * change**ENTROPY_GROWTH, min(MIN_FIRST_COST, first))
    yield Remedy(
        "entropy fits the budget",
        3,
        (
            ("learner.entropy_cost", round(new, 4)),
            ("learner.entropy_cost_end", round(last * new / first, 5)),
            ("runtime.expected_decisions", int(found)),
        ),
        f"the budget holds about {found:,.0f} decisions, and its entropy cost was chosen for {expected:,}",
    )


def starved_pairs(state: LeagueState, facts: Facts) -> Iterator[Remedy]:
    """Gates that know too little of their opponents: more of these in one lease, then evidence that lasts longer."""
    assert state.config is not None
    first = _first_of_groups(state)
    for starved in diagnosis.starved_gates(state):
        number = starved.player.group
        if starved.player is not first[number]:
            continue
        found = (
            f"{starved.player.name} has met {len(starved.hungry)} of its {starved.opponents} opponents too rarely for "
            "its gate to judge"
        )
        per_lease = state.config.players[number].opponents_per_lease
        if per_lease < MAX_OPPONENTS:
            key = f"league.players.{number}.opponents_per_lease"
            yield Remedy(f"group {number} meets more opponents", 2, ((key, min(2 * per_lease, MAX_OPPONENTS)),), found)
        half_life = 2.0 * state.payoff.half_life_steps
        yield Remedy("evidence lasts longer", 2, (("league.payoff.half_life_steps", half_life),), found)


def small_main_share(state: LeagueState, facts: Facts) -> Iterator[Remedy]:
    """While main agents still improve, they learn from at least `MAIN_SHARE` of the steps.

    Not in a game of teams: there they may improve on their own past alone, in a trap that only others show them.
    """
    if state.has_teammates:
        return
    mains = [player for player in state.players.values() if player.role == MAIN_ROLE and player.is_active]
    others = [player for player in state.players.values() if player.role != MAIN_ROLE and player.is_active]
    own = sum(_weight(state, player) for player in mains)
    rest = sum(_weight(state, player) for player in others)
    if not mains or not others or own >= MAIN_SHARE * (own + rest) * 0.99 or len(state.snapshots) > MAX_RATED:
        return
    if not any(_improves(state, player) for player in mains):
        return
    factor = min(MAIN_GROWTH, MAIN_SHARE / (1.0 - MAIN_SHARE) * rest / own)
    yield Remedy(
        MORE_STEPS,
        5,
        tuple((f"players.{player.name}.step_weight", factor * _weight(state, player)) for player in mains),
        f"main agents still improve and have {own / (own + rest):.0%} of the steps",
    )


def _improves(state: LeagueState, player: PlayerState) -> bool:
    """True if the newest rated snapshot is stronger, beyond both intervals, than the one half way back."""
    rows = {row.policy: row for row in league_ratings(state)}
    rated = [
        rows[snapshot.snapshot_id]
        for snapshot in _snapshots_of(state, player)
        if snapshot.snapshot_id in rows and rows[snapshot.snapshot_id].games > 0
    ]
    return len(rated) >= 3 and rated[-1].low > rated[len(rated) // 2 - 1].high


def _best_win_rate(state: LeagueState, player: PlayerState) -> float | None:
    """Highest win rate over the opponents of the player's gate that it has met; None where it has met none enough."""
    gate = state.config_of(player.name).gate
    if not state.is_competitive or player.trained_steps - player.gate_steps < gate.timeout_steps // 2:
        return None
    view = view_of(state, player.name)
    known = view.posterior.take(gate_opponents(view))
    met = known.games >= beaten_at(gate).min_games
    return float(known.mean[met].max()) if met.any() else None


def _has_rested(state: LeagueState, env_steps: int) -> bool:
    return state.totals.env_steps >= GROWTH * env_steps


def _weight(state: LeagueState, player: PlayerState) -> float:
    return float(state.fair_share.step_weight.values[player.index])


def _snapshots_of(state: LeagueState, player: PlayerState) -> list[SnapshotInfo]:
    return [snapshot for snapshot in state.snapshots.values() if snapshot.player == player.name]


def _groups(state: LeagueState) -> Iterator[tuple[int, PlayerConfig, list[PlayerState]]]:
    """Every group with players that learn: its number, its settings, these players."""
    assert state.config is not None
    for number, group in enumerate(state.config.players):
        players = [player for player in state.players.values() if player.group == number and player.is_active]
        if players:
            yield number, group, players


def _first_of_groups(state: LeagueState) -> dict[int, PlayerState]:
    """Group -> the first of its players that learn, after which settings of the whole group are changed."""
    return {number: players[0] for number, _, players in _groups(state)}


Finder = Callable[[LeagueState, Facts], Iterator[Remedy]]
FINDERS: tuple[Finder, ...] = (
    far_gates,
    idle_exploiters,
    silent_gates,
    other_budget,
    collapsed_entropy,
    starved_pairs,
    small_main_share,
)
"""In the order in which they are asked; one remedy is taken at a time."""
