"""Population based training: when a player is looked at, what a transplant is made of, what its confirmation changes.

A transplant is one order: the donor's restart state, named by its digest and not to be deleted while the order is open,
and new hyperparameters. It counts only once the player's own restart state with both in it is in the store.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from numpy.typing import NDArray

from league.core.metagame.ratings import present_ratings
from league.core.pbt.pbt_selection import TuningTrial, donor_of
from league.core.state.commands import ConfirmTransplant, DropTransplant, Refused
from league.core.state.episodes import Episodes
from league.core.state.events import Event, OrderDropped, OrderIssued, PlayerTransplanted
from league.core.state.league_config import MatchmakingSettings, PlayerSettings
from league.core.state.population_config import TunedSettings, TuningSettings
from league.core.state.records import Hyperparameter, Order
from league.core.state.state import CheckpointPointer, LeagueState, PlayerState

TRANSPLANT_KIND = "transplant"
START_SPREAD = 3.0
"""First values lie within this power of the mutation factor around the initial one."""


def own_settings(state: LeagueState, player: str) -> PlayerSettings:
    """The settings of a player's group, with the player's own tuned values of matchmaking in their place."""
    settings = state.settings_of(player)
    tuned = {item.name: item.value for item in state.players[player].hyperparameters}
    matchmaking = settings.matchmaking
    if "self_play" in tuned:
        matchmaking = with_self_play(matchmaking, tuned["self_play"])
    if "pfsp_exponent" in tuned:
        matchmaking = dataclasses.replace(matchmaking, weighting="hard", pfsp_exponent=tuned["pfsp_exponent"])
    return settings if matchmaking is settings.matchmaking else dataclasses.replace(settings, matchmaking=matchmaking)


def with_self_play(matchmaking: MatchmakingSettings, share: float) -> MatchmakingSettings:
    """The same with another share of self-play; the other shares keep their proportion."""
    rest = matchmaking.pfsp + matchmaking.verification
    part = matchmaking.pfsp / rest if rest > 0.0 else 1.0
    pfsp = (1.0 - share) * part
    return dataclasses.replace(matchmaking, self_play=share, pfsp=pfsp, verification=max(1.0 - share - pfsp, 0.0))


def first_values(
    settings: TuningSettings, group: PlayerSettings, rng: np.random.Generator, *, is_first: bool
) -> tuple[Hyperparameter, ...]:
    """What a new player of a group starts with: the first one with the initial values, the others around them."""
    if not settings.tuner:
        return _beside((), group)
    exponents = rng.uniform(-START_SPREAD, START_SPREAD, len(settings.parameters)) * (not is_first)
    tuned = tuple(
        Hyperparameter(item.name, _bounded(item, item.initial * settings.factor**exponent))
        for item, exponent in zip(settings.parameters, exponents.tolist(), strict=True)
    )
    return _beside(tuned, group)


def _beside(tuned: tuple[Hyperparameter, ...], group: PlayerSettings) -> tuple[Hyperparameter, ...]:
    """Tuned values, and those of the group that tuning leaves alone."""
    names = {item.name for item in tuned}
    return tuned + tuple(item for item in group.hyperparameters if item.name not in names)


def explored(
    donor: tuple[Hyperparameter, ...], settings: TuningSettings, rng: np.random.Generator
) -> tuple[Hyperparameter, ...]:
    """The donor's values, each kept, multiplied or divided by the factor, or drawn anew within its bounds."""
    known = {item.name: item.value for item in donor}
    values = []
    for item in settings.parameters:
        value = known.get(item.name, item.initial)
        mutates, resamples, up, place = rng.random(4).tolist()
        if mutates < settings.mutation:
            if resamples < settings.resample:
                value = item.low * (item.high / item.low) ** place
            else:
                value = value * settings.factor if up < 0.5 else value / settings.factor
        values.append(Hyperparameter(item.name, _bounded(item, value)))
    return tuple(values)


def transplant_order(state: LeagueState, player: str, rng: np.random.Generator, *, trained_steps: int) -> list[Event]:
    """A transplant order where a period is over and the tuner finds a donor; nothing while an order is open."""
    known = state.players[player]
    if state.open_orders(player) or not _has_ended_a_period(state, known.trained_steps, trained_steps):
        return []
    return _copy_order(state, player, rng)


def transplant_after_snapshot(
    state: LeagueState, player: str, rng: np.random.Generator, *, trained_steps: int
) -> list[Event]:
    """The same at the confirmation of a snapshot, where a period has ended since the one before.

    The end of a period counts for nothing while a snapshot is on order, and often a report ends both; so this look
    makes up for it, and whoever copies then has its own weights frozen first.
    """
    known = state.players[player]
    if len(state.open_orders(player)) > 1 or not _has_ended_a_period(state, known.gate_steps, trained_steps):
        return []
    return _copy_order(state, player, rng)


