"""Population based training: when a player is looked at, what a transplant is made of, what its confirmation changes.

A transplant is one directive: the donor's restart state, named by its digest and not to be deleted while the directive
is open, and new hyperparameters. It counts only once the player's own restart state with both in it is in the store.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from numpy.typing import NDArray

from league.core.gates.e_values import forget_evidence
from league.core.matchmaking.roles import matchmaker_of
from league.core.metagame.ratings import present_ratings
from league.core.pbt.pbt_selection import SelectionTrial, donor_of
from league.core.state.built_ins import Options, options_of
from league.core.state.commands import ConfirmTransplant, DropTransplant, Refused
from league.core.state.episodes import Episodes
from league.core.state.events import DirectiveDropped, DirectiveIssued, Event, PlayerTransplanted
from league.core.state.league_config import PlayerConfig
from league.core.state.population_config import OWN_VALUES, HyperparameterConfig, PbtConfig
from league.core.state.records import Directive, DirectiveKind, Hyperparameter, Parent
from league.core.state.state import CheckpointPointer, LeagueState, PlayerState

START_SPREAD = 3.0
"""First values lie within this power of the mutation factor around the initial one."""


def own_config(state: LeagueState, player: str) -> PlayerConfig:
    """The settings of a player's group, with the player's own tuned values in the options of its matchmaker."""
    config = state.config_of(player)
    tuned = {item.name: item.value for item in state.players[player].hyperparameters if item.name in OWN_VALUES}
    if not tuned:
        return config
    options = options_of(matchmaker_of(config))
    if "self_play" in tuned and "self_play" in options:
        options = with_self_play(options, tuned["self_play"])
    if "pfsp_exponent" in tuned and "pfsp_exponent" in options:
        options |= {"weighting": "hard", "pfsp_exponent": tuned["pfsp_exponent"]}
    return dataclasses.replace(config, matchmaker={"kind": config.matchmaker_name, **options})


def with_self_play(options: Options, probability: float) -> Options:
    """The same with another share of self-play; the other shares keep their proportion where there are several."""
    if not {"pfsp", "verification"} <= set(options):
        return options | {"self_play": probability}
    rest = options["pfsp"] + options["verification"]
    part = options["pfsp"] / rest if rest > 0.0 else 1.0
    pfsp = (1.0 - probability) * part
    return options | {
        "self_play": probability,
        "pfsp": pfsp,
        "verification": max(1.0 - probability - pfsp, 0.0),
    }


def first_values(
    config: PbtConfig, group: PlayerConfig, rng: np.random.Generator, *, is_first: bool
) -> tuple[Hyperparameter, ...]:
    """Starting values of a new player of a group: the first gets the initial values, the others values around them."""
    if not config.selection:
        return _beside((), group)
    exponents = rng.uniform(-START_SPREAD, START_SPREAD, len(config.hyperparameters)) * (not is_first)
    tuned = tuple(
        Hyperparameter(item.name, _bounded(item, item.initial * config.factor**exponent))
        for item, exponent in zip(config.hyperparameters, exponents.tolist(), strict=True)
    )
    return _beside(tuned, group)


def _beside(tuned: tuple[Hyperparameter, ...], group: PlayerConfig) -> tuple[Hyperparameter, ...]:
    """The player's own PBT values, and those of the group that PBT leaves alone."""
    names = {item.name for item in tuned}
    return tuned + tuple(item for item in group.hyperparameters if item.name not in names)


def explored(
    donor: tuple[Hyperparameter, ...], config: PbtConfig, rng: np.random.Generator
) -> tuple[Hyperparameter, ...]:
    """The donor's values, each kept, multiplied or divided by the factor, or drawn again within its bounds."""
    known = {item.name: item.value for item in donor}
    values = []
    for item in config.hyperparameters:
        value = known.get(item.name, item.initial)
        mutates, resamples, up, index = rng.random(4).tolist()
        if mutates < config.mutation:
            if resamples < config.resample:
                value = item.low * (item.high / item.low) ** index
            else:
                value = value * config.factor if up < 0.5 else value / config.factor
        values.append(Hyperparameter(item.name, _bounded(item, value)))
    return tuple(values)


def transplant_directive(
    state: LeagueState, player: str, rng: np.random.Generator, *, trained_steps: int
) -> list[Event]:
    """A transplant directive where a period is over and the selection finds a donor; none while one is open."""
    known = state.players[player]
    if state.open_directives(player) or not _has_ended_a_period(state, known.trained_steps, trained_steps):
        return []
    return _copy_directive(state, player, rng)


def transplant_after_snapshot(
    state: LeagueState, player: str, rng: np.random.Generator, *, trained_steps: int
) -> list[Event]:
    """The same at the confirmation of a snapshot, where a period has ended since the one before.

    The end of a period counts for nothing while a snapshot directive is open, and often a report ends both; so this
    look makes up for it, and whoever copies then has its own weights frozen first.
    """
    known = state.players[player]
    if len(state.open_directives(player)) > 1 or not _has_ended_a_period(state, known.gate_steps, trained_steps):
        return []
    return _copy_directive(state, player, rng)


def _has_ended_a_period(state: LeagueState, before: int, now: int) -> bool:
    """True if PBT is on and one of its periods ended between two counts of trained steps."""
    assert state.config is not None
    config = state.config.pbt
    return bool(config.selection) and now // config.period_steps > before // config.period_steps


