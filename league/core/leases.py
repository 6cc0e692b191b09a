"""Leases: who works for whom next, whether an answer may count, and what it changes."""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

from league.core import plugin_calls
from league.core.directives import gate_directive, known_player, view_of
from league.core.gates.e_values import record_evidence
from league.core.matchmaking.fixed_opponents import fixed_opponent_probabilities
from league.core.matchmaking.generator import evaluation, generated, is_made_for, judge_candidates
from league.core.matchmaking.pfsp import sparse_probabilities
from league.core.matchmaking.quality import note_chances, record_quality
from league.core.metagame.meta_game import exported_snapshots, mixture_event
from league.core.metagame.ratings import league_ratings, strongest
from league.core.state.assignments import counted_pairs, paired_assignments
from league.core.state.bounds import MAX_COUNT, check_answer
from league.core.state.commands import ExpireLease, FinishLease, NothingToLease, Refused, RequestLease
from league.core.state.events import Event, LeaseExpired, LeaseFinished, LeaseGranted
from league.core.state.placements import placement_problem
from league.core.state.records import Assignment, AssignmentOutcome, Lease
from league.core.state.scoring import score_sum
from league.core.state.state import LeagueState

RETURN_GAMES = 1000.0
"""Games over which a player's mean return is taken; older ones fade."""


def request_lease(state: LeagueState, command: RequestLease, rng: np.random.Generator) -> list[Event]:
    """Grant a rating match where ratings are behind their fraction or asked for; else train the player furthest behind.

    Raises:
      Refused: no run is active.
      NothingToLease: the host is parked or drained, training is paused, every player waits for its learner, or there
        is nothing to settle.
    """
    if not state.running:
        raise Refused("no run is active; start one before asking for leases")
    if command.host in state.hosts:
        raise NothingToLease(f"{command.host} is {state.hosts[command.host]}")
    assert state.config is not None
    settles = command.purpose == "settle"
    rating = command.purpose in ("rate", "settle") or (
        command.purpose == "any"
        and not state.rating_paused
        and state.fair_share.rating_is_behind(state.config.ratings.step_fraction)
    )
    home, assignments = (None, rating_assignments(state, rng, settles=settles)) if rating else (None, ())
    if not assignments:
        if settles:
            raise NothingToLease("there are no two frozen policies to rate against each other")
        if state.training_paused:
            raise NothingToLease("training is paused")
        home, assignments = training_assignments(state, rng, player=command.player)
    generation = 0 if home is None else state.players[home].generation + state.players[home].transplants
    steps = state.config.lease_steps if command.steps is None else min(command.steps, state.config.lease_steps)
    lease = Lease(
        lease_id=state.next_lease_id,
        token=state.token,
        host=command.host,
        home=home,
        assignments=assignments,
        steps=steps,
        generation=generation,
        num_envs=command.num_envs,
        after_training=settles,
    )
    return [LeaseGranted(lease)]


def training_assignments(
    state: LeagueState, rng: np.random.Generator, *, player: str = ""
) -> tuple[str, tuple[Assignment, ...]]:
    """A player and its opponents.

    Args:
      player: its name; empty for the one that is furthest behind its step weight.
    Raises:
      Refused: there is no such player.
      NothingToLease: it waits for its learner, or every player does.
    """
    player = _player_to_train(state, player)
    config = state.config_of(player)
    made = generated(state, player)
    if made is not None:
        return player, made
    if not state.is_competitive:
        return player, paired_assignments(player, [(player, 1.0)], teams=state.teams, records=True)
    probabilities = with_fixed_opponents(state, player, plugin_calls.opponents(view_of(state, player), rng))
    chosen = sparse_probabilities(probabilities, limit=config.opponents_per_lease, rng=rng)
    learnt_from = recent_past(state, player, config.learn_from_past)
    opponents = _named(state, *chosen)
    return player, paired_assignments(player, opponents, teams=state.teams, records=True, also_recorded=learnt_from)


def _player_to_train(state: LeagueState, player: str) -> str:
    if not player:
        index = state.fair_share.next_player()
        if index is None:
            raise NothingToLease("every player waits for its learner to carry out a directive")
        return state.player_at(index)
    if state.fair_share.num_blocking.values[known_player(state, player).index]:
        raise NothingToLease(f"{player} waits for its learner to carry out a directive")
    return player


def recent_past(state: LeagueState, player: str, number: int) -> frozenset[str]:
    """Newest snapshots that a player's weights descend from without a reset or another's between, so many at most."""
    found: list[str] = []
    name, own = state.players[player].parent, state.players[player]
    while name in state.snapshots and len(found) < number:
        info = state.snapshots[name]
        if info.player != player or info.trained_steps < own.fresh_steps:
            break
        found.append(name)
        name = info.parent
    return frozenset(found)


def with_fixed_opponents(state: LeagueState, player: str, probabilities: np.ndarray) -> np.ndarray:
    """float64 [P], a player's probabilities with those of its fixed opponents set aside; a fixed opponent that is not
    there yet has none."""
    fixed_opponents = fixed_opponent_probabilities(state, player)
    if fixed_opponents is None:
        return probabilities
    mixed: np.ndarray = probabilities * max(1.0 - fixed_opponents.sum(), 0.0) + fixed_opponents
    return mixed


