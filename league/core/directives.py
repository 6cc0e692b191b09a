"""Directives to learners: when a snapshot or reset is due, and the effect of its confirmation. Snapshots come first."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from league.core import plugin_calls
from league.core.gates.e_values import evidence_against, forget_evidence
from league.core.gates.gates import GATE, TIMEOUT, Trial
from league.core.matchmaking.fixed_opponents import fixed_opponent_probabilities
from league.core.matchmaking.generator import begin_generation, generator_of, restart_generation
from league.core.matchmaking.quality import add_quality
from league.core.matchmaking.roles import EXPLOITER_ROLES, MAIN_ROLE, MatchmakingView
from league.core.metagame.meta_game import mixture_weights
from league.core.pbt.pbt import (
    own_config,
    transplant_after_snapshot,
    transplant_directive,
)
from league.core.state.commands import (
    ConfirmReset,
    ConfirmSnapshot,
    Refused,
    ReportProgress,
    RequestSnapshot,
    SaveCheckpoint,
)
from league.core.state.episodes import Episodes
from league.core.state.events import (
    CheckpointSaved,
    DirectiveDropped,
    DirectiveIssued,
    Event,
    PlayerReset,
    ProgressReported,
    SnapshotAdded,
)
from league.core.state.payoff import Posterior
from league.core.state.population import SNAPSHOT
from league.core.state.records import INITIAL, Directive, DirectiveKind, SnapshotInfo
from league.core.state.state import KEPT_LIVES, CheckpointPointer, LeagueState, Life, PlayerState

BEFORE_RESET = "reset"
"""Reason of a snapshot that somebody asked for together with the reset after it."""


def view_of(state: LeagueState, player: str) -> MatchmakingView:
    """The league as `player` sees it now."""
    home = state.players[player].policy
    quality, generator = state.qualities.get(player), generator_of(state, player)
    return MatchmakingView(
        home=home,
        population=state.population,
        posterior=state.posterior(home),
        config=own_config(state, player),
        quality=None if quality is None else quality.values,
        mixture=mixture_weights(state),
        fixed_opponents=fixed_opponent_probabilities(state, player),
        generator=None if generator is None else state.population.index[generator],
    )


def gate_directive(state: LeagueState, player: str, *, trained_steps: int) -> list[DirectiveIssued]:
    """A snapshot directive if the player's gate fires; none while an earlier directive is open."""
    steps = trained_steps - state.players[player].gate_steps
    config = state.config_of(player)
    if steps < config.gate.min_steps or state.open_directives(player):
        return []
    view = view_of(state, player)
    gate_opponents = plugin_calls.gate_opponents(view) if state.is_competitive else np.array([], dtype=np.int64)
    known = _recent(state, player, gate_opponents) or view.posterior.take(gate_opponents)
    evidence = evidence_against(state, player, gate_opponents)
    verdict = plugin_calls.verdict(Trial(steps, gate_opponents, state.population.names, known, config.gate, evidence))
    if verdict is None:
        return []
    directive = Directive(state.next_directive_id, DirectiveKind.SNAPSHOT, player, verdict.reason)
    return [DirectiveIssued(directive, verdict.evidence, verdict.gate_opponents)]


def _recent(state: LeagueState, player: str, opponents: NDArray[np.int64]) -> Posterior | None:
    """The newest games of a player that begins again with its snapshots against its one opponent; None for others.

    Its first games say nothing of what it has become, and fade too slowly to end its life in time. The newest are
    counted together, so nobody else may have been met since it began.
    """
    episodes, met = state.players[player].episodes, state.payoff.cells_of(state.players[player].policy)
    if state.config_of(player).reset_probability < 1.0 or len(opponents) != 1 or not episodes.score_games:
        return None
    if not np.all(state.payoff.away[met] == opponents):
        return None
    games, prior = np.array([episodes.score_games]), 0.5 * state.payoff.prior_games
    return Posterior(prior + episodes.score * games, prior + (1.0 - episodes.score) * games, games)


def report_progress(state: LeagueState, command: ReportProgress, rng: np.random.Generator) -> list[Event]:
    """Take note of a learner's progress, judge the gate of its player, and look whether it is to copy another.

    Raises:
      Refused: no such player, or negative numbers.
    """
    progress = command.progress
    known_player(state, progress.player)
    if min(progress.version, progress.trained_steps) < 0:
        raise Refused(f"progress of {progress.player} is negative: {progress}")
    steps = progress.trained_steps
    directives: list[Event] = [*gate_directive(state, progress.player, trained_steps=steps)]
    return [
        ProgressReported(progress),
        *(directives or transplant_directive(state, progress.player, rng, trained_steps=steps)),
    ]


