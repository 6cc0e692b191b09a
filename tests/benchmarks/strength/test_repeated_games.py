"""Exact values of repeated games: against a recursion over all histories, and where the answer is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.strength.games.repeated_games import is_repeated, nash_conv, pairwise_values, whole_range
from league.envs.protocol import EnvConfig
from league.policies.exact.behaviours import Fields, PolicyFunction, uniform
from league.policies.exact.small_game import NoExactValue

ACTIONS = range(3)
BEATS = np.array([[0, -1, 1], [1, 0, -1], [-1, 1, 0]])
Table = dict[tuple[int, int | None, int | None], NDArray[np.float64]]
"""(round, own last action, the other's) -> probabilities."""


def rps(rounds: int, **kwargs: object) -> EnvConfig:
    return EnvConfig("repeated_rock_paper_scissors", {"rounds": rounds, **kwargs})


def playing(choose: Callable[[float, NDArray, NDArray], NDArray]) -> PolicyFunction:
    """A policy from (share of rounds played, own last one-hot, the other's) -> probabilities."""

    def policy(fields: Fields, legal: NDArray[np.bool_]) -> NDArray[np.float64]:
        return np.stack([choose(float(row[0]), row[1:4], row[4:7]) for row in np.asarray(fields["state"], np.float64)])

    return policy


def always(action: int) -> PolicyFunction:
    return playing(lambda share, own, other: np.eye(3)[action])


def random_policy(seed: int, rounds: int) -> tuple[PolicyFunction, Table]:
    rng = np.random.default_rng(seed)
    table: Table = {(0, None, None): rng.dirichlet(np.ones(3))}
    for number in range(1, rounds):
        table |= {(number, own, other): rng.dirichlet(np.ones(3)) for own in ACTIONS for other in ACTIONS}

    def choose(share: float, own: NDArray, other: NDArray) -> NDArray:
        number = round(share * rounds)
        return table[(number, int(own.argmax()), int(other.argmax())) if number else (0, None, None)]

    return playing(choose), table


def slow_best_reply(tables: Sequence[Table], weights: Sequence[float], rounds: int) -> float:
    """By plain recursion over what both did so far; equal stakes, so that the seat does not matter."""

    def value(history: tuple[tuple[int, int], ...], reach: tuple[float, ...]) -> float:
        number = len(history)
        if number == rounds:
            return 0.0
        own, other = history[-1] if history else (None, None)
        best = -np.inf
        for action in ACTIONS:
            total = 0.0
            for reply in ACTIONS:
                now = tuple(
                    chance * table[(number, other, own)][reply] for chance, table in zip(reach, tables, strict=True)
                )
                total += sum(now) * BEATS[action, reply] + value((*history, (action, reply)), now)
            best = max(best, total)
        return best

    return value((), tuple(weights))


def test_best_reply_to_a_mixture_equals_a_recursion_over_all_histories():
    made = [random_policy(seed, rounds=3) for seed in range(3)]
    weights = [0.5, 0.3, 0.2]
    expected = 2 * slow_best_reply([table for _, table in made], weights, rounds=3)
    found = nash_conv(rps(3), list(zip(weights, [policy for policy, _ in made], strict=True)))
    assert found == pytest.approx(expected, abs=1e-9)


def test_uniform_play_cannot_be_exploited_and_a_pure_choice_loses_every_round():
    assert nash_conv(rps(4), uniform) == pytest.approx(0.0, abs=1e-6)
    assert nash_conv(rps(4), always(1)) == pytest.approx(8.0)
    assert whole_range(rps(4)) == 8.0


def test_a_mixture_of_pure_choices_gives_itself_away_in_the_first_round():
    thirds = [(1.0, always(action)) for action in ACTIONS]
    assert nash_conv(rps(1 + 2), thirds) == pytest.approx(2 * 2.0)


def test_stakes_count_for_the_seat_that_wins():
    """Always rock at stakes 1, 2, 3: paper takes 2 a round from it."""
    assert nash_conv(rps(2, stakes=[1, 2, 3]), always(0)) == pytest.approx(2 * 2 * 2.0)


def test_pairwise_values_are_zero_sum_and_follow_the_moves():
    copies = playing(lambda share, own, other: other if share else np.eye(3)[0])  # rock, then what the other did
    values = pairwise_values(rps(3), [always(0), always(1), copies])
    assert np.allclose(values, -values.T)
    assert values[0, 1] == pytest.approx(-3.0)
    assert values[0, 2] == pytest.approx(0.0)
    assert values[1, 2] == pytest.approx(1.0)  # wins the first round, draws the others


def test_pairwise_values_equal_a_recursion():
    (first, one), (second, two) = (random_policy(seed, rounds=3) for seed in (7, 8))

    def value(number: int, own: int | None, other: int | None) -> float:
        if number == 3:
            return 0.0
        mine, theirs = one[(number, own, other)], two[(number, other, own)]
        return sum(mine[a] * theirs[b] * (BEATS[a, b] + value(number + 1, a, b)) for a in ACTIONS for b in ACTIONS)

    assert pairwise_values(rps(3), [first, second])[0, 1] == pytest.approx(value(0, None, None), abs=1e-6)


def test_only_repeated_games_of_few_rounds_have_an_exact_value_here():
    assert is_repeated(rps(2))
    assert not is_repeated(EnvConfig("rock_paper_scissors"))
    assert not is_repeated(EnvConfig("kuhn_poker"))
    with pytest.raises(NoExactValue, match="use fewer rounds"):
        nash_conv(rps(10), uniform)
