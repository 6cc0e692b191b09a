"""Checks beyond types: limits of single values, and settings that contradict each other.

Each sentence starts with the dotted path and carries the arithmetic.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from league.agents.acting.kinds.config import DEFAULT_ACTING, SEARCH
from league.agents.device_games.device_games import require_device_form
from league.agents.learner.config import DEFAULT_ROW_SOURCE
from league.agents.learner.evolution.setting_checks import evolution_problems
from league.agents.learner.replicas.config import replica_problems
from league.agents.learner.replicas.free_config import free_problems
from league.config.deadlines import Deadlines, deadlines_of
from league.config.ray_address import AUTO, OWN, is_ray_address
from league.core.state.records import BOT_PREFIX, bot_name, is_bot
from league.envs.bots import is_own_bot, make_bot
from league.envs.component_choice import kind_of
from league.envs.protocol import MAX_DEADLINE_S, EnvError
from league.envs.registry import BUILT_IN, unknown_env
from league.envs.text.number_text import number_text
from league.envs.workers.worker_env import MAX_WORKERS
from league.errors import InvalidName
from league.store.storage import checked_name
from league.wording import counted

if TYPE_CHECKING:
    from league.agents.learner.config import LearnerConfig
    from league.agents.nets.config import NetworkConfig
    from league.config.actor_config import ActorConfig
    from league.config.run_config import (
        BudgetConfig,
        EvaluationConfig,
        ProbesConfig,
        RetentionConfig,
        RunConfig,
        RuntimeConfig,
    )
    from league.core.state.league_config import LeagueConfig
    from league.envs.protocol import EnvConfig

MAX_NUM_ENVS = 1 << 20
MAX_HOSTS = 1 << 16
MAX_PROBES_SHARE = 0.5
MAX_SECONDS, MAX_CORE_SECONDS, MAX_STEPS = 1e10, 1e14, 1e15
"""Of a budget: three centuries, on ten thousand cores, and what a thousand of them play in ten years."""
MAX_SIZE = 1e9
"""Of a limit on disk space, in GiB or MiB."""


def section_problems(section: str, value: object) -> Iterator[str]:
    """Problems within one section whose values have the right types."""
    yield from _unfit_numbers(value, section)
    check = _CHECKS.get(section)
    if check is not None:
        for problem in check(value):
            yield f"{section}.{problem}" if dataclasses.is_dataclass(value) else problem


def joint_problems(config: RunConfig) -> Iterator[str]:
    """Problems between sections."""
    yield from config.trainer.problems(config.league)
    yield from learner_conflicts(config.learner, config.network)
    if config.learner.has_teacher != bool(config.teacher.source):
        source, costs = config.teacher.source, (config.learner.teacher_cost, config.learner.teacher_cost_end)
        yield (
            f"teacher.source: {source!r} does not go with learner.teacher_cost {costs[0]:g} and teacher_cost_end "
            f"{costs[1]:g}; give a teacher and a cost, or neither"
        )
    if config.env.workers not in ("auto", 0):
        yield from _bots_that_copy(config.league)
    if config.actors.games == "device":
        yield from _device_problems(config)
    for problem in wait_problems(config.actors, config.learner):
        yield f"learner.{problem}"
    yield from _acting_problems(config.actors)
    yield from search_problems(config.actors, config.network, config.env)
    yield from acting_conflicts(config.actors, config.learner)
    for problem in run_deadlines(config).problems():
        yield f"runtime.{problem}"
    runtime, groups = config.runtime, config.league.players
    players = sum(group.count for group in groups)
    idle = runtime.learner_hosts - players
    if idle > 0:
        yield (
            f"runtime.learner_hosts: {counted(runtime.learner_hosts, 'host')} for {counted(players, 'player')}, "
            f"{idle} would have nothing to "
            f"do; use {players}, or raise the count of league.players"
        )


def _bots_that_copy(league: LeagueConfig) -> Iterator[str]:
    """Scripted opponents that try moves out on copies of the games, which child processes do not give."""
    opponents = [(f"fixed_opponents.{index}", fixed.policy) for index, fixed in enumerate(league.fixed_opponents)]
    opponents += [(f"ratings.bots.{index}", bot) for index, bot in enumerate(league.ratings.bots)]
    for place, policy in opponents:
        bot = policy.removeprefix(BOT_PREFIX)
        if policy.startswith(BOT_PREFIX) and bot.partition(":")[0] in ("tactical", "minimax", "mcts"):
            yield (
                f"league.{place}: {bot} tries moves out on copies, and games in child processes cannot be copied; use "
                "bot:random, or env.workers: 0"
            )


def learner_conflicts(learner: LearnerConfig, network: NetworkConfig) -> Iterator[str]:
    """Problems between settings of one learner, and of it with its network."""
    found = learner.problems_with(network.value_output)
    if not learner.evolves:  # which has no replicas
        mode, replicas = learner.pipeline.update_mode, learner.pipeline.replicas
        found += replica_problems(mode, replicas=replicas, value_normalisation=learner.value_normalisation)
        found += free_problems(learner)
    yield from (f"learner.{problem}" for problem in found)


def wait_problems(actors: ActorConfig, learner: LearnerConfig) -> Iterator[str]:
    """Settings of a learner for whose updates no actor host can wait."""
    source = kind_of(learner.row_source, DEFAULT_ROW_SOURCE)
    if actors.wait_for_update and source != DEFAULT_ROW_SOURCE:
        yield (
            f"row_source: rows of {source} belong to no one update that actors.wait_for_update could wait for; use "
            f"{DEFAULT_ROW_SOURCE}, or wait_for_update: false"
        )
    if actors.wait_for_update and learner.pipeline.is_free:
        mode, replicas = kind_of(learner.pipeline.update_mode), learner.pipeline.replicas
        yield (
            f"pipeline.update_mode: {replicas} replicas under {mode} run on clocks of their own, and "
            "actors.wait_for_update waits for the end of an update; use all_reduce, or wait_for_update: false"
        )


def acting_conflicts(actors: ActorConfig, learner: LearnerConfig) -> Iterator[str]:
    """Kinds of acting that do not go with what is learnt, and the other way round."""
    acting, frozen = (kind_of(choice, DEFAULT_ACTING) for choice in (actors.acting, actors.acting_frozen))
    splits, games = actors.num_splits, actors.num_envs
    yield from evolution_problems(learner, acting=acting, acting_frozen=frozen, num_splits=splits, num_envs=games)


def _acting_problems(actors: ActorConfig) -> Iterator[str]:
    """Kinds of acting of which a process that decides for others, or a device, knows nothing."""
    for name in ("acting", "acting_frozen"):
        kind = kind_of(getattr(actors, name), DEFAULT_ACTING)
        if kind == DEFAULT_ACTING:
            continue
        if actors.inference != "local":
            yield f"actors.inference: an inference host samples, and actors.{name} is {kind}; use inference: local"
        if actors.games == "device":
            yield f"actors.games: policies on the device sample, and actors.{name} is {kind}; use games: host"


def search_problems(actors: ActorConfig, network: NetworkConfig, env: EnvConfig) -> Iterator[str]:
    """Settings with which nothing can be searched."""
    core = kind_of(network.core)
    for name in ("acting", "acting_frozen"):
        if kind_of(getattr(actors, name), DEFAULT_ACTING) != SEARCH:
            continue
        if env.workers not in ("auto", 0):
            yield (
                f"actors.{name}: search plays copies of the games, and env.workers keeps these in {env.workers} child "
                "processes, where they cannot be copied; set env.workers: 0"
            )
        if core != "none":
            yield f"actors.{name}: search tries many games, and network.core {core} remembers one; set it to none"


def _device_problems(config: RunConfig) -> Iterator[str]:
    """Settings that do not go with games on the learner's device."""
    try:
        require_device_form(config.env)
    except EnvError as error:
        yield f"actors.games: {error}; use games: host"
    why = "games on the device are played in the learner's process"
    if config.runtime.kind != "inprocess":
        yield f"runtime.kind: {why}, which kind: {config.runtime.kind} does not share; use kind: inprocess"
    if config.actors.inference != "local":
        yield f"actors.inference: {why}, where policies decide too; use inference: local"
    if config.actors.num_splits > 1:
        yield f"actors.num_splits: {why}, and nothing waits for them; use num_splits: 1"
    if config.learner.per_episode:
        yield "learner.per_episode: games on the device record unrolls of equal length; use per_episode: false"
    if config.env.workers not in ("auto", 0):
        yield f"env.workers: {why}, and not in {config.env.workers} others; use workers: 0"
    if config.learner.pipeline.num_workers:
        count = config.learner.pipeline.num_workers
        yield f"learner.pipeline: {why}, and its rows do not travel to {count} workers; use stages: 1 and replicas: 1"