def request_snapshot(state: LeagueState, command: RequestSnapshot, rng: np.random.Generator) -> list[Event]:
    """Issue a snapshot directive; nothing new where the same is already open.

    Raises:
      Refused: no such player, or it is about to be reset: its weights were frozen just before.
    """
    known_player(state, command.player)
    if command.reason in (INITIAL, GATE, TIMEOUT, BEFORE_RESET):
        raise Refused(f"the reason {command.reason!r} is the league's own")
    for directive in state.open_directives(command.player):
        if directive.kind == DirectiveKind.RESET:
            raise Refused(f"{command.player} is about to be reset; its weights are frozen already")
        if directive.kind == DirectiveKind.TRANSPLANT:
            raise Refused(f"{command.player} is about to take over the weights of {directive.donor}")
        if directive.reason == command.reason:
            return []
    return [DirectiveIssued(Directive(state.next_directive_id, DirectiveKind.SNAPSHOT, command.player, command.reason))]


def confirm_snapshot(state: LeagueState, command: ConfirmSnapshot, rng: np.random.Generator) -> list[Event]:
    """Add the snapshot to the population; after it issue a reset where the role has one, or a transplant that is due.

    Raises:
      Refused: no such snapshot directive is open, or the numbers are negative.
    """
    directive = state.open_directive(command.directive_id, DirectiveKind.SNAPSHOT)
    if min(command.version, command.trained_steps) < 0:
        raise Refused(f"snapshot directive {directive.directive_id}: version or trained_steps is negative")
    player = state.players[directive.player]
    snapshot = SnapshotInfo(
        snapshot_id=player.next_snapshot,
        digest=command.digest,
        player=player.name,
        role=player.role,
        parent=player.parent,
        version=command.version,
        trained_steps=command.trained_steps,
        reason=directive.reason,
    )
    return [SnapshotAdded(directive.directive_id, snapshot), *_after_snapshot(state, player, snapshot, rng)]


def _after_snapshot(
    state: LeagueState, player: PlayerState, snapshot: SnapshotInfo, rng: np.random.Generator
) -> list[Event]:
    """The reset that was asked for together with a snapshot; after a gate's, a reset by chance or else a transplant."""
    if player.initial is None or snapshot.reason not in (GATE, TIMEOUT, BEFORE_RESET):
        return []
    if snapshot.reason != BEFORE_RESET and rng.random() >= state.config_of(player.name).reset_probability:
        return [*transplant_after_snapshot(state, player.name, rng, trained_steps=snapshot.trained_steps)]
    source = start_again_from(state, player)
    if source is None:
        return []
    reason = f"after {snapshot.snapshot_id}"
    return [
        DirectiveIssued(Directive(state.next_directive_id, DirectiveKind.RESET, player.name, reason, source=source))
    ]


def confirm_reset(state: LeagueState, command: ConfirmReset, rng: np.random.Generator) -> list[Event]:
    """The player has started again.

    Raises:
      Refused: no such reset directive is open.
    """
    directive = state.open_directive(command.directive_id, DirectiveKind.RESET)
    assert directive.source is not None
    return [PlayerReset(directive.directive_id, directive.player, directive.source)]


def save_checkpoint(state: LeagueState, command: SaveCheckpoint, rng: np.random.Generator) -> list[Event]:
    """Remember where a learner's restart state lies.

    Raises:
      Refused: no such player, or the numbers are negative.
    """
    known_player(state, command.player)
    if min(command.version, command.trained_steps) < 0:
        raise Refused(f"restart state of {command.player}: version or trained_steps is negative")
    return [CheckpointSaved(command.player, command.digest, command.version, command.trained_steps, command.has_ema)]


def apply_progress(state: LeagueState, event: ProgressReported) -> None:
    """The clock of the player's evidence advances by the distance moved, forward or back."""
    progress = event.progress
    player = state.players[progress.player]
    player.lost_steps += max(player.trained_steps - progress.trained_steps, 0)
    state.population.staleness_clock.values[player.policy] += abs(progress.trained_steps - player.trained_steps)
    player.version, player.trained_steps = progress.version, progress.trained_steps