def rating_assignments(state: LeagueState, rng: np.random.Generator, *, settles: bool) -> tuple[Assignment, ...]:
    """The frozen policy with the fewest rating games against some others, those preferred whose result is open.

    Args:
      settles: the phase after training is for the choice of what to export: only those are rated that may be the best.
    Returns:
      Empty where there is nothing to rate: a game of one team, or fewer than two frozen policies that can be met.
    """
    frozen = state.population.frozen_present()
    if not state.is_competitive or len(frozen) < 2:
        return ()
    assert state.config is not None
    judged = () if settles else evaluation(state)
    if judged:
        return judged
    if settles:
        frozen = _perhaps_strongest(state, frozen)
    subject = int(frozen[state.rating_games.values[frozen].argmin()])
    known = state.posterior(subject)
    openness = np.zeros(len(state.population))
    openness[frozen] = (known.mean * (1.0 - known.mean) / (1.0 + known.games))[frozen]
    openness[subject] = 0.0
    chosen = sparse_probabilities(openness / openness.sum(), limit=state.config.ratings.opponents_per_lease, rng=rng)
    return paired_assignments(state.population.names[subject], _named(state, *chosen), teams=state.teams, records=False)


def _perhaps_strongest(state: LeagueState, frozen: NDArray[np.int64]) -> NDArray[np.int64]:
    """Those of these policies that exports choose among and that may be the strongest of them; all where that is one.

    Games spread over a whole history left the newest snapshots with too few to count as even with the strongest one.
    """
    exported = set(exported_snapshots(state))
    rows = tuple(row for row in league_ratings(state) if row.policy in exported)
    top = strongest(rows)
    if top is None:
        return frozen
    even = {row.policy for row in rows if row.high >= top.low}
    chosen = frozen[[state.population.names[number] in even for number in frozen.tolist()]]
    return chosen if len(chosen) > 1 else frozen


def finish_lease(state: LeagueState, command: FinishLease, rng: np.random.Generator) -> list[Event]:
    """Accept an answer; the home's gate is judged on the evidence before it.

    Raises:
      Refused: the lease is not open, the token is old, or the counts do not add up.
    """
    lease = _open_lease(state, command.lease_id)
    if command.token != lease.token or command.token != state.token:
        raise Refused(f"lease {command.lease_id} belongs to run {lease.token}, the answer to run {command.token}")
    for outcome in command.outcomes:
        _check_assignment(state, lease, outcome.policies)
        _check_counts(state, outcome)
    check_answer(state, lease, command)
    finished = LeaseFinished(command.lease_id, command.token, command.env_steps, command.outcomes)
    if lease.home is None:
        return [finished, *mixture_event(state)]
    return [finished, *gate_directive(state, lease.home, trained_steps=state.players[lease.home].trained_steps)]


def expire_lease(state: LeagueState, command: ExpireLease, rng: np.random.Generator) -> list[Event]:
    """Give a lease up.

    Raises:
      Refused: the lease is not open.
    """
    return [LeaseExpired(_open_lease(state, command.lease_id).lease_id, command.reason)]


def apply_granted(state: LeagueState, event: LeaseGranted) -> None:
    """The lease is open, and counts toward its player's env steps."""
    state.leases[event.lease.lease_id] = event.lease
    state.next_lease_id = event.lease.lease_id + 1
    state.fair_share.open(_player_index(state, event.lease))
    if event.lease.home is not None:
        note_chances(state, event.lease.home)


def apply_expired(state: LeagueState, event: LeaseExpired) -> None:
    """The lease is gone without a result."""
    lease = state.leases.pop(event.lease_id)
    state.fair_share.close(_player_index(state, lease), 0)
    state.totals.leases_expired += 1


def apply_finished(state: LeagueState, event: LeaseFinished) -> None:
    """Records the answer: counts, and every pair of opposing seats in the payoff."""
    lease = state.leases.pop(event.lease_id)
    state.fair_share.close(_player_index(state, lease), event.env_steps)
    totals = state.totals
    totals.leases_finished += 1
    if lease.after_training:
        totals.settling_steps += event.env_steps
    else:
        totals.env_steps += event.env_steps
    for outcome in event.outcomes:
        totals.games += outcome.games
        totals.aborted += outcome.aborted
        totals.decisions += outcome.decisions
        totals.truncated += outcome.truncated
        if lease.home is not None:
            _record_home(state, lease, outcome)
        else:
            totals.rating_games += outcome.games
            for policy in set(outcome.policies):
                state.rating_games.values[state.population.index[policy]] += outcome.games
        if outcome.games:
            _record_pairs(state, lease.lease_id, outcome)
    if lease.home is None:
        judge_candidates(state)


