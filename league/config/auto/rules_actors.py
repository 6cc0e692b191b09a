"""Rules of acting: games at once and their processes, the length of an unroll, and the length of a lease."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from league.config.auto import rules_run
from league.config.auto.draft import AutoValue, Draft
from league.config.auto.situation import Situation, power_of_two
from league.envs.registry import ADAPTERS
from league.envs.text.number_text import number_text

MAX_GAMES, MIN_GAMES = 1024, 4
MAKING_SHARE = 0.02
"""Of the budget: time to make all games of an actor host."""
MEMORY_SHARE = 0.1
"""Of this machine's memory: all games of an actor host."""
LEARNING_PLAYERS = 2
"""Learning players where the rules of the league are still to choose them: at most so many."""
CALL_SHARE = 0.2
"""Of the cost of a turn: fixed cost of the calls, which is spread over the games."""
TURN_S = 2e-4
"""Processor time of an actor's turn beside the env and the forward pass, see `benchmarks.throughput.actor_parts`."""
STEP_BYTES = 32
"""Of a recorded decision beside what is observed: action, probability, reward, discount, flags and version."""
HAND_OVER_S = 5e-4
"""Processor time of a request of one actor host beside the forward pass, see `benchmarks.throughput`."""
CENTRAL_GAIN = 2.0
"""Times by which a decision must be cheaper at an inference host than on an actor host's core."""
WORTH_HANDING_S = 2e-3
"""A step of all games above which child processes pay: about ten times what handing it over costs."""
NEAR = 2.0
"""Factor around that within which a measured time does not decide."""
EPISODES_EACH = 50
"""Episodes that each game plays in the budget at least."""
ROUNDS = 300
"""Unrolls of each game in the budget at least: with fewer, the policy that acts has hardly changed in between."""
CROWD, CROWD_ROUNDS, MIN_UNROLL = 32, 30, 4
"""Seats that act at once from which on one game is a batch of its own; unrolls of one game in the budget at least, and
the shortest that are cut for it."""
LEASES = 300
"""Leases in a budget at least, so that opponents change and the end of the budget is met."""
LEASE_S = 4.0
"""Longest lease, in seconds."""
LEASE_STEPS, HOSTS_OF_SHORT_LEASES = 128, 32
"""Most steps of a lease up to so many actor hosts; with more of them leases are longer in proportion. A daemon, and Ray
in it, take 2 to 4 ms of a core for an answer (`benchmarks.throughput.many_hosts`)."""


def games_at_once(situation: Situation, draft: Draft) -> Iterator[AutoValue]:
    """Enough games that fixed costs of a call vanish, and no more than making, memory and budget allow."""
    costs, game = situation.costs, situation.game
    per_game = max(costs.game_s, situation.reset_s) + situation.network.act_s * game.acting
    wanted = (costs.call_s + situation.network.act_call_s + TURN_S) / (CALL_SHARE * max(per_game, 1e-7))
    limits = {"the fixed cost of a call is negligible": wanted, "more bring nothing": float(MAX_GAMES)}
    budget_s = situation.core_seconds
    if budget_s is not None:
        begin_s = costs.make_s + costs.reset_s
        begins = "making one takes" if costs.make_s >= costs.reset_s else "making and resetting one takes"
        limits[f"{begins} {number_text(begin_s, 2)} s"] = MAKING_SHARE * budget_s / (arenas(draft) * max(begin_s, 1e-9))
    in_memory = MEMORY_SHARE * situation.memory_mib / (arenas(draft) * game_mib(situation, draft))
    limits[f"one takes {number_text(game_mib(situation, draft), 2)} MiB"] = in_memory
    turns = situation.least_decisions(MAX_GAMES) / max(game.acting, 1e-3)
    limits[f"each should play {EPISODES_EACH} games in the budget"] = turns / (
        EPISODES_EACH * max(game.turns.mean, 1.0)
    )
    limits[f"each should give {ROUNDS} unrolls in the budget"] = turns / (ROUNDS * draft.whole("learner.unroll_length"))
    reason, least = min(limits.items(), key=lambda item: item[1])
    low = 1 if game.acting >= CROWD or in_memory < MIN_GAMES else MIN_GAMES
    chosen = power_of_two(least, low=low, high=MAX_GAMES)
    yield AutoValue("actors.num_envs", chosen, f"with {chosen} {reason}" if least == wanted else reason)


def arenas(draft: Draft) -> int:
    """Sets of games that an actor host holds: one for each learning player, one for rating matches."""
    is_open = not draft.groups() and not draft.value("league.preset")
    return (LEARNING_PLAYERS if is_open else draft.num_players()) + 1


def game_mib(situation: Situation, draft: Draft) -> float:
    """Memory of one game of an arena: its own, and the unrolls of its seats with their last step."""
    spec = situation.game.spec
    step_bytes = STEP_BYTES + (spec.actions.num_actions if spec.has_mask else 0)
    step_bytes += sum(math.prod(one.shape) * np.dtype(one.dtype).itemsize for one in spec.observations.values())
    unrolls = spec.num_seats * (draft.whole("learner.unroll_length") + 1) * step_bytes
    return situation.costs.make_mib + unrolls / 2**20


