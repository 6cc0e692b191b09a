"""Rules of the league: roles and their shares, opponents, snapshot cadence, ratings and scoring."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from league.config.auto.draft import ALGORITHM, AutoValue, Draft, count_of
from league.config.auto.rules_cores import decisions_of_update, epochs_of
from league.config.auto.situation import Situation
from league.core import scouting
from league.envs.text.number_text import number_text
from league.wording import counted

SNAPSHOTS = 45
"""Snapshots of a main agent in a budget."""
NEVER = 100.0
"""Budgets after which the gate of a main agent would freeze it, where snapshots are spread over the budget."""
BY_BUDGET = "snapshots are spread over the budget, see runtime.snapshots_per_budget"
EXPLOITER_CORE_SECONDS = 1800.0
EXPLOITER_DECISIONS = 2e7
"""Core-seconds, and decisions, from which an exploiter has the time to learn something."""
MAIN_WEIGHT = 9.0
"""Step weight of the main agent where there is an exploiter."""
RANGE_PART = 0.25
"""Of the range of returns that a game states: where margins of random play spread over less, the range says nothing.
By it an opponent who won every game counted as 0.42 in `pursuit`, beside 0.5 for an even one, and was hardly met."""
EXPLOITER_SNAPSHOTS = 10
"""Lives of an exploiter in a budget."""
LIFE_SHARE, MAX_LIFE_UPDATES = 0.0125, 300
"""Of the main agent's decisions, those of one life of a scout, within the least and the most updates of it."""
SCOUT_ROWS, SCOUT_RATE, MAX_RATE_FACTOR = 64, 3e-3, 3.0
"""Most rows of a scout's update; its step size, and the most that this may be over the run's. With 64 rows a fresh team
beat the trap of team_matrix in 0.96 of the games after 160 updates, with 256 in 0.75, with 1,024 it learnt nothing."""
ENTROPY_COSTS = ("entropy_cost", "entropy_cost_end")
SCOUT_ENTROPY = (0.02, 0.002)
"""First and last entropy cost of a scout, at most: who has one opponent need not mix."""
ON_POLICY = ("vtrace", "ppo", "appo")
"""Algorithms under which a scout learns as it was tried."""
MEASURED, ALWAYS, NEWEST_ONLY = scouting.MEASURED, "always", "never"
CHOICE = "league.population.choice"
OWN_LIVES = (scouting.SCOUT, "counter")
"""Groups of players whose lives are counted in updates of their own, not as shares of the budget."""


def choice(situation: Situation, draft: Draft) -> Iterator[AutoValue]:
    """Games of teams begin with counters, which must win; others have their population by the rules below."""
    if draft.value("league.preset") or draft.groups() or not situation.game.is_competitive or not _has_teams(situation):
        return
    if draft.value("trainer.kind") != "league" or draft.value(f"{ALGORITHM}.kind") not in ON_POLICY:
        return
    life = scouting.MIN_LIFE_UPDATES * _scout_rows(draft) * draft.whole("learner.unroll_length")
    if _decisions(situation, draft) * scouting.MAX_SHARE < life:
        return
    yield AutoValue(CHOICE, MEASURED, "a team may stay in a trap: counters stay while they win")


def roles(situation: Situation, draft: Draft) -> Iterator[AutoValue]:
    """A main agent, and an exploiter where the budget lets it learn."""
    if draft.value("league.preset"):
        return
    main: dict[str, object] = {"role": "main_agent"}
    chosen = draft.value(CHOICE)
    counters = chosen == ALWAYS and _has_teams(situation)
    if situation.game.is_competitive and (counters or chosen in (MEASURED, NEWEST_ONLY)):
        yield from _chosen_roles(situation, draft, main)
        return
    decisions = _decisions(situation, draft)
    core_seconds = situation.core_seconds
    short = "" if core_seconds is None or core_seconds >= EXPLOITER_CORE_SECONDS else f"{core_seconds:g} core-seconds"
    short = f"{number_text(decisions, 2)} decisions" if decisions < EXPLOITER_DECISIONS else short
    mixed = situation.is_mixed
    if not situation.game.is_competitive:
        yield AutoValue("league.players", [main], "one team: there is nobody to exploit")
    elif mixed:
        why = f"play is mixed: exploiters find little that self-play does not{_trap(situation)}"
        yield AutoValue("league.players", [main], why)
    elif short:
        yield AutoValue("league.players", [main], f"{short} are too few for an exploiter to learn{_trap(situation)}")
    else:
        players = [{**main, "step_weight": MAIN_WEIGHT}, {"role": "main_exploiter", "step_weight": 1.0}]
        yield AutoValue(
            "league.players", players, f"{number_text(decisions, 2)} decisions leave a tenth for an exploiter"
        )


