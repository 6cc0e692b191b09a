"""Loads and tries every plug-in of a configuration before the run starts, so faults do not surface days later."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from league.agents.acting.kinds import acting_kinds as acting
from league.agents.acting.kinds.acting_kinds import ActingPlace, make_acting
from league.agents.acting.kinds.config import DEFAULT_ACTING, SEARCH
from league.agents.acting.search.config import game_problems
from league.agents.learner.algorithms.algorithms import BACKENDS
from league.agents.learner.algorithms.objective import learns_from, make_objective, needs_fresh
from league.agents.learner.build import group_problems, mode_problems
from league.agents.learner.config import DEFAULT_ALGORITHM, DEFAULT_ROW_SOURCE, LearnerConfig
from league.agents.learner.data.row_source_config import ROW_SOURCES, ReplayConfig
from league.agents.learner.pipeline_config import PipelineConfig
from league.agents.learner.replicas.replica_group import ProcessReplicas
from league.agents.learner.replicas.update_mode import make_update_mode
from league.agents.learner.step.optimizers import try_optimizer
from league.agents.learner.trial import try_evolving, try_network, try_objective, try_row_source
from league.agents.nets.network import Network, build_network
from league.agents.replay.row_bytes import RowLayout
from league.agents.unroll.unroll import UnrollSpec
from league.config.player_settings import has_own, settings_of
from league.config.run_config import RunConfig
from league.core import plugin_calls
from league.core.directives import view_of
from league.core.gates.gates import Trial
from league.core.league import apply, decide
from league.core.matchmaking.roles import MatchmakingView
from league.core.metagame.solvers import solved
from league.core.pbt.pbt_selection import SelectionTrial, donor_of
from league.core.state import commands
from league.core.state.built_ins import ComponentOptionsError, dotted
from league.core.state.plugin_answers import is_own
from league.core.state.population_config import PbtConfig
from league.core.state.records import bot_name
from league.core.state.state import LeagueState
from league.envs.bots import Copyable, make_bot
from league.envs.component_choice import given_options, kind_of
from league.envs.plugin_options import OptionsError, make_options, options_argument
from league.envs.plugins import first_line, resolve
from league.envs.protocol import EnvConfig, EnvError, EnvSpec
from league.envs.registry import make
from league.errors import ConfigError
from league.store.disk_space import disk_space
from league.wording import counted, size_text

DIGEST = "0" * 64


def require_working_names(config: RunConfig, spec: EnvSpec, *, source: str, folder: Path | None = None) -> None:
    """Refuse a configuration of which a name cannot be loaded, or fails in a trial.

    Args:
      spec: of its game. source: of the configuration, for the message.
      folder: of a run that is to begin; None for one that has its files.
    Raises:
      ConfigError: with every problem at once.
    """
    plain = sum(group.count for group in config.league.players if not has_own(group))
    problems = [*_network_problems(config, spec), *_bot_problems(config), *_row_source_problems(config, spec)]
    kept = [_kept_rows(config, spec, players=plain, place="")] if plain else []
    for index, group in enumerate(config.league.players):
        if has_own(group):
            own, place = settings_of(config, group.player_id(0)).in_place_of(config), f"league.players.{index}."
            found = [*_network_problems(own, spec), *_row_source_problems(own, spec)]
            problems += [f"{place}{problem}" for problem in found if problem not in problems]
            kept.append(_kept_rows(own, spec, players=group.count, place=place))
    problems += _room_problems([rows for rows in kept if rows], folder)
    problems += [*_generator_problems(config)]
    problems += [*_league_problems(config, spec)] if spec.num_teams > 1 else []
    if config.league.pbt.selection:
        problems += _tried("league.pbt.selection", lambda: _try_selection(config.league.pbt))
    solver, sides = config.league.meta_game.solver, spec.num_teams
    if sides > 1:
        win_rates = np.array([[0.5, 0.7], [0.3, 0.5]])
        attempt = functools.partial(solved, solver, win_rates, num_sides=sides)
        problems += _tried("league.meta_game.solver", attempt)
    if problems:
        raise ConfigError(source, problems)


def _network_problems(config: RunConfig, spec: EnvSpec) -> Iterator[str]:
    """Network, objective, backend and update mode, each made once."""
    made: list[Network] = []
    yield from _tried("network", lambda: made.append(build_network(spec, config.network, seed=0)))
    if made:
        learner, parts = config.learner, config.network
        own_parts = any(is_own(kind_of(part)) for part in (parts.encoder, parts.core, parts.head))
        if own_parts:
            found = _tried("network", lambda: try_network(made[0], spec, learner))
            yield from found
            made = [] if found else made
    if made:
        found = _tried("learner.algorithm", lambda: _try_objective(config, spec, made[0]))
        yield from found
        for setting in () if found else (acting.PLACE, acting.FROZEN_PLACE):
            yield from _tried(setting, functools.partial(_try_acting, config, spec, made[0], setting))
    yield from (f"learner.{problem}" for problem in group_problems(spec, config.learner))
    if made:
        size = sum(parameter.numel() for parameter in made[0].parameters())
        yield from (f"learner.{problem}" for problem in mode_problems(config.learner, size=size))
    pipeline = config.learner.pipeline
    yield from _tried("learner.optimizer", lambda: try_optimizer(config.learner))
    yield from _tried("learner.row_source", lambda: _try_row_source(config.learner, spec))
    yield from _tried("learner.pipeline.backend", lambda: _try_backend(pipeline))
    yield from _tried(
        "learner.pipeline.update_mode", lambda: make_update_mode(pipeline.update_mode, ProcessReplicas(None))
    )


def _try_objective(config: RunConfig, spec: EnvSpec, network: Network) -> None:
    if config.learner.evolves:
        try_evolving(network, config.learner)
        return
    objective = make_objective(config.learner, network.head)
    if objective.epochs < 1:
        raise ValueError(f"its epochs are {objective.epochs}, not at least 1")
    if is_own(kind_of(config.learner.algorithm)):
        try_objective(network, spec, config.learner)


def _try_acting(config: RunConfig, spec: EnvSpec, network: Network, setting: str) -> None:
    choice = config.actors.acting if setting == acting.PLACE else config.actors.acting_frozen
    acting.try_acting(choice, spec, network, setting=setting)
    if setting == acting.PLACE:
        recorded = acting.make_acting(choice, spec, acting.ActingPlace()).recorded
        missing = [name for name in learns_from(config.learner) if name not in recorded]
        if missing:
            raise ValueError(
                f"{kind_of(choice, DEFAULT_ACTING)} does not record {' and '.join(missing)}, from which the algorithm "
                f"{kind_of(config.learner.algorithm)} learns; set actors.acting: {{kind: search}}"
            )
    if kind_of(choice, DEFAULT_ACTING) == SEARCH:
        _try_search(config.env)


def _generator_problems(config: RunConfig) -> Iterator[str]:
    """Frozen policies that make the games of a player and do not record what it learns from."""
    for group in config.league.players:
        own = settings_of(config, group.player_id(0))
        kinds = [kind_of(choice, DEFAULT_ACTING) for choice in (own.actors.acting, own.actors.acting_frozen)]
        if group.matchmaker_name == "generator" and kinds[0] != kinds[1]:
            yield (
                f"actors.acting_frozen: {kinds[1]} would make the games of {group.prefix}, whose matchmaker is "
                f"generator and which acts by {kinds[0]}; give it what actors.acting has"
            )


def _try_search(env: EnvConfig) -> None:
    """Refuse games that cannot be searched, as far as the first turn of one shows it."""
    with closing(make(replace(env, workers=0), num_envs=1)) as game:
        alternate = len(game.reset(0).env_index) == 1
        for problem in game_problems(game.spec, can_copy=isinstance(game, Copyable), turns_alternate=alternate):
            raise ValueError(problem)


def _try_backend(pipeline: PipelineConfig) -> None:
    build = resolve(pipeline.backend_name, BACKENDS, what="backend")
    options_argument(build, pipeline.backend, place="learner.pipeline.backend")


def _try_row_source(learner: LearnerConfig, spec: EnvSpec) -> None:
    """One of the user's own takes a chunk in; the registered ones would only take memory."""
    kind = kind_of(learner.row_source, DEFAULT_ROW_SOURCE)
    build = resolve(kind, ROW_SOURCES, what="learner.row_source")
    options_argument(build, learner.row_source, place="learner.row_source")
    if is_own(kind):
        try_row_source(spec, learner)


