"""Founding a league, and the starts and stops of the daemon that runs it."""

from __future__ import annotations

import numpy as np

from league.core.marks import PARKED
from league.core.pbt.pbt import first_values
from league.core.scouting import is_counter, scout_of
from league.core.state.commands import (
    ChangeConfig,
    CreateLeague,
    ImportPolicy,
    NoteFork,
    NoteRewind,
    Refused,
    StartRun,
    StopRun,
)
from league.core.state.episodes import Episodes
from league.core.state.events import (
    ConfigChanged,
    DirectiveIssued,
    Event,
    LeagueCreated,
    LeagueForked,
    LeagueRewound,
    LeaseExpired,
    PlayerAdded,
    PolicyImported,
    RunStarted,
    RunStopped,
)
from league.core.state.payoff import Payoff
from league.core.state.population import FIXED_OPPONENT, PLAYER
from league.core.state.records import IMPORTED_PREFIX, INITIAL, Directive, DirectiveKind, SnapshotInfo
from league.core.state.state import LeagueState, PlayerState


def create_league(state: LeagueState, command: CreateLeague, rng: np.random.Generator) -> list[Event]:
    """Add every player, and issue the snapshot of its first weights, from which its resets start.

    Raises:
      Refused: there is a league already, or the seats do not fit.
    """
    if state.config is not None:
        raise Refused("the league is created already")
    if command.num_seats < 1 or len(command.teams) != command.num_seats:
        raise Refused(f"{command.num_seats} seats but teams {command.teams}")
    added = [
        PlayerAdded(
            player,
            config.role,
            group,
            config.step_weight,
            first_values(command.config.pbt, config, rng, is_first=number == 0),
        )
        for group, config in enumerate(command.config.players)
        for number, player in enumerate(config.player_ids)
    ]
    directives = [
        DirectiveIssued(Directive(state.next_directive_id + number, DirectiveKind.SNAPSHOT, event.player, INITIAL))
        for number, event in enumerate(added)
    ]
    created = LeagueCreated(
        command.seed,
        command.num_seats,
        command.teams,
        command.config,
        command.scoring,
        perfect_information=command.kind.information == "open",
        moves_at_once=command.kind.at_once,
        unknown_information=command.kind.information == "unknown",
    )
    return [created, *added, *directives]


def start_run(state: LeagueState, command: StartRun, rng: np.random.Generator) -> list[Event]:
    """Give every open lease up and count the token on, so that answers to an earlier run are refused."""
    return [*_expire_all(state, "the daemon was started again"), RunStarted(state.token + 1, carries_evidence=True)]


def stop_run(state: LeagueState, command: StopRun, rng: np.random.Generator) -> list[Event]:
    """Give every open lease up and stop.

    Raises:
      Refused: no run is active.
    """
    if not state.running:
        raise Refused("no run is active")
    return [*_expire_all(state, "the run was stopped"), RunStopped(state.token, command.reason)]


def import_policy(state: LeagueState, command: ImportPolicy, rng: np.random.Generator) -> list[Event]:
    """A policy from outside joins: no part of the league's past, it is met as a fixed opponent, and rated.

    Raises:
      Refused: its id is not "imported:NAME", or taken.
    """
    if not command.policy.startswith(IMPORTED_PREFIX) or len(command.policy) == len(IMPORTED_PREFIX):
        raise Refused(f"a policy from outside is called {IMPORTED_PREFIX}NAME, not {command.policy!r}")
    if command.policy in state.population.index:
        raise Refused(f"{command.policy} is in the league already")
    info = SnapshotInfo(command.policy, command.digest, "", "", None, max(command.version, 0), 0, "outside")
    return [PolicyImported(info)]


def note_fork(state: LeagueState, command: NoteFork, rng: np.random.Generator) -> list[Event]:
    """Write down where the league so far comes from.

    Raises:
      Refused: a player that is named is not there, or has nothing to continue from.
    """
    _check_lost(state, command.lost)
    return [LeagueForked(command.run, command.event, command.chain, command.lost)]