def _chosen_roles(situation: Situation, draft: Draft, main: dict[str, object]) -> Iterator[AutoValue]:
    """The main agent alone, with a scout that waits, or with counters from the start, which a run may end."""
    chosen = draft.value(CHOICE)
    if chosen == NEWEST_ONLY:
        yield AutoValue("league.players", [main], "the newest weights alone are asked for")
        return
    main = {**main, "step_weight": 1.0}
    if chosen == MEASURED and not _has_teams(situation):
        scout = _scout(situation, draft, scouting.SCOUT, weight=scouting.SCOUT_WEIGHT, again=0.0)
        why = "a scout tells later whether the newest weights need more opponents"
        yield AutoValue("league.players", [main, scout], why)
        return
    main["matchmaker"] = {"kind": "main_agent", "verification": 0.0, **scouting.COUNTER_GAMES}
    name, until = (scouting.SCOUT, ", until they find nothing") if chosen == MEASURED else ("counter", "")
    counter = _scout(situation, draft, name, weight=1.0, again=1.0)
    yield AutoValue("league.players", [main, counter], f"teams: counters start again and again{until}")


def _scout(situation: Situation, draft: Draft, name: str, *, weight: float, again: float) -> dict[str, object]:
    """An exploiter with lives long enough, by small updates of its own. again: chance that it then starts again."""
    rows = _scout_rows(draft)
    rate, costs = draft.number("learner.learning_rate"), (draft.number(f"learner.{name}") for name in ENTROPY_COSTS)
    rate = max(rate, min(MAX_RATE_FACTOR * rate, SCOUT_RATE))
    learner: dict[str, object] = {"batch_rows": rows, "learning_rate": rate, "learning_rate_end": rate}
    learner |= {key: min(cost, most) for key, cost, most in zip(ENTROPY_COSTS, costs, SCOUT_ENTROPY, strict=True)}
    if draft.number(f"{ALGORITHM}.magnet_cost") > 0.0:
        learner["algorithm"] = {"magnet_cost": 0.0}
    size = rows * draft.whole("learner.unroll_length")
    updates = LIFE_SHARE * _decisions(situation, draft) / size
    life = _rounded(min(max(updates, scouting.MIN_LIFE_UPDATES), MAX_LIFE_UPDATES) * size)
    return {
        "role": "main_exploiter",
        "name": name,
        "step_weight": weight,
        "matchmaker": {"kind": "main_exploiter", "curriculum_below": 0.0, "curriculum_fraction": 0.0},
        "gate": {"min_steps": life, "timeout_steps": life, "reset_probability": again, "reset_to": "initial"},
        "learner": learner,
    }


def _scout_rows(draft: Draft) -> int:
    """Rows of a scout's update."""
    return min(draft.whole("learner.batch_rows"), SCOUT_ROWS)


def _has_teams(situation: Situation) -> bool:
    """True if a team has several seats."""
    return situation.game.spec.num_seats > situation.game.spec.num_teams


def _trap(situation: Situation) -> str:
    """The hint that a game of teams deserves; empty for other games."""
    hint = "; a team may stay in a trap, out of which `league.population.choice: always` finds"
    return hint if _has_teams(situation) else ""


def opponents(situation: Situation, draft: Draft) -> Iterator[AutoValue]:
    """The main agent's games: mostly against itself, for of those it learns from every decision."""
    if not situation.game.is_competitive:
        return
    mixed = situation.is_mixed
    for place, group in enumerate(draft.groups()):
        key = f"league.players.{place}"
        once = _decides_once(situation)
        why = "self-play and the past in every update" if once else "each one costs a forward pass of its own"
        yield AutoValue(f"{key}.opponents_per_lease", 2 if once else 1, why)
        if group.get("role", "main_agent") != "main_agent" or group.get("matchmaker"):
            continue
        past, why = _past(situation)
        if draft.value(CHOICE) in (MEASURED, NEWEST_ONLY):
            past, why = 0.0, "the newest weights only"
        elif len(draft.groups()) > 1:
            past = min(past, scouting.PAST_BESIDE_EXPLOITER)
        options: dict[str, object] = {"self_play": 1.0 - past, "pfsp": past, "verification": 0.0}
        if mixed:
            options = {**options, "weighting": "uniform"}
        learnt = 1.0 - past * (1.0 - 1.0 / situation.game.spec.num_teams)
        yield AutoValue(f"{key}.matchmaker", options, f"{why}; learns from {learnt:.0%} of the decisions of its games")


def _past(situation: Situation) -> tuple[float, str]:
    """The share of a main agent's games against the past, and the reason.

    Nothing is learnt from a frozen opponent's decisions, and each one met costs a forward pass, so that the past is
    met where it brings more. With a fourth of the games or more it did harm in poker and goofspiel. Where all decide
    once, half of them left exports a fourth to a half more exploitable than a tenth did. In Connect Four a fifth of the
    games keeps a fresh exploiter from two fifths of its wins, a tenth from few. Nor does a fifth where win rates
    forget old games, so that those alone are met who are hard to beat now. The trials stand in
    benchmarks/figures/choosing-defaults.md.
    """
    share = scouting.past_share(situation.kind)
    if situation.is_mixed:
        return share, "hidden or simultaneous: more of the past did harm"
    return share, "nothing hidden: the past keeps what was learnt"