def unroll_length(situation: Situation, draft: Draft) -> Iterator[AutoValue]:
    """A whole short game, or a part of a long one."""
    decisions = situation.game.decisions
    if decisions.high <= 12:
        length = 1
        while length < decisions.high:
            length *= 2
        yield AutoValue("learner.unroll_length", length, f"a seat decides {decisions.high:g} times a game at most")
        return
    length = 16 if decisions.mean < 48 else 32
    acting, reason = situation.game.acting, f"a seat decides {decisions.mean:.0f} times a game"
    if acting >= CROWD:
        while length > MIN_UNROLL and CROWD_ROUNDS * acting * length > situation.least_decisions(1):
            length //= 2
            reason = f"{acting:.0f} seats act at once, and all unrolls of a game end at the same time"
    yield AutoValue("learner.unroll_length", length, reason)


def lease_steps(situation: Situation, draft: Draft) -> Iterator[AutoValue]:
    """Leases that are short against the budget and on the clock, and longer than one unroll where that is possible."""
    num_envs = draft.whole("actors.num_envs")
    step_s = situation.step_s(num_envs) * situation.game.acting + situation.network.learn_s * situation.game.acting
    turns = situation.least_decisions(num_envs) / max(situation.game.acting, 1e-3)
    by_budget, by_time = turns / (num_envs * LEASES), LEASE_S / (num_envs * step_s)
    longest = LEASE_STEPS * max(draft.whole("runtime.actor_hosts") // HOSTS_OF_SHORT_LEASES, 1)
    chosen = power_of_two(min(by_budget, by_time, float(longest)), low=4, high=longest)
    reason = f"a lease is at most {LEASE_S:g} s and 1/{LEASES} of the budget"
    yield AutoValue("league.lease_steps", chosen, reason)


def inference(situation: Situation, draft: Draft) -> Iterator[AutoValue]:
    """An inference host where there is a GPU, and the network is dear on a core of an actor host."""
    costs, hosts = situation.network, max(draft.whole("runtime.actor_hosts"), 1)
    rows = max(draft.whole("actors.num_envs") * situation.game.acting, 1.0)
    local_us = 1e6 * (costs.act_s + costs.act_call_s / rows)
    found = "local"
    if situation.is_exact:
        reason = "the run repeats exactly"
    elif draft.value("runtime.kind") == "inprocess":
        reason = "one process"
    elif rules_run.joins_cluster(situation, draft):
        reason = "an inference host serves one machine"
    elif costs.gpu_act_s is None:
        reason = f"a decision takes {number_text(local_us, 2)} us on a core, and no GPU would save enough of that"
    else:
        central_us = 1e6 * (costs.gpu_act_s * hosts + HAND_OVER_S / rows)
        found = "central" if local_us > CENTRAL_GAIN * central_us else "local"
        central = number_text(central_us, 2)
        reason = f"a decision takes {number_text(local_us, 2)} us on a core, and {central} us at an inference host"
    yield AutoValue("actors.inference", found, reason)


def workers(situation: Situation, draft: Draft) -> Iterator[AutoValue]:
    """Child processes for a game that reaches into its process, and for cores that no host uses where steps are dear.

    Measured times vary, and nearly equal games must not be treated otherwise: within `NEAR` of the cost that pays, it
    counts whose the game is. A published one is known to be tame.
    """
    game, num_envs = situation.game, draft.whole("actors.num_envs")
    in_process = draft.value("runtime.kind") == "inprocess"
    hosts = 1 if in_process else draft.whole("runtime.actor_hosts") + draft.whole("runtime.learner_hosts")
    hosts += int(draft.number("runtime.replay_hosts"))
    free = situation.cores - hosts + (1 if in_process else 0)
    step_s = num_envs * situation.costs.game_s
    is_own = game.spec.env_id.partition(":")[0] not in ADAPTERS and ":" in game.spec.env_id
    pays = step_s >= WORTH_HANDING_S * (1.0 / NEAR if is_own else NEAR)
    found, reason = 0, f"a step of all games takes {number_text(step_s, 2)} s, which is too short to hand over"
    if situation.is_exact:
        reason = "the run repeats exactly"
    elif draft.value("actors.games") == "device":
        reason = "games on the device take no other process"
    elif situation.budget.core_seconds is not None:
        reason = "they save time and no core-seconds"
    elif free < 2:
        reason = "the hosts use every core"
    elif pays:
        found, reason = min(free, num_envs), f"a step of all games takes {number_text(step_s, 2)} s"
    if game.liberties and not found and not situation.is_exact:
        found, reason = 1, f"the game changes what belongs to its process: {', '.join(game.liberties)}"
    yield AutoValue("env.workers", found, reason)


def splits(situation: Situation, draft: Draft) -> Iterator[AutoValue]:
    """Two parts that take turns where the games step in several child processes.

    For decisions of an inference host it is one part: with two, its batches are half as large.
    """
    found, reason = 1, "the games are stepped by their host"
    if situation.is_exact:
        reason = "the run repeats exactly"
    elif draft.whole("env.workers") > 1 and draft.whole("actors.num_envs") > 1:
        found, reason = 2, "one is decided while the processes of the other step its games"
    elif draft.value("actors.inference") == "central":
        reason = "the batches of the inference host are larger"
    yield AutoValue("actors.num_splits", found, reason)


RULES = (unroll_length, games_at_once, lease_steps)
LATE_RULES = (inference, workers, splits)
