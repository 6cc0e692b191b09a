"""Estimates of the decisions in a budget, beside those that whole runs have made."""

from __future__ import annotations

from dataclasses import replace

import pytest

from league.config.auto.measure import network_costs
from league.config.auto.situation import SPENT_OF_MEASURED, SPENT_OF_NOMINAL, Situation
from league.config.run_config import BudgetConfig
from league.envs.facts.game_facts import GameCosts, GameFacts
from tests.league.config.auto.situations import BUDGETS, board_game, one_seat, one_shot, settled, spec


def costing(game: GameFacts, call_us: float, game_us: float) -> GameFacts:
    """The game with measured costs of a step."""
    return replace(game, costs=GameCosts(1e-6, 0.001, 1e-6, call_s=1e-6 * call_us, game_s=1e-6 * game_us))


@pytest.mark.parametrize(
    ("game", "core_seconds", "num_envs", "epochs", "batch", "made"),
    [
        pytest.param(costing(board_game(), 44, 0.42), 1200, 1024, 1, 2048, 5.0e8, id="connect_four"),
        pytest.param(costing(board_game(), 44, 0.42), 300, 1024, 1, 2048, 1.1e8, id="connect_four-300"),
        pytest.param(costing(board_game(), 41, 0.57), 60, 512, 1, 512, 7.0e6, id="connect_four-60"),
        pytest.param(costing(board_game(), 21, 0.31), 300, 1024, 2, 4096, 5.9e7, id="kuhn"),
        pytest.param(costing(board_game(), 19, 0.37), 1200, 1024, 2, 8192, 3.6e8, id="leduc"),
        pytest.param(costing(one_seat(), 80, 1.1), 60, 512, 8, 512, 1.15e6, id="cartpole"),
        pytest.param(costing(one_shot(), 10, 5.8), 1200, 256, 2, 8192, 1.85e8, id="goofspiel"),
    ],
)
def test_estimates_are_within_a_factor_of_two_of_what_runs_made(
    game: GameFacts, core_seconds: float, num_envs: int, epochs: int, batch: int, made: float
) -> None:
    situation = Situation(game, BudgetConfig(core_seconds=core_seconds))
    assert made / 2 < situation.decisions(num_envs, epochs=epochs, batch=batch) < made * 2


def test_what_a_budget_holds_at_least_is_less_than_the_estimate_and_equal_where_steps_end_it() -> None:
    for budget in BUDGETS.values():
        situation = Situation(board_game(), budget)
        least, estimate = situation.least_decisions(512), situation.decisions(512)
        assert least == estimate if budget == BUDGETS["steps"] else least < estimate


def test_the_share_of_a_networks_costs_grows_with_it() -> None:
    small, large = (
        network_costs(spec(), replace(settled(board_game())[0].network, hidden=(size, size))) for size in (16, 1024)
    )
    assert (small.spent_share, large.spent_share) == (SPENT_OF_NOMINAL, SPENT_OF_MEASURED)


def test_no_exploiter_is_explained_by_what_the_budget_lacks() -> None:
    slow = costing(board_game(), 0, 1000)
    for game, lack in ((board_game(), "1200 core-seconds are"), (slow, "decisions are")):
        _, reasons = settled(game, budget=BudgetConfig(core_seconds=1200.0))
        assert f"{lack} too few for an exploiter to learn" in reasons["league.players"]
