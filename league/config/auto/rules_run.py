"""Rules of the run itself: its name, placement, deadlines and the last measurement."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from league.config.auto.draft import AutoValue, Draft
from league.config.auto.situation import HORIZON_CORE_SECONDS, Situation
from league.config.game_kind import said_by
from league.config.ray_address import AUTO, OWN
from league.envs.protocol import MAX_DEADLINE_S
from league.wording import counted

RAY_CORE_SECONDS = 12.0
"""Core-seconds that the start and the end of Ray and its hosts take."""
RAY_SHARE = 0.1
"""Of the budget: the most that they may take."""
DEADLINE_S = 120.0
"""Deadline of a lease whatever it should take."""
DEADLINE_FACTOR = 20.0
EXPLOITER_CORE_SECONDS = 40.0
"""Core-seconds of one fresh exploiter, a little more than it takes."""
PROBES_CORE_SECONDS = 6.0
"""Core-seconds of probes in a whole run below which starting their process would take most of them."""
SMALL_ENDINGS = 2000.0
"""Ways to play one deal up to which a game that says what its histories are has exact values within about a second."""
SEARCH_TURN_S = 1e-3
"""Seconds of a turn above which search by copies takes minutes."""
_NO_NAME = re.compile(r"[^a-z0-9]+")


NAMELESS = ("make", "make_env", "env", "raw_env", "parallel_env")
"""Names of factories that say nothing of the game."""


def name(situation: Situation, draft: Draft) -> Iterator[AutoValue]:
    """The run is called as its game."""
    short = name_of_game(situation.game.spec.env_id)
    if short:
        yield AutoValue("name", short, "the game")


def name_of_game(env_id: str) -> str:
    """A short name for a game; of a factory whose name says nothing, that of its file. It may be empty."""
    place, _, made_by = env_id.rpartition(":")
    if made_by in NAMELESS and place:
        made_by = place.removesuffix(".py")
    return _NO_NAME.sub("-", made_by.rpartition("/")[2].lower()).strip("-")[:40]


def kind(situation: Situation, draft: Draft) -> Iterator[AutoValue]:
    """The kind of the game, by which later rules, exports and evaluations go."""
    game, found = situation.game, situation.kind
    if said_by(game.spec) != "unknown":
        why = "the game says so"
    elif found.information == "unknown":
        why = "random play met nothing hidden, and the game cannot say so: exports are chosen by matches"
    elif found.information == "open":
        why = "it draws lots, and all seats were seen to see the same"
    else:
        why = "the same observation and action were followed by different turns"
    yield AutoValue("game.information", found.information, why)
    moves = "at_once" if found.at_once else "in_turn"
    why = f"{game.acting:.3g} seats move in a turn" if found.at_once else "one seat moves in a turn"
    yield AutoValue("game.moves", moves, why)


def placement(situation: Situation, draft: Draft) -> Iterator[AutoValue]:
    """One process for short budgets and for budgets of processor time, hosts of their own otherwise."""
    budget = situation.budget
    if asks_for_hosts(draft):
        yield AutoValue("runtime.kind", "ray", "hosts of their own are asked for")
    elif draft.value("actors.games") == "device":
        yield AutoValue("runtime.kind", "inprocess", "games on the device share the learner's process")
    elif situation.cluster and draft.value("runtime.address") == AUTO:
        yield AutoValue("runtime.kind", "ray", f"RAY_ADDRESS names the cluster {situation.cluster}")
    elif budget.seconds is None and budget.env_steps is not None and budget.core_seconds is None:
        yield AutoValue("runtime.kind", "inprocess", "env steps alone: the run repeats exactly")
    elif situation.cores < 2:
        yield AutoValue("runtime.kind", "inprocess", "one core")
    elif budget.core_seconds is not None:
        yield AutoValue("runtime.kind", "inprocess", "it learns most in a core-second")
    elif budget.seconds is not None and budget.seconds * situation.cores * RAY_SHARE < RAY_CORE_SECONDS:
        yield AutoValue("runtime.kind", "inprocess", "Ray would take more than a tenth of the budget to start")
    else:
        yield AutoValue("runtime.kind", "ray", counted(situation.cores, "core"))
    if draft.value("runtime.kind") == "ray" and joins_cluster(situation, draft):
        yield AutoValue("runtime.actor_hosts", 0, "they follow the machines of the cluster")


def joins_cluster(situation: Situation, draft: Draft) -> bool:
    """True if the address is that of a Ray cluster, and no Ray of the run's own is started."""
    address = draft.value("runtime.address")
    return address != OWN and (address != AUTO or bool(situation.cluster))