def _bot_problems(config: RunConfig) -> Iterator[str]:
    league = config.league.bots
    for name in dict.fromkeys((*config.evaluation.bots, *map(bot_name, league))):
        try:
            make_bot(name, seed=0)
        except EnvError as error:
            yield str(error)


def _league_problems(config: RunConfig, spec: EnvSpec) -> Iterator[str]:
    """Matchmakers and gates in a pretended league in which every player has its first snapshot."""
    try:
        state = _pretended(config, spec)
    except ValueError as error:
        yield f"league: {error}"
        return
    seen = set()
    for name, player in state.players.items():
        if player.group not in seen:
            seen.add(player.group)
            view, place = view_of(state, name), f"league.players.{player.group}"
            yield from _tried(f"{place}.matchmaker", functools.partial(_try_matchmaker, view))
            yield from _tried(f"{place}.gate.test", functools.partial(_try_gate, view))


def _try_matchmaker(view: MatchmakingView) -> None:
    plugin_calls.opponents(view, np.random.default_rng(0))
    plugin_calls.gate_opponents(view)


def _try_gate(view: MatchmakingView) -> None:
    """Both at its least and at its most steps."""
    gate, names = view.config.gate, view.population.names
    opponents = view.population.snapshots()
    for steps in (gate.min_steps, gate.timeout_steps):
        plugin_calls.verdict(Trial(steps, opponents, names, view.posterior.take(opponents), gate))


