"""The rules that choose a network: its encoder, its memory, and the scale of what it reads."""

from __future__ import annotations

import pytest

from league.config.run_config import BudgetConfig
from league.envs.facts.game_facts import FieldRange, Spread
from league.envs.facts.number_sizes import NumberSize
from league.envs.protocol import SEAT_GROUP, ArraySpec
from tests.league.config.auto.situations import (
    BUDGETS,
    board_game,
    even,
    one_seat,
    poker,
    settled,
    spec,
)


@pytest.mark.parametrize(("large", "scaling"), [(0.0, "none"), (0.5, "symlog")])
def test_large_numbers_are_scaled(large: float, scaling: str) -> None:
    ranges = {"observation": FieldRange(0.0, 1000.0, large)}
    assert settled(board_game(ranges=ranges))[0].network.input_scaling == scaling


USUAL = NumberSize(0.1, 0.6, -1.0, 2.0, whole=False)


@pytest.mark.parametrize(
    ("size", "moments"),
    [
        (USUAL, (0.0, 1.0)),
        (NumberSize(0.00123, 0.009, -0.02, 0.02, whole=False), (0.0012, 0.009)),
        (NumberSize(100.031, 0.52, 98.0, 102.0, whole=False), (100.03, 0.52)),
        (NumberSize(2.5e6, 1234.0, 2.4e6, 2.6e6, whole=True), (2.5e6, 1200.0)),
        (NumberSize(0.01, 0.07, 0.0, 1.0, whole=True), (0.0, 1.0)),  # a flag that is rarely set
        (NumberSize(0.0, 40.0, -100.0, 100.0, whole=False), (0.0, 1.0)),  # large: its logarithm will do
        (NumberSize(500.0, 0.0, 500.0, 500.0, whole=False), (500.0, 500.0)),
        (NumberSize(0.25, 0.0, 0.25, 0.25, whole=False), (0.0, 1.0)),
        (NumberSize(0.3, 1e-8, 0.3 - 1e-8, 0.3 + 1e-8, whole=False), (0.0, 1.0)),  # rounding
        (NumberSize(0.0, 0.0, 0.0, 1e-200, whole=False), (0.0, 1.0)),  # whose square is 0
        (NumberSize(0.0, 1e-9, -3e-9, 3e-9, whole=False), (0.0, 1e-9)),
    ],
)
def test_numbers_that_are_hardly_seen_are_scaled_by_their_moments(
    size: NumberSize, moments: tuple[float, float]
) -> None:
    network = settled(board_game(sizes={"observation": (USUAL, size)}))[0].network
    assert network.input_moments == ({} if moments == (0.0, 1.0) else {"observation": ((0.0, 1.0), moments)})
    assert network.input_scaling == ("symlog" if network.input_moments else "none")


def test_logarithms_follow_only_moments_that_were_chosen() -> None:
    small = NumberSize(0.0, 0.009, -0.02, 0.02, whole=False)
    given, _ = settled(board_game(sizes={"observation": (small,)}), {"network": {"input_moments": {}}})
    assert (given.network.input_moments, given.network.input_scaling) == ({}, "none")


@pytest.mark.parametrize(
    ("shape", "scaling"),
    [((128,), "symlog"), ((7, 7, 3), "symlog"), ((84, 84, 3), "none")],
    ids=["ram", "flat", "image"],
)
def test_bytes_are_scaled_once(shape: tuple[int, ...], scaling: str) -> None:
    game = board_game(
        spec=spec(observations={"observation": ArraySpec(shape, "uint8")}),
        ranges={"observation": FieldRange(0.0, 255.0, 0.5)},
    )
    assert settled(game)[0].network.input_scaling == scaling


def test_no_memory_where_the_observation_holds_the_past() -> None:
    remembers = spec(observations={"information_state": ArraySpec((30,), "bool")})
    assert settled(poker(decisions=even(20), spec=remembers))[0].network.core == "none"


def test_memory_where_something_is_hidden_for_long() -> None:
    assert settled(poker())[0].network.core == "none"
    assert settled(poker(decisions=even(20)))[0].network.core == "lstm"
    assert settled(board_game(decisions=even(20)))[0].network.core == "none"