def asks_for_hosts(draft: Draft) -> bool:
    """True if the user says how many hosts there are, or where."""
    return any(draft.has(f"runtime.{key}") for key in ("actor_hosts", "learner_hosts", "replay_hosts", "address"))


def lease_deadline(situation: Situation, draft: Draft) -> Iterator[AutoValue]:
    """Far longer than a lease should take."""
    num_envs, steps = draft.whole("actors.num_envs"), draft.whole("league.lease_steps")
    expected = num_envs * (steps * situation.turn_s(num_envs) + situation.costs.make_s + situation.costs.reset_s)
    deadline = min(max(DEADLINE_S, DEADLINE_FACTOR * expected), MAX_DEADLINE_S)
    reason = "far longer than a lease takes"
    yield AutoValue("runtime.lease_deadline_s", float(f"{deadline:.2g}"), reason)


def bots(situation: Situation, draft: Draft) -> Iterator[AutoValue]:
    """The scripted opponents that can play the game."""
    game = situation.game
    tells = situation.kind.hides or game.surprises  # a copy would also show what chance will bring
    searches = game.copyable and game.play == "turn_based" and not tells and game.spec.actions.kind == "categorical"
    if draft.number("env.workers") > 0:
        yield AutoValue("evaluation.bots", ["random"], "games in child processes cannot be copied for search")
        return
    if not game.is_competitive:
        yield AutoValue("evaluation.bots", ["random"], "one team: its return beside that of random play")
        return
    if not searches:
        why = "search needs games that can be copied, hide nothing, and are played in turns by numbered actions"
        yield AutoValue("evaluation.bots", ["random"], why)
        return
    found = ["random", *(["tactical"] if game.spec.num_seats == 2 else [])]
    if situation.turn_s(1) <= SEARCH_TURN_S:
        found += ["mcts:25", "mcts:100"]
    yield AutoValue("evaluation.bots", found, "bots that can play it in time")


def probes(situation: Situation, draft: Draft) -> Iterator[AutoValue]:
    """Probes that measure the game, where their share of the budget pays for them."""
    game, allowed = situation.game, draft.number("probes.max_share") * (situation.core_seconds or HORIZON_CORE_SECONDS)
    if situation.is_exact:
        yield AutoValue("probes.kinds", [], "a run that repeats exactly looks at no clock")
    elif allowed < PROBES_CORE_SECONDS:
        why = f"their share of the budget, {allowed:.1f} core-seconds, would go into starting them"
        yield AutoValue("probes.kinds", [], why)
    elif not game.is_competitive:
        yield AutoValue("probes.kinds", ["mean_return"], "a game of one team: its return says how strong it is")
    else:
        exact = ["exact"] if game.has_tree and (game.endings or math.inf) <= SMALL_ENDINGS else []
        yardsticks = ["yardsticks"] if draft.value("evaluation.bots") else []
        kinds = [*yardsticks, *exact, "past"]
        reason = "bots and its own past" if yardsticks else "its own past"
        reason += ", and its small tree exactly" if exact else ""
        if not exact and allowed >= EXPLOITER_CORE_SECONDS * (len(kinds) + 1):
            kinds, reason = [*kinds, "best_response"], f"{reason}, and a fresh player, for which the budget lasts"
        yield AutoValue("probes.kinds", kinds, reason)


RULES = (kind, name, placement)
LATE_RULES = (lease_deadline, bots, probes)