def _has_ended_a_period(state: LeagueState, before: int, now: int) -> bool:
    """Whether there is tuning, and one of its periods ended between two counts of trained steps."""
    assert state.settings is not None
    settings = state.settings.tuning
    return bool(settings.tuner) and now // settings.period_steps > before // settings.period_steps


def _copy_order(state: LeagueState, player: str, rng: np.random.Generator) -> list[Event]:
    """A transplant order where the player is ready and the tuner finds it a donor."""
    assert state.settings is not None
    settings, known = state.settings.tuning, state.players[player]
    candidates = [
        other
        for other in state.players.values()
        if (settings.across_roles or other.group == known.group) and _is_ready(state, other)
    ]
    names = tuple(other.name for other in candidates)
    if player not in names or len(names) < 2:
        return []
    score, deviation = _scores(state, candidates)
    is_rating = len(set(state.teams)) > 1
    trial = TuningTrial(names, names.index(player), score, deviation, is_rating, settings)
    copy = donor_of(trial, rng)
    if copy is None:
        return []
    donor = candidates[copy.donor]
    assert donor.checkpoint is not None
    order = Order(
        state.next_order_id,
        TRANSPLANT_KIND,
        player,
        reason=f"{settings.tuner}: {copy.evidence} against {donor.name}",
        source=donor.parent,
        donor=donor.name,
        checkpoint=donor.checkpoint.digest,
        hyperparameters=_beside(explored(donor.hyperparameters, settings, rng), state.settings_of(player)),
    )
    return [OrderIssued(order)]


def confirm_transplant(state: LeagueState, command: ConfirmTransplant, rng: np.random.Generator) -> list[Event]:
    """The player has taken the donor's place.

    Raises:
      Refused: no such order is open, or the numbers are negative.
    """
    order = _open_transplant(state, command.order_id)
    if min(command.version, command.trained_steps) < 0:
        raise Refused(f"transplant order {order.order_id}: version or trained_steps is negative")
    assert order.donor is not None
    return [
        PlayerTransplanted(
            order.order_id,
            order.player,
            order.donor,
            order.source,
            digest=command.digest,
            version=command.version,
            trained_steps=command.trained_steps,
            hyperparameters=order.hyperparameters,
        )
    ]


def drop_transplant(state: LeagueState, command: DropTransplant, rng: np.random.Generator) -> list[Event]:
    """The player goes on as it was.

    Raises:
      Refused: no such order is open.
    """
    return [OrderDropped(_open_transplant(state, command.order_id).order_id, command.reason)]


def apply_transplant(state: LeagueState, event: PlayerTransplanted) -> None:
    """All that was known of the old weights is void; restart state, ancestry and values are those of the transplant."""
    player = state.players[event.player]
    player.hyperparameters = event.hyperparameters
    player.checkpoint = CheckpointPointer(event.digest, event.version, event.trained_steps)
    player.version, player.trained_steps = event.version, event.trained_steps
    player.parent = event.source
    player.transplants += 1
    player.gate_steps = player.fresh_steps = event.trained_steps
    player.first_lease_id = state.next_lease_id
    player.mean_return, player.return_games = 0.0, 0.0
    player.episodes = Episodes()
    state.payoff.forget(player.policy)


def pinned_checkpoints(state: LeagueState) -> frozenset[tuple[str, str]]:
    """(player, digest) of the restart states that open transplants need; they must not be deleted."""
    return frozenset(
        (order.donor, order.checkpoint)
        for order in state.orders.values()
        if order.donor is not None and order.checkpoint is not None
    )


def _is_ready(state: LeagueState, player: PlayerState) -> bool:
    """Whether a player may copy or be copied: measured, past its burn-in, with a restart state and nothing to do."""
    assert state.settings is not None
    settings = state.settings.tuning
    if player.checkpoint is None or player.trained_steps - player.fresh_steps < settings.burn_in_steps:
        return False
    if any(order.kind != "snapshot" for order in state.open_orders(player.name)):
        return False
    if len(set(state.teams)) == 1:
        return player.return_games >= settings.min_games
    games = state.payoff.posterior(player.policy, state.population.moved.values).games
    return float(games.sum()) >= settings.min_games


def _scores(state: LeagueState, players: list[PlayerState]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Strength of each player now, and its standard deviation."""
    if len(set(state.teams)) > 1:
        return present_ratings(state, [player.policy for player in players])
    returns = np.array([player.mean_return for player in players])
    spread = float(returns.std()) or 1.0
    return returns, spread / np.sqrt(np.array([player.return_games for player in players]))


def _bounded(item: TunedSettings, value: float) -> float:
    return float(min(max(value, item.low), item.high)) if math.isfinite(value) else item.initial


def _open_transplant(state: LeagueState, order_id: int) -> Order:
    order = state.orders.get(order_id)
    if order is None or order.kind != TRANSPLANT_KIND:
        raise Refused(f"no {TRANSPLANT_KIND} order {order_id} is open")
    return order