def test_a_lone_seat_remembers_where_its_past_was_seen_to_count() -> None:
    assert [settled(one_seat(past_counts=counts))[0].network.core for counts in (False, True)] == ["none", "lstm"]


def test_the_step_before_is_kept_where_it_tells_what_is_not_seen() -> None:
    stack = {"kind": "stack", "steps": 1}
    assert settled(one_seat(last_step_counts=True))[0].network.core == stack
    assert settled(board_game(play="simultaneous", decisions=even(60), last_step_counts=True))[0].network.core == stack
    # What must be remembered for longer takes more than the step before.
    assert settled(one_seat(last_step_counts=True, past_counts=True))[0].network.core == "lstm"


@pytest.mark.parametrize(
    ("shape", "encoder"), [((84,), "mlp"), ((6, 7, 2), "mlp"), ((19, 19, 4), "conv"), ((84, 84, 4), "nature_cnn")]
)
def test_the_encoder_follows_the_observation(shape: tuple[int, ...], encoder: str) -> None:
    assert settled(board_game(spec=spec(shape=shape)))[0].network.encoder == encoder


@pytest.mark.parametrize(
    ("budget", "encoder"), [("minute", "mlp"), ("hour", "conv"), ("steps", "conv"), ("none", "conv")]
)
def test_a_short_budget_reads_a_board_flat(budget: str, encoder: str) -> None:
    board = board_game(spec=spec(shape=(15, 15, 4)))
    assert settled(board, budget=BUDGETS[budget])[0].network.encoder == encoder


@pytest.mark.parametrize(
    ("board", "beside", "encoder"),
    [
        ((10, 10, 5), {SEAT_GROUP: ArraySpec((2,), "bool")}, "mlp"),
        ((19, 19, 4), {SEAT_GROUP: ArraySpec((2,), "bool")}, "conv"),
        ((10, 10, 5), {"clock": ArraySpec((3,), "float32")}, "mlp"),
        ((19, 19, 4), {"clock": ArraySpec((3,), "float32")}, "dict"),
        ((40, 40, 3), {"clock": ArraySpec((3,), "float32")}, "nature_cnn"),
        ((40, 40, 3), {"near": ArraySpec((9, 9, 3), "uint8")}, "dict"),
    ],
)
def test_the_mark_of_a_seat_s_group_is_no_field_of_its_network(
    board: tuple[int, ...], beside: dict[str, ArraySpec], encoder: str
) -> None:
    fields = {"observation": ArraySpec(board, "float32"), **beside}
    assert settled(board_game(spec=spec(observations=fields)))[0].network.encoder == encoder


def test_a_long_budget_affords_the_residual_network() -> None:
    pictures = board_game(spec=spec(shape=(84, 84, 4)))
    assert settled(pictures, budget=BudgetConfig(core_seconds=2e5))[0].network.encoder == "impala_resnet"


@pytest.mark.parametrize(
    ("mean", "final_only", "moments"),
    [(100.0, True, (100.0, 2.2)), (-40.0, True, (-40.0, 2.2)), (3.0, True, (0.0, 1e-4)), (100.0, False, (0.0, 1e-4))],
)
def test_a_value_begins_at_returns_that_lie_far_from_0(
    mean: float, final_only: bool, moments: tuple[float, float]
) -> None:
    returns = tuple(Spread(mean + shift, 2.0, mean - 5.0, mean - 3.0, mean + 3.0, mean + 5.0) for shift in (-1.0, 1.0))
    game = board_game(returns=returns, return_values=(), final_only=final_only, spec=spec(win_draw_loss=False))
    assert settled(game)[0].network.value_moments == moments


@pytest.mark.parametrize("mean", [12_736.4, -12_736.4, 99_999.7, 32.25])
@pytest.mark.parametrize("deviation", [1.0, 0.5, 9.96])
def test_a_first_mean_is_rounded_by_the_deviation(mean: float, deviation: float) -> None:
    returns = (Spread(mean, deviation, mean - 3, mean - 2, mean + 2, mean + 3),) * 2
    game = board_game(returns=returns, return_values=(), spec=spec(win_draw_loss=False))
    found, width = settled(game)[0].network.value_moments
    assert abs(found - mean) <= 0.06 * deviation
    assert width == pytest.approx(deviation, rel=0.05)