def run_deadlines(config: RunConfig) -> Deadlines:
    """The table of deadlines of a run."""
    return deadlines_of(
        lease_deadline_s=config.runtime.lease_deadline_s,
        progress_deadline_s=config.runtime.progress_deadline_s,
        start_timeout_s=config.learner.pipeline.start_timeout_s,
        stage_timeout_s=config.learner.pipeline.stage_timeout_s,
    )


def _unfit_numbers(value: object, path: str) -> Iterator[str]:
    """Numbers that are not finite, and whole ones beyond 63 bits, but for those that an env takes as options."""
    if isinstance(value, float) and not math.isfinite(value):
        yield f"{path}: must be a finite number"
    elif isinstance(value, int) and abs(value) >= 2**63 and path != "seed" and not path.startswith("env.kwargs"):
        yield f"{path}: {value} must be less than 2**63"
    elif dataclasses.is_dataclass(value):
        for item in dataclasses.fields(value):
            yield from _unfit_numbers(getattr(value, item.name), f"{path}.{item.name}")
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _unfit_numbers(item, f"{path}.{key}")
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _unfit_numbers(item, f"{path}.{index}")


def _name_problems(name: str) -> Iterator[str]:
    try:
        checked_name(name, what="name:")
    except InvalidName as error:
        yield str(error)