def note_rewind(state: LeagueState, command: NoteRewind, rng: np.random.Generator) -> list[Event]:
    """Write down what was set aside.

    Raises:
      Refused: as of `note_fork`, or the token is of an earlier start than the one that stays.
    """
    _check_lost(state, command.lost)
    if command.token < state.token:
        raise Refused(f"start {state.token} stays, so the last one cannot have been start {command.token}")
    return [
        LeagueRewound(
            command.event,
            command.chain,
            ended=command.ended,
            ended_chain=command.ended_chain,
            token=command.token,
            set_aside=command.set_aside,
            lost=command.lost,
        )
    ]


def change_config(state: LeagueState, command: ChangeConfig, rng: np.random.Generator) -> list[Event]:
    """Write down the configuration that the run has from here on."""
    return [ConfigChanged(command.text, command.changes, command.by)]


def apply_imported(state: LeagueState, event: PolicyImported) -> None:
    """The policy is in the population; players that start from it and have no weights yet descend from it."""
    snapshot = event.snapshot
    state.snapshots[snapshot.snapshot_id] = snapshot
    state.population.add(snapshot.snapshot_id, kind=FIXED_OPPONENT)
    state.rating_games.append(0)
    for player in state.players.values():
        if player.initial is None and state.config_of(player.name).starts_from == snapshot.snapshot_id:
            player.parent = snapshot.snapshot_id


def apply_forked(state: LeagueState, event: LeagueForked) -> None:
    """Players without their restart state continue from a snapshot."""
    _lose_checkpoints(state, event.lost)


def apply_rewound(state: LeagueState, event: LeagueRewound) -> None:
    """Token numbers continue: a late answer from before must not fit a later start."""
    state.token = event.token
    _lose_checkpoints(state, event.lost)


def apply_created(state: LeagueState, event: LeagueCreated) -> None:
    """Create the league; its bots join the population."""
    config = event.config
    state.config, state.seed = config, event.seed
    state.num_seats, state.teams, state.scoring = event.num_seats, event.teams, event.scoring
    state.kind = event.kind
    state.payoff = Payoff(
        num_seats=event.num_seats,
        half_life_steps=config.half_life_steps,
        prior_games=config.payoff.prior_games,
    )
    for bot in config.bots:
        state.population.add(bot, kind=FIXED_OPPONENT)
        state.rating_games.append(0)


def apply_added(state: LeagueState, event: PlayerAdded) -> None:
    """A player joins; a scout waits until it is due, unless the league begins with it as a counter."""
    policy = state.population.add(event.player, kind=PLAYER, role=event.role)
    state.rating_games.append(0)
    index = state.fair_share.add(event.step_weight)
    state.players[event.player] = PlayerState(
        event.player,
        event.role,
        event.group,
        policy,
        index,
        Episodes(),
        (),
        hyperparameters=event.hyperparameters,
        parent=event.parent,
    )
    scout = scout_of(state)
    if scout is not None and scout.name == event.player and not is_counter(state, scout):
        scout.paused = True
        state.fair_share.num_blocking.values[index] += 1


def apply_config(state: LeagueState, event: ConfigChanged) -> None:
    """The new configuration; the one before is kept for a crash between the journal and the file."""
    state.config_text_before, state.config_text = state.config_text, event.text


def apply_started(state: LeagueState, event: RunStarted) -> None:
    """A new run, whose hosts are others: only those that are parked stay so."""
    state.token, state.running = event.token, True
    state.carries_evidence = event.carries_evidence
    state.hosts = {name: held for name, held in state.hosts.items() if held == PARKED}


def apply_stopped(state: LeagueState, event: RunStopped) -> None:
    """The run is over."""
    state.running = False


def _check_lost(state: LeagueState, lost: tuple[str, ...]) -> None:
    for name in lost:
        player = state.players.get(name)
        if player is None or player.parent is None:
            raise Refused(f"{name!r} is no player of the league that descends from a snapshot")


def _lose_checkpoints(state: LeagueState, lost: tuple[str, ...]) -> None:
    for name in lost:
        state.players[name].checkpoint = None


def _expire_all(state: LeagueState, reason: str) -> list[LeaseExpired]:
    return [LeaseExpired(lease_id, reason) for lease_id in state.leases]