def _record_home(state: LeagueState, lease: Lease, outcome: AssignmentOutcome) -> None:
    """Updates the home's counts, returns and qualities with the games of its lease."""
    assert lease.home is not None
    home = state.players[lease.home]
    home.games += outcome.games
    home.aborted += outcome.aborted
    home.truncated += outcome.truncated
    if not outcome.games or lease.lease_id < home.first_lease_id:
        return
    made = lease.home not in outcome.policies  # by a snapshot of it, in all seats
    seats = [seat for seat, policy in enumerate(outcome.policies) if made or policy == lease.home]
    mean = sum(outcome.return_sums[seat] for seat in seats) / (len(seats) * outcome.games)
    home.mean_return += (mean - home.mean_return) * outcome.games / (home.return_games + outcome.games)
    home.return_games = min(home.return_games + outcome.games, RETURN_GAMES)
    home.episodes.record(outcome.policies[0] if made else lease.home, outcome, teams=state.teams, scoring=state.scoring)
    record_quality(state, lease.home, outcome)


def _record_pairs(state: LeagueState, lease_id: int, outcome: AssignmentOutcome) -> None:
    staleness_clock = state.population.staleness_clock.values
    numbers = [state.population.index[policy] for policy in outcome.policies]
    current = [
        policy not in state.players or lease_id >= state.players[policy].first_lease_id for policy in outcome.policies
    ]
    for i, j in counted_pairs(outcome.policies, state.teams):
        results = (outcome.wins[i][j], outcome.draws[i][j], outcome.wins[j][i])
        score = score_sum(state.scoring, outcome, teams=state.teams, seat=i, opponent=j)
        now = float(staleness_clock[numbers[i]] + staleness_clock[numbers[j]])
        counts = current[i] and current[j]
        state.payoff.add(numbers[i], numbers[j], seat=i, results=results, score=score, now=now, counts=counts)
        if counts and outcome.policies[i] in state.players:
            record_evidence(state, outcome.policies[i], numbers[j], score=score, games=sum(results), now=now)


def _check_assignment(state: LeagueState, lease: Lease, policies: tuple[str, ...]) -> None:
    """Refuse an assignment that no lease of this home can have had.

    A game may end under a later lease of the same home than the one whose table it drew its assignment from. So the
    table of this very lease is not the measure.
    """
    strangers = [policy for policy in policies if policy not in state.population.index]
    if strangers:
        raise Refused(f"lease {lease.lease_id}: no policy {strangers} in the league")
    if lease.home is not None and lease.home not in policies and not is_made_for(state, lease.home, policies):
        raise Refused(f"lease {lease.lease_id} is {lease.home}'s, which has no seat in {policies}")
    if lease.home is None and any(policy in state.players for policy in policies):
        raise Refused(f"lease {lease.lease_id} is a rating match, but {policies} still learn")


def _check_counts(state: LeagueState, outcome: AssignmentOutcome) -> None:
    """Refuse counts that no set of games could have."""
    rows = (*outcome.wins, *outcome.draws)
    lists = (outcome.policies, outcome.return_sums, outcome.wins, outcome.draws, *rows)
    if set(map(len, lists)) != {state.num_seats}:
        raise Refused(f"outcome of {outcome.policies}: every list in it needs {state.num_seats} entries, one per seat")
    counts = (outcome.games, outcome.aborted, outcome.decisions)
    if min(*counts, *map(min, rows)) < 0 or max(*counts, *map(max, rows)) > MAX_COUNT:
        raise Refused(f"outcome of {outcome.policies}: a count is negative or larger than 2**53")
    if not all(-MAX_COUNT <= earned <= MAX_COUNT for earned in outcome.return_sums):
        raise Refused(f"outcome of {outcome.policies}: a return is not finite or lies beyond 2**53")
    if not 0 <= outcome.truncated <= outcome.games:
        raise Refused(f"outcome of {outcome.policies}: {outcome.truncated} of {outcome.games} games were truncated")
    for i, j in _opposed(state.teams):
        won, lost, drawn = outcome.wins[i][j], outcome.wins[j][i], outcome.draws[i][j]
        if won + lost + drawn != outcome.games or drawn != outcome.draws[j][i]:
            raise Refused(
                f"outcome of {outcome.policies}: seats {i} and {j} show {won} + {lost} wins and {drawn} "
                f"(or {outcome.draws[j][i]}) draws in {outcome.games} games"
            )
    problem = placement_problem(outcome, state.teams)
    if problem:
        raise Refused(f"outcome of {outcome.policies}: {problem}")


@functools.cache
def _opposed(teams: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    """Every two seats of different teams, the lower one first."""
    return tuple((i, j) for j in range(len(teams)) for i in range(j) if teams[i] != teams[j])


def _open_lease(state: LeagueState, lease_id: int) -> Lease:
    lease = state.leases.get(lease_id)
    if lease is None:
        past = 1 <= lease_id < state.next_lease_id
        raise Refused(f"lease {lease_id} " + ("was answered or given up before" if past else "was never granted"))
    return lease


def _player_index(state: LeagueState, lease: Lease) -> int | None:
    return None if lease.home is None else state.players[lease.home].index


def _named(state: LeagueState, numbers: np.ndarray, probabilities: np.ndarray) -> list[tuple[str, float]]:
    names = state.population.names
    return [
        (names[number], probability)
        for number, probability in zip(numbers.tolist(), probabilities.tolist(), strict=True)
    ]