def _copy_directive(state: LeagueState, player: str, rng: np.random.Generator) -> list[Event]:
    """A transplant directive where the player is ready and the PBT selection finds it a donor."""
    assert state.config is not None
    config, known = state.config.pbt, state.players[player]
    candidates = [
        other
        for other in state.players.values()
        if (config.across_roles or other.group == known.group) and _is_ready(state, other)
    ]
    names = tuple(other.name for other in candidates)
    if player not in names or len(names) < 2:
        return []
    score, deviation = _scores(state, candidates)
    is_rating = state.is_competitive
    trial = SelectionTrial(names, names.index(player), score, deviation, is_rating, config)
    copy = donor_of(trial, rng)
    if copy is None:
        return []
    donor = candidates[copy.donor]
    assert donor.checkpoint is not None
    directive = Directive(
        state.next_directive_id,
        DirectiveKind.TRANSPLANT,
        player,
        reason=f"{config.selection_name}: {copy.evidence} against {donor.name}",
        source=donor.parent,
        donor=donor.name,
        checkpoint=donor.checkpoint.digest,
        hyperparameters=_beside(explored(donor.hyperparameters, config, rng), state.config_of(player)),
        parents=_parents(candidates, copy.weights),
    )
    return [DirectiveIssued(directive)]


def _parents(candidates: list[PlayerState], weights: tuple[float, ...]) -> tuple[Parent, ...]:
    """Those candidates that have a part in a mean; they are ready, and so have a restart state."""
    return tuple(
        Parent(player.name, player.checkpoint.digest, weight)
        for player, weight in zip(candidates, weights, strict=bool(weights))
        if weight > 0.0 and player.checkpoint is not None
    )


def confirm_transplant(state: LeagueState, command: ConfirmTransplant, rng: np.random.Generator) -> list[Event]:
    """The player has taken the donor's place.

    Raises:
      Refused: no such directive is open, or the numbers are negative.
    """
    directive = state.open_directive(command.directive_id, DirectiveKind.TRANSPLANT)
    if min(command.version, command.trained_steps) < 0:
        raise Refused(f"transplant directive {directive.directive_id}: version or trained_steps is negative")
    assert directive.donor is not None
    return [
        PlayerTransplanted(
            directive.directive_id,
            directive.player,
            directive.donor,
            directive.source,
            digest=command.digest,
            version=command.version,
            trained_steps=command.trained_steps,
            hyperparameters=directive.hyperparameters,
            has_ema=command.has_ema,
        )
    ]


def drop_transplant(state: LeagueState, command: DropTransplant, rng: np.random.Generator) -> list[Event]:
    """The player continues unchanged.

    Raises:
      Refused: no such directive is open.
    """
    return [
        DirectiveDropped(
            state.open_directive(command.directive_id, DirectiveKind.TRANSPLANT).directive_id, command.reason
        )
    ]


def apply_transplant(state: LeagueState, event: PlayerTransplanted) -> None:
    """All that was known of the old weights is void; restart state, ancestry and values are those of the transplant."""
    state.close_directive(event.directive_id)
    player = state.players[event.player]
    player.hyperparameters = event.hyperparameters
    player.checkpoint = CheckpointPointer(event.digest, event.version, event.trained_steps, event.has_ema)
    player.version, player.trained_steps = event.version, event.trained_steps
    player.parent = event.source
    player.transplants += 1
    player.gate_steps = player.fresh_steps = event.trained_steps
    player.first_lease_id = state.next_lease_id
    player.mean_return, player.return_games = 0.0, 0.0
    player.episodes = Episodes()
    state.payoff.forget(player.policy)
    forget_evidence(state, event.player)


def pinned_checkpoints(state: LeagueState) -> frozenset[tuple[str, str]]:
    """(player, digest) of the restart states that open transplants need; they must not be deleted."""
    transplants = [directive for directive in state.directives.values() if directive.checkpoint is not None]
    donors = {(each.donor, each.checkpoint) for each in transplants if each.donor is not None and each.checkpoint}
    return frozenset(donors | {(parent.player, parent.checkpoint) for each in transplants for parent in each.parents})


def _is_ready(state: LeagueState, player: PlayerState) -> bool:
    """True if a player may copy or be copied: measured, past its burn-in, with a restart state and idle."""
    assert state.config is not None
    config = state.config.pbt
    if player.checkpoint is None or player.trained_steps - player.fresh_steps < config.burn_in_steps:
        return False
    if any(directive.kind is not DirectiveKind.SNAPSHOT for directive in state.open_directives(player.name)):
        return False
    if not state.is_competitive:
        return player.return_games >= config.min_games
    games = state.posterior(player.policy).games
    return float(games.sum()) >= config.min_games


def _scores(state: LeagueState, players: list[PlayerState]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Strength of each player now, and its standard deviation."""
    if state.is_competitive:
        return present_ratings(state, [player.policy for player in players])
    returns = np.array([player.mean_return for player in players])
    spread = float(returns.std()) or 1.0
    return returns, spread / np.sqrt(np.array([player.return_games for player in players]))


def _bounded(item: HyperparameterConfig, value: float) -> float:
    return float(min(max(value, item.low), item.high)) if math.isfinite(value) else item.initial