def _seed_problems(seed: int) -> Iterator[str]:
    if not 0 <= seed < 2**63:
        yield f"seed: {seed} is not in [0, 2**63)"


def _learner_problems(learner: LearnerConfig) -> Iterator[str]:
    yield from learner.problems()


def _at_least(value: object, **minima: float) -> Iterator[str]:
    for name, minimum in minima.items():
        found = getattr(value, name)
        if found is not None and found < minimum:
            yield f"{name}: {found} must be at least {number_text(minimum, 6)}"


def _at_most(value: object, **maxima: float) -> Iterator[str]:
    for name, maximum in maxima.items():
        found = getattr(value, name)
        if found is not None and maximum < found < math.inf:
            yield f"{name}: {found} must be at most {number_text(maximum, 6)}"


def _actors_problems(actors: ActorConfig) -> Iterator[str]:
    yield from _at_least(actors, num_envs=1, num_splits=1)
    yield from _at_most(actors, num_splits=min(2, actors.num_envs))
    if actors.wait_for_update and actors.num_splits > 1:
        yield (
            f"wait_for_update: {actors.num_splits} parts of the games take turns, so that one is in the middle of its "
            "unrolls when those of the other are learnt; use num_splits: 1"
        )
    if actors.num_envs > MAX_NUM_ENVS:
        yield f"num_envs: {actors.num_envs} must be at most {MAX_NUM_ENVS}; run more games on more actor hosts"


def _runtime_problems(runtime: RuntimeConfig) -> Iterator[str]:
    yield from _at_least(
        runtime,
        actor_hosts=0,
        learner_hosts=1,
        replay_hosts=0,
        object_store_mb=80,
        lease_deadline_s=1,
        progress_deadline_s=1,
        checkpoint_updates=1,
        checkpoint_seconds=1,
        snapshots_per_budget=0,
        expected_decisions=0,
        snapshot_seconds=1,
    )
    yield from _at_most(
        runtime,
        actor_hosts=MAX_HOSTS,
        learner_hosts=MAX_HOSTS,
        replay_hosts=MAX_HOSTS,
        lease_deadline_s=MAX_DEADLINE_S,
        progress_deadline_s=MAX_DEADLINE_S,
    )
    if runtime.kind == "inprocess":
        if (runtime.actor_hosts, runtime.learner_hosts) != (1, 1):
            yield (
                f"kind: inprocess is one process with 1 actor host and 1 learner host, not {runtime.actor_hosts} + "
                f"{runtime.learner_hosts}; use kind: ray for more"
            )
        if runtime.replay_hosts > 0:
            yield f"replay_hosts: {runtime.replay_hosts} are actors of Ray; use 0 in one process, or kind: ray"
        if runtime.address not in (AUTO, OWN):
            yield f"address: {runtime.address!r} is a Ray cluster, which kind: inprocess does not use; use kind: ray"
    if not is_ray_address(runtime.address):
        yield f"address: {runtime.address!r} is none of auto, local, host:port and ray://host:port"


def _budget_problems(budget: BudgetConfig) -> Iterator[str]:
    for item in dataclasses.fields(budget):
        limit = getattr(budget, item.name)
        if limit is not None and limit <= 0:
            yield f"{item.name}: {limit} must be greater than 0, or null for no limit"
    yield from _at_most(budget, seconds=MAX_SECONDS, core_seconds=MAX_CORE_SECONDS, env_steps=MAX_STEPS)


def _evaluation_problems(evaluation: EvaluationConfig) -> Iterator[str]:
    yield from _at_least(evaluation, games=2)
    if evaluation.games % 2:
        yield f"games: {evaluation.games} cannot be half from either seat; use {evaluation.games + 1}"
    yield from _bot_problems("bots", evaluation.bots)