def _decides_once(situation: Situation) -> bool:
    """True if all seats decide once in a game, at the same time."""
    return situation.game.is_simultaneous and situation.game.decisions.high <= 1.0


def cadence(situation: Situation, draft: Draft) -> Iterator[AutoValue]:
    """Snapshots as shares of the budget, whatever its size, and how long the games of a main agent count."""
    decisions, groups = _decisions(situation, draft), draft.groups()
    total = sum(_weight(group) for group in groups if group.get("name") not in OWN_LIVES) or 1.0
    has_half_life = any(
        (
            draft.has("league.payoff.half_life_steps"),
            draft.has("league.population.save_steps"),
            any(group.get("gate") for group in groups if group.get("name") not in OWN_LIVES),
        )
    )
    for place, group in enumerate(groups):
        if group.get("name") in OWN_LIVES:
            continue
        own = decisions * _weight(group) / max(total, 1e-9) / count_of(group)
        yield from _gate(situation, group, f"league.players.{place}.gate", own)
    if not situation.has_budget:
        if draft.value("league.preset"):
            yield AutoValue("league.population.save_steps", _rounded(decisions / SNAPSHOTS), _share(SNAPSHOTS))
        return
    if draft.value("league.preset"):
        yield AutoValue("league.population.save_steps", _rounded(NEVER * decisions), BY_BUDGET)
    if situation.game.is_competitive and not has_half_life:
        why = "the time of the whole budget: the old past is met too"
        yield AutoValue("league.payoff.half_life_snapshots", float(SNAPSHOTS), why)
    yield AutoValue("runtime.snapshots_per_budget", SNAPSHOTS, _share(SNAPSHOTS))


def _gate(situation: Situation, group: Mapping[str, object], key: str, own: float) -> Iterator[AutoValue]:
    """The gate of a group whose players learn from `own` decisions each in the budget."""
    is_main = group.get("role", "main_agent") == "main_agent"
    by_budget = is_main and situation.has_budget
    count = SNAPSHOTS if is_main else EXPLOITER_SNAPSHOTS
    steps = _rounded(NEVER * own if by_budget else own / count)
    even = situation.is_exact or by_budget
    least, most = (steps, steps) if even else (steps // 2, 2 * steps)
    gate = group.get("gate")
    given = gate if isinstance(gate, Mapping) else {}
    top, floor = given.get("timeout_steps"), given.get("min_steps")
    if isinstance(top, int):
        least = min(least, top)
    if isinstance(floor, int):
        most = max(most, floor, 1)
    reason = BY_BUDGET if by_budget else f"about {_share(count)}"
    yield AutoValue(f"{key}.min_steps", max(least, 1), reason)
    yield AutoValue(f"{key}.timeout_steps", max(most, 1), reason)
    if not is_main:
        yield AutoValue(f"{key}.reset_to", "main", "from random weights it would need the whole budget")


def scoring(situation: Situation, draft: Draft) -> Iterator[AutoValue]:
    """Games count by who won, or by what was won where that says more."""
    game, margin = situation.game, situation.game.margin
    if not game.is_competitive or margin is None or draft.has("league.payoff.return_scale"):
        return
    if game.wins_only:
        yield AutoValue("league.payoff.score", "wins", "a return only says won, drawn or lost")
    else:
        low, high = game.spec.return_range or (-math.inf, math.inf)
        scale = max(margin.p95 - margin.p5, margin.high - margin.low if margin.p95 == margin.p5 else 0.0)
        if 0.0 < scale < RANGE_PART * (high - low) and draft.value("league.payoff.score") != "wins":
            yield AutoValue("league.payoff.score", "returns", "returns say more than who won")
            yield AutoValue("league.payoff.return_scale", _short(scale), "90 % of random games lie within it")


def ratings(situation: Situation, draft: Draft) -> Iterator[AutoValue]:
    """A small share of the steps, and of the end."""
    if draft.value("league.preset") or not situation.game.is_competitive:
        return
    yield AutoValue("league.ratings.step_fraction", 0.03, "enough to tell snapshots apart")
    yield AutoValue("league.ratings.final_share", 0.05, "most that the end may take")


def _decisions(situation: Situation, draft: Draft) -> float:
    """Estimated decisions in the budget."""
    num_envs, batch = draft.whole("actors.num_envs"), decisions_of_update(draft)
    return situation.decisions(num_envs, epochs=epochs_of(draft), batch=batch)


def _weight(group: Mapping[str, object]) -> float:
    """Step weight of a whole group."""
    weight = group.get("step_weight", 1.0)
    return count_of(group) * (float(weight) if isinstance(weight, int | float) else 1.0)


def _share(count: int) -> str:
    return f"{counted(count, 'snapshot')} in the budget"


def _rounded(steps: float) -> int:
    """A whole number of two digits, that is counted in 63 bits."""
    return max(int(min(float(f"{steps:.2g}"), 4e18)), 2)


def _short(value: float) -> float:
    return float(f"{value:.2g}")


RULES = (choice, roles, opponents, cadence, scoring, ratings)
