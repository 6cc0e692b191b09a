"""The rules that choose a network: its encoder, its memory, and the scale of what it reads."""

from __future__ import annotations

import pytest

from envs.facts.game_facts import FieldRange
from envs.protocol import SEAT_GROUP, ArraySpec
from league.config.run_config import BudgetConfig
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
