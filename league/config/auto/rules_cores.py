"""Rules of the cores and the memory of one machine: threads of the learner, actor hosts, and what they share."""

from __future__ import annotations

import math
from collections.abc import Iterator

from league.config.auto import rules_run
from league.config.auto.draft import ALGORITHM, AutoValue, Draft
from league.config.auto.rules_actors import arenas, game_mib
from league.config.auto.situation import Situation
from league.envs.text.number_text import number_text
from league.wording import counted

PART_CALLS = 6.0
"""Fixed costs of an update that the decisions of each thread must be worth, as estimated. In two parts an update of
2,048 decisions of Connect Four ends after 0.98 of its time with the default network. With hidden layers of 256 and 512
it ends after 0.75 and 0.56, with 8,192 decisions after 0.66. While a part is short its threads wait for Python's
lock."""
MARGIN = 5.0
"""Actor hosts over those that the learner keeps up with by the estimate: nominal costs of learning are up to so many
times too high beside the measured ones of a game. More hosts than needed cost memory and policy lag, and no time."""
HOST_MIB = 250.0
"""Memory of a host beside its games, see benchmarks/figures/throughput.md."""
MEMORY_SHARE = 0.5
"""Of this machine's memory: all hosts of a run."""
STORE_SHARE = 0.25
"""Of this machine's memory: the object store."""
STORE_MIB = 256
"""The object store of a run whatever its network."""
WRITTEN_AND_SENT = 2
"""Weights of each player in the object store that no actor host holds yet."""

THREADS, ACTOR_HOSTS, STORE = "learner.pipeline.threads", "runtime.actor_hosts", "runtime.object_store_mb"
ALONE = {
    "learner.pipeline.backend": "auto",
    "learner.pipeline.stages": 1,
    "learner.pipeline.replicas": 1,
    "learner.microbatches": 1,
    "learner.compile_mode": "none",
}
"""Settings beside which a learner can have several threads."""


def learner_threads(situation: Situation, draft: Draft) -> Iterator[AutoValue]:
    """A thread for each core that learning wants, as far as a batch can be cut.

    Where a decision costs `a` to make and `u` to learn from, learning wants u / (a + u) of the cores.
    """
    if draft.value("runtime.kind") != "ray":
        yield AutoValue(THREADS, 1, "one process acts and learns in turns")
    elif draft.has(ACTOR_HOSTS) and draft.number(ACTOR_HOSTS) == 0:
        yield AutoValue(THREADS, 1, "on a cluster other cores of its machine act")
    elif situation.network.learns_on_gpu:
        yield AutoValue(THREADS, 1, "it learns on a GPU")
    elif key := next((key for key, value in ALONE.items() if draft.value(key) != value), ""):
        yield AutoValue(THREADS, 1, f"{key} is set")
    else:
        making, learning = _costs(situation, draft)
        wanted = situation.cores * learning / (making + learning)
        most = int(
            decisions_of_update(draft) * situation.network.learn_s / (PART_CALLS * situation.network.update_call_s)
        )
        reason = f"learning needs {wanted:.1f} of {situation.cores} cores"
        if most < wanted:
            reason += f", and an update of {decisions_of_update(draft):,} decisions has work for {max(most, 1)}"
        yield AutoValue(THREADS, _divisor(draft.whole("learner.batch_rows"), wanted, most, situation.cores), reason)


def actor_hosts(situation: Situation, draft: Draft) -> Iterator[AutoValue]:
    """One for each core beside the learner's, as far as the learner keeps up with them and memory lasts."""
    if draft.value("runtime.kind") != "ray":
        return
    learners = draft.whole("runtime.learner_hosts")
    replays = int(draft.number("runtime.replay_hosts"))
    free = max(situation.cores - learners - replays, 1)
    others = f", and {counted(replays, 'host')} for replays" if replays else ""
    limits = {f"{counted(situation.cores, 'core')}, one of them learns{others}": float(free)}
    games_mib = arenas(draft) * draft.whole("actors.num_envs") * game_mib(situation, draft)
    for_actors = MEMORY_SHARE * situation.memory_mib - (learners + replays) * HOST_MIB
    limits[f"each host takes {HOST_MIB + games_mib:,.0f} MiB of memory"] = for_actors / (HOST_MIB + games_mib)
    if not situation.network.learns_on_gpu:
        making, _ = _costs(situation, draft)
        costs, threads, decisions = situation.network, draft.whole(THREADS), decisions_of_update(draft)
        update_s = epochs_of(draft) * (costs.update_call_s + decisions * costs.learn_s / threads)
        kept_up = learners * decisions * making / update_s
        limits[f"the learner keeps up with about {kept_up:.1f}"] = math.ceil(MARGIN * kept_up)
    reason, least = min(limits.items(), key=lambda item: item[1])
    yield AutoValue(ACTOR_HOSTS, max(int(least), 1), reason)


def object_store(situation: Situation, draft: Draft) -> Iterator[AutoValue]:
    """Room for what actor hosts hold of each learning player, and as much again for snapshots.

    Hosts take up new weights one after another, so that each may hold other ones. In a store that is too small, weights
    are written to disk and read again while all hosts wait.
    """
    if draft.value("runtime.kind") != "ray" or rules_run.joins_cluster(situation, draft):
        return
    hosts, weights_mib = draft.whole(ACTOR_HOSTS), situation.network.weights_mib
    wanted = 2.0 * draft.num_players() * (hosts + WRITTEN_AND_SENT) * weights_mib
    limits = {
        f"{counted(hosts, 'actor host')} may each hold other weights, of {number_text(weights_mib, 2)} MiB": wanted,
        f"at most {STORE_SHARE:.0%} of this machine's memory": STORE_SHARE * situation.memory_mib,
    }
    reason, least = min(limits.items(), key=lambda item: item[1])
    if least > STORE_MIB:
        yield AutoValue(STORE, math.ceil(least), reason)
    else:
        yield AutoValue(STORE, STORE_MIB, f"the weights take {number_text(weights_mib, 2)} MiB")


def _costs(situation: Situation, draft: Draft) -> tuple[float, float]:
    """Core-seconds to make one decision, and to learn from it."""
    making = situation.step_s(draft.whole("actors.num_envs"))
    return making, situation.learn_s(epochs=epochs_of(draft), batch=decisions_of_update(draft))


def decisions_of_update(draft: Draft) -> int:
    """Decisions of one update."""
    return draft.whole("learner.batch_rows") * draft.whole("learner.unroll_length")


def epochs_of(draft: Draft) -> int:
    """Times that a row is learnt from."""
    chosen = draft.value(f"{ALGORITHM}.epochs")
    return chosen if isinstance(chosen, int) else 1


def _divisor(rows: int, wanted: float, most: int, cores: int) -> int:
    """The least number of equal parts of some rows that is at least `wanted`, within bounds; else the most parts."""
    possible = [number for number in range(1, max(min(most, cores), 1) + 1) if rows % number == 0]
    return next((number for number in possible if number >= wanted), possible[-1])


RULES = (learner_threads, actor_hosts)
LATE_RULES = (object_store,)