def _try_selection(pbt: PbtConfig) -> None:
    scores = np.array([0.0, 1.0])
    trial = SelectionTrial(("a-0", "a-1"), 0, scores, np.ones(2), is_rating=True, config=pbt)
    donor_of(trial, np.random.default_rng(0))


def _tried(place: str, attempt: Callable[[], object]) -> list[str]:
    """The problems with a plug-in name or its options, found by loading and trying it."""
    try:
        attempt()
    except OptionsError as error:
        return list(error.problems)
    except ComponentOptionsError as error:
        return [f"{dotted(path)}: {text}" for path, text in error.under(place).problems]
    except ValueError as error:
        return [f"{place}: {first_line(error)}"]
    except Exception as error:  # boundary: code of others may stand behind any name
        return [f"{place}: it raised {type(error).__name__}: {first_line(error)}"]
    return []


def _pretended(config: RunConfig, spec: EnvSpec) -> LeagueState:
    """The league just after its start, the first snapshot of every player in it."""
    state, rng = LeagueState(), np.random.default_rng(0)

    def do(command: commands.Command) -> None:
        for event in decide(state, command, rng):
            apply(state, event)

    do(commands.CreateLeague(0, spec.num_seats, spec.teams, config.league))
    do(commands.StartRun())
    for directive in list(state.directives.values()):
        do(commands.ConfirmSnapshot(directive.directive_id, DIGEST, 0, 0))
    return state


def _row_source_problems(config: RunConfig, spec: EnvSpec) -> Iterator[str]:
    """Conflicts of a replay with the algorithm and the game, one sentence each."""
    if kind_of(config.learner.row_source) != "replay":
        return
    with contextlib.suppress(ValueError):  # a part of the configuration cannot be made, which is said elsewhere
        yield from _replay_problems(config, spec)