def apply_directive(state: LeagueState, event: DirectiveIssued) -> None:
    """The directive is open."""
    state.issue_directive(event.directive)


def apply_snapshot(state: LeagueState, event: SnapshotAdded) -> None:
    """The snapshot joins the population, and its player descends from it."""
    state.close_directive(event.directive_id)
    snapshot = event.snapshot
    player = state.players[snapshot.player]
    state.snapshots[snapshot.snapshot_id] = snapshot
    number = state.population.add(snapshot.snapshot_id, kind=SNAPSHOT, owner=player.policy, role=player.role)
    state.rating_games.append(0)
    add_quality(state, snapshot.player, number)
    player.num_snapshots += 1
    begin_generation(state, snapshot.player)
    player.parent = snapshot.snapshot_id
    player.gate_steps = snapshot.trained_steps
    if player.role in EXPLOITER_ROLES and snapshot.reason in (GATE, TIMEOUT):
        player.lives = (*player.lives, _ended_life(state, player))[-KEPT_LIVES:]
    if player.initial is None:
        player.initial = snapshot.snapshot_id
    if player.role == MAIN_ROLE and snapshot.trained_steps:
        _follow_snapshots(state, apart=snapshot.trained_steps / max(player.num_snapshots - 1, 1))


def _ended_life(state: LeagueState, player: PlayerState) -> Life:
    """The life of an exploiter that ends now."""
    clock, mains = state.population.staleness_clock.values, (p for p in state.players.values() if p.role == MAIN_ROLE)
    seats = sum(
        (state.payoff.seat_games(player.policy, main.policy, clock) for main in mains), np.zeros((state.num_seats, 2))
    )
    of_seat = tuple((float(score), float(games)) for score, games in seats)
    return Life(player.episodes.score, player.episodes.score_games, of_seat, state.next_lease_id)


def _follow_snapshots(state: LeagueState, *, apart: float) -> None:
    """Old games fade with the snapshots of a main agent where the settings say so; they lie `apart` trained steps."""
    assert state.config is not None
    payoff = state.config.payoff
    if payoff.follows_snapshots:
        assert payoff.half_life_snapshots is not None
        state.payoff.half_life_steps = payoff.half_life_snapshots * apart


def apply_reset(state: LeagueState, event: PlayerReset) -> None:
    """All that was known of the old weights is void: payoff, checkpoint, and leases granted before."""
    state.close_directive(event.directive_id)
    player = state.players[event.player]
    player.generation += 1
    player.parent = event.source
    restart_generation(state, event.player, event.source)
    player.gate_steps = player.fresh_steps = player.trained_steps
    player.first_lease_id = state.next_lease_id
    player.checkpoint = None
    player.mean_return, player.return_games = 0.0, 0.0
    player.episodes = Episodes()
    state.payoff.forget(player.policy)
    forget_evidence(state, event.player)


def apply_dropped(state: LeagueState, event: DirectiveDropped) -> None:
    """The directive is withdrawn."""
    state.close_directive(event.directive_id)


def apply_checkpoint(state: LeagueState, event: CheckpointSaved) -> None:
    """The newest restart state replaces the one before."""
    state.players[event.player].checkpoint = CheckpointPointer(
        event.digest, event.version, event.trained_steps, event.has_ema
    )


def start_again_from(state: LeagueState, player: PlayerState, *, without: str = "") -> str | None:
    """The snapshot that a reset starts from, among those whose weights can be had but `without`; None for none.

    The newest of the main agents where that is set and there is one, else the player's first. Where that first one is
    gone, the oldest that is left of the player, which is nearest to it.
    """
    present = [known for name, known in state.snapshots.items() if name != without and state.is_present(name)]
    if state.config_of(player.name).gate.reset_to == "main":
        mains = [snapshot.snapshot_id for snapshot in present if snapshot.role == MAIN_ROLE]
        if mains:
            return mains[-1]
    return next((snapshot.snapshot_id for snapshot in present if snapshot.player == player.name), None)


def known_player(state: LeagueState, name: str) -> PlayerState:
    """A player by its name. Raises Refused where there is none."""
    player = state.players.get(name)
    if player is None:
        raise Refused(f"no player {name!r}; there are {', '.join(list(state.players)[:10])}")
    return player