def _probes_problems(probes: ProbesConfig) -> Iterator[str]:
    if not 0.0 < probes.max_share <= MAX_PROBES_SHARE:
        yield f"max_share: {probes.max_share} is not in (0, {MAX_PROBES_SHARE:g}]; set probes.kinds to [] for no probes"
    yield from _at_least(probes, deadline_s=1)
    yield from _at_most(probes, deadline_s=MAX_DEADLINE_S)


def _league_problems(league: LeagueConfig) -> Iterator[str]:
    yield from _bot_problems("ratings.bots", tuple(map(bot_name, league.ratings.bots)))
    for index, opponent in enumerate(league.fixed_opponents):
        if is_bot(opponent.policy):
            yield from _bot_problem(f"fixed_opponents.{index}", bot_name(opponent.policy))
        elif not opponent.source:
            yield (
                f"fixed_opponents.{index}: {opponent.policy} has no source; give the run folder that it comes from, as "
                f"{{policy: {opponent.policy!r}, source: runs/NAME, player: best}}"
            )
    lent = [opponent.policy for opponent in league.fixed_opponents if not is_bot(opponent.policy)]
    for number, group in enumerate(league.players):
        if group.starts_from not in ("", *lent):
            yield (
                f"players.{number}.starts_from: {group.starts_from!r} is no imported policy of fixed_opponents; give "
                "one, as {policy: 'imported:base', source: runs/NAME, probability: 0}"
            )
        if group.matchmaker_name == "fixed_opponents" and not league.fixed_opponents_of(group.role):
            yield (
                f"fixed_opponents: {group.role} meets only its fixed opponents, and there is none; give one, as "
                "{policy: 'imported:prey', source: runs/NAME, probability: 1.0}"
            )
        if group.matchmaker_name == "generator" and not league.ratings.step_fraction:
            yield (
                f"ratings.step_fraction: 0 leaves no games that judge the candidates of {group.prefix}, whose "
                "matchmaker is generator; set it to 0.1, or use matchmaker: self_play"
            )


def _env_problems(env: EnvConfig) -> Iterator[str]:
    yield from _at_least(env, reset_deadline_s=0.1, step_deadline_s=0.1, worker_memory_mib=64)
    yield from _at_most(env, reset_deadline_s=MAX_DEADLINE_S, step_deadline_s=MAX_DEADLINE_S)
    if env.workers != "auto" and not 0 <= env.workers <= MAX_WORKERS:
        yield f"workers: {env.workers} must be auto or in [0, {MAX_WORKERS}]"
    if ":" not in env.id and env.id not in BUILT_IN:
        yield f"id: {unknown_env(env.id)}"


def _bot_problems(path: str, bots: tuple[str, ...]) -> Iterator[str]:
    for index, bot in enumerate(bots):
        yield from _bot_problem(f"{path}.{index}", bot)


def _bot_problem(path: str, bot: str) -> Iterator[str]:
    if is_own_bot(bot):  # tried where it may be loaded, see `plugin_checks`
        return
    try:
        make_bot(bot, seed=0)
    except EnvError as error:
        yield f"{path}: {error}"


def _retention_problems(retention: RetentionConfig) -> Iterator[str]:
    if retention.snapshots < 2:
        yield f"snapshots: {retention.snapshots} must be at least 2"
    if retention.snapshots_gib <= 0.0:
        yield f"snapshots_gib: {retention.snapshots_gib} must be above 0"
    for name in ("metrics_mib", "spool_mib"):
        if getattr(retention, name) < 0.1:
            yield f"{name}: {getattr(retention, name)} must be at least 0.1"
    yield from _at_most(retention, snapshots_gib=MAX_SIZE, metrics_mib=MAX_SIZE, spool_mib=MAX_SIZE)
    if retention.floor_gib != "auto" and retention.floor_gib < 0.0:
        yield f"floor_gib: {retention.floor_gib} must be auto or at least 0"


_CHECKS: dict[str, Callable[..., Iterator[str]]] = {
    "name": _name_problems,
    "env": _env_problems,
    "seed": _seed_problems,
    "learner": _learner_problems,
    "actors": _actors_problems,
    "runtime": _runtime_problems,
    "budget": _budget_problems,
    "evaluation": _evaluation_problems,
    "probes": _probes_problems,
    "league": _league_problems,
    "wandb": lambda config: config.problems(),
    "retention": _retention_problems,
    "control": lambda config: iter(config.problems()),
}