def _replay_problems(config: RunConfig, spec: EnvSpec) -> Iterator[str]:
    learner, options = config.learner, _replay_options(config)
    if needs_fresh(learner):
        yield (
            "learner.row_source: replay samples old decisions again, and "
            f"{kind_of(learner.algorithm, DEFAULT_ALGORITHM)} learns from fresh ones alone; "
            "use fifo, or an algorithm for old decisions"
        )
    if options.capacity < learner.batch_rows:
        yield (
            f"learner.row_source.capacity: {options.capacity} rows are less than learner.batch_rows "
            f"{learner.batch_rows}"
        )
    hosts = max(config.runtime.replay_hosts, 1)
    share = options.share(hosts).capacity
    if share < learner.batch_rows <= options.capacity:
        yield (
            f"runtime.replay_hosts: {options.capacity} rows over {hosts} hosts are {share} for each, less than "
            f"learner.batch_rows {learner.batch_rows}; use fewer hosts, or a larger learner.row_source.capacity"
        )
    if options.initial == "actor" and "values" not in _recorded(config, spec):
        yield (
            f"learner.row_source.initial: actor needs the values of the acting policy, and actors.acting "
            f"{kind_of(config.actors.acting)} does not record them; use max"
        )


def _replay_options(config: RunConfig) -> ReplayConfig:
    given = given_options(config.learner.row_source)
    options: ReplayConfig = make_options(ReplayConfig, given, place="learner.row_source")
    return options


def _recorded(config: RunConfig, spec: EnvSpec) -> tuple[str, ...]:
    return make_acting(config.actors.acting, spec, ActingPlace()).recorded


@dataclass(frozen=True)
class _KeptRows:
    """The rows that the replays of a group keep at most; text: with their key and arithmetic."""

    num_bytes: int
    in_file: bool
    text: str


def _kept_rows(config: RunConfig, spec: EnvSpec, *, players: int, place: str) -> _KeptRows | None:
    """Of players with these settings; None where they have no replay, or one that cannot be made.

    Args:
      place: prefix of the keys of settings of their own.
    """
    if kind_of(config.learner.row_source) != "replay":
        return None
    try:
        options, network = _replay_options(config), build_network(spec, config.network, seed=0)
        unrolls = UnrollSpec.of(
            spec, network, unroll_length=config.learner.unroll_length, recorded=_recorded(config, spec)
        )
    except ValueError:
        return None
    row_bytes = RowLayout(unrolls).row_bytes
    num_bytes = options.capacity * row_bytes * players
    text = (
        f"{place}learner.row_source.capacity: {options.capacity:,} rows of {row_bytes:,} bytes for "
        f"{counted(players, 'player')} are {size_text(num_bytes)}"
    )
    return _KeptRows(num_bytes, options.storage == "file", text)


def _room_problems(kept: list[_KeptRows], folder: Path | None) -> Iterator[str]:
    """Replays of all groups together that have no place in memory, or on the disk of a run that is to begin."""
    in_memory, in_files = ([rows for rows in kept if rows.in_file is in_file] for in_file in (False, True))
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if sum(rows.num_bytes for rows in in_memory) > memory:
        yield f"{_sum_text(in_memory)}, and this machine has {size_text(memory)} of memory; use storage: file"
    if in_files and folder is not None:
        free, _ = disk_space(next(parent for parent in folder.parents if parent.exists()))
        if sum(rows.num_bytes for rows in in_files) > free:
            yield f"{_sum_text(in_files)}, and {size_text(free)} are free on the disk of {folder}"


def _sum_text(kept: list[_KeptRows]) -> str:
    """The replays by size, and their sum where they are several."""
    texts = [rows.text for rows in sorted(kept, key=lambda rows: -rows.num_bytes)]
    total = size_text(sum(rows.num_bytes for rows in kept))
    return texts[0] if len(texts) == 1 else f"{'; '.join(texts)}; together {total}"
