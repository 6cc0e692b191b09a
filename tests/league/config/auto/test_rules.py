"""The rules on made-up facts: each kind of game gets what suits it, whatever the budget."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from league.agents.learner.config import LearnerConfig
from league.config.auto.situation import NetworkCosts, Situation, power_of_two
from league.config.run_config import BudgetConfig
from league.envs.facts.game_facts import GameCosts, GameFacts, Spread
from league.envs.protocol import ActionSpec, SeatGroup
from tests.league.config.auto.situations import (
    BUDGETS,
    FAST,
    SLOW,
    board_game,
    even,
    one_seat,
    one_shot,
    poker,
    settled,
    spec,
    spread,
)

KINDS = {"board": board_game(), "poker": poker(), "one_shot": one_shot(), "one_seat": one_seat()}


@pytest.mark.parametrize("game", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("budget", BUDGETS.values(), ids=BUDGETS)
@pytest.mark.parametrize("slow", [False, True], ids=["fast", "slow"])
def test_every_kind_and_budget_gives_a_valid_configuration(game: GameFacts, budget: BudgetConfig, slow: bool) -> None:
    config, reasons = settled(replace(game, costs=SLOW) if slow else game, budget=budget)
    assert all(reasons.values())
    assert not LearnerConfig.problems(config.learner)
    assert len(reasons) >= 25


def test_a_dear_game_has_few_copies_and_sees_rows_again() -> None:
    config, reasons = settled(board_game(costs=SLOW), budget=BudgetConfig(core_seconds=120.0))
    assert config.actors.num_envs <= 32
    assert "making one takes 0.02 s" in reasons["actors.num_envs"] or "fixed cost" in reasons["actors.num_envs"]
    assert config.learner.algorithm["kind"] == "ppo"  # type: ignore[index]
    assert config.learner.algorithm["epochs"] >= 4  # type: ignore[index,operator]
    assert config.learner.batch_rows * config.learner.unroll_length <= 512


@pytest.mark.parametrize(("learn_s", "most"), [(1e-5, None), (2e-2, 64), (2e-3, 256)])
def test_a_budget_of_a_handful_of_updates_makes_them_smaller(learn_s: float, most: int | None) -> None:
    """A minute holds 4,000 decisions with 93,000 actions each: four updates of the usual 1,024 move nothing."""
    dear = NetworkCosts(learn_s=learn_s)
    config, _ = settled(poker(), budget=BudgetConfig(core_seconds=60.0), network=dear)
    decisions = config.learner.batch_rows * config.learner.unroll_length
    assert decisions >= 1024 if most is None else 64 <= decisions <= most


def test_a_crowd_of_seats_plays_one_game_in_short_unrolls_where_the_budget_is_short() -> None:
    crowd = board_game(play="simultaneous", acting=500.0, turns=even(200), decisions=even(200), costs=SLOW)
    config, reasons = settled(crowd, budget=BudgetConfig(core_seconds=6.0))
    assert (config.actors.num_envs, config.learner.unroll_length) == (1, 4)
    assert "500 seats act at once" in reasons["learner.unroll_length"]
    long, _ = settled(crowd, budget=BudgetConfig(core_seconds=100_000.0))
    assert long.learner.unroll_length == 32
    pair, _ = settled(replace(crowd, acting=2.0), budget=BudgetConfig(core_seconds=6.0))
    assert (pair.actors.num_envs, pair.learner.unroll_length) == (4, 32)


def test_a_dear_deal_keeps_games_few_and_counts_as_a_part_of_every_turn() -> None:
    dealt = replace(FAST, reset_s=0.5)
    few, _ = settled(board_game(costs=dealt), budget=BudgetConfig(core_seconds=60.0))
    assert few.actors.num_envs == 4
    budget = BudgetConfig(core_seconds=3600.0)
    assert settled(board_game(costs=dealt), budget=budget)[0].actors.num_envs <= 16
    assert settled(board_game(), budget=budget)[0].actors.num_envs >= 256
    turns = board_game().turns.mean
    assert Situation(board_game(costs=dealt), budget).turn_s(64) == pytest.approx(0.5 / turns)
    assert Situation(board_game(), budget).turn_s(64) == pytest.approx(FAST.turn_s(64))


def test_a_fast_game_sees_each_row_once() -> None:
    config, _ = settled(board_game())
    assert config.actors.num_envs >= 256
    assert config.learner.algorithm["kind"] == "vtrace"  # type: ignore[index]


@pytest.mark.parametrize("make_mib", [1.0, 100.0, 2000.0])
def test_games_fit_into_memory(make_mib: float) -> None:
    costs = replace(SLOW, make_mib=make_mib, make_s=1e-4)
    config, _ = settled(board_game(costs=costs), memory_mib=8192.0)
    assert config.actors.num_envs * 3 * make_mib <= 0.15 * 8192 or config.actors.num_envs == 1


@pytest.mark.parametrize(
    ("decisions", "length"), [(even(1), 1), (even(2), 2), (even(5), 8), (even(12), 16), (even(30), 16), (even(500), 32)]
)
def test_the_unroll_follows_the_length_of_a_game(decisions, length: int) -> None:  # type: ignore[no-untyped-def]
    config, _ = settled(board_game(decisions=decisions))
    assert config.learner.unroll_length == length


def test_returns_decide_on_the_value_and_the_scoring() -> None:
    board, chips, alone = (settled(game)[0] for game in (board_game(), poker(), one_seat()))
    assert (board.network.value_output, board.learner.value_normalisation) == ("tanh", "none")
    assert (chips.network.value_output, chips.learner.value_normalisation) == ("popart", "popart")
    assert (board.league.payoff.score, board.league.payoff.return_scale) == ("wins", None)
    assert (chips.league.payoff.score, chips.league.payoff.return_scale) == ("returns", 52.0)
    assert (alone.league.payoff.score, alone.network.value_output) == (None, "popart")


@pytest.mark.parametrize(("margin", "scale"), [(0.7, 1.4), (6.0, 12.0), (7.0, None), (20.0, None)])
def test_a_range_that_random_play_hardly_enters_does_not_scale_the_payoff(margin: float, scale: float | None) -> None:
    game = poker(spec=spec(return_range=(-26.0, 26.0)), margin=spread(-margin, margin))
    config, _ = settled(game)
    assert (config.league.payoff.score, config.league.payoff.return_scale) == ("returns" if scale else None, scale)


@pytest.mark.parametrize(("values", "scores"), [((-1.0, 1.0), ["wins"] * 2), ((-7.0, 7.0), ["returns", "wins"])])
def test_few_episodes_do_not_tell_that_a_game_is_only_won_or_lost(values: tuple[float, ...], scores: list[str]) -> None:
    games = [board_game(episodes=episodes, return_values=values, margin=spread(-14, 14)) for episodes in (2, 20)]
    assert [settled(game)[0].league.payoff.score for game in games] == scores


@pytest.mark.parametrize("values", [(0.0, 1.0), (-1.0, 0.0, 1.0), (0.0, 1.0, 2.0)])
@pytest.mark.parametrize("episodes", [2, 20])
def test_rewards_on_the_way_are_counts_however_few_random_play_earned(values: tuple[float, ...], episodes: int) -> None:
    game = board_game(episodes=episodes, return_values=values, margin=spread(-1, 1), final_only=False)
    config, _ = settled(game)
    assert (config.league.payoff.score, config.network.value_output) == ("returns", "popart")


def test_a_stated_range_of_returns_is_kept() -> None:
    config, _ = settled(poker(spec=spec(return_range=(-13.0, 13.0))))
    assert config.league.payoff.score is None


def test_a_magnet_where_play_is_mixed_alone() -> None:
    costs = {name: settled(game)[0].learner.algorithm["magnet_cost"] for name, game in KINDS.items()}  # type: ignore[index]
    assert costs == {"board": 0.0, "poker": 0.1, "one_shot": 0.1, "one_seat": 0.0}


def test_the_algorithm_follows_the_kind_of_play() -> None:
    found = {name: settled(game)[0].learner for name, game in KINDS.items()}
    kinds = {name: (one.algorithm["kind"], one.algorithm.get("epochs", 1)) for name, one in found.items()}  # type: ignore[union-attr,index]
    assert kinds == {"board": ("vtrace", 1), "poker": ("appo", 2), "one_shot": ("appo", 2), "one_seat": ("ppo", 8)}
    for name in ("poker", "one_shot"):
        assert (found[name].target_every, found[name].target_rate) == (1, 0.02)
    slow = settled(poker(costs=SLOW))[0].learner.algorithm
    assert (slow["kind"], slow["epochs"]) == ("appo", 8)  # type: ignore[index]


def pursuit(**changes: Any) -> GameFacts:
    """Two teams of two seats who all act at once, 25 times a game, and are rewarded on the way."""
    made = {"play": "simultaneous", "decisions": even(25), "zero_sum": False, "final_only": False, "return_values": ()}
    return one_shot(**{**made, "spec": spec(seats=4, teams=(0, 0, 1, 1)), "returns": (spread(-1, 9),) * 4, **changes})


@pytest.mark.parametrize("costs", [FAST, SLOW], ids=["fast", "slow"])
def test_a_long_game_in_which_all_act_at_once_is_learnt_by_epochs_with_little_entropy(costs: GameCosts) -> None:
    few, many = (settled(pursuit(decisions=even(size), costs=costs))[0].learner for size in (4, 25))
    assert (few.algorithm["kind"], many.algorithm["kind"]) == ("appo", "ppo")  # type: ignore[index]
    assert many.algorithm["magnet_cost"] == 0.0 < few.algorithm["magnet_cost"]  # type: ignore[index,operator]
    assert many.algorithm["epochs"] >= 4  # type: ignore[index,operator]
    assert many.entropy_cost <= 0.1 * few.entropy_cost
    assert many.batch_rows * many.unroll_length <= 2048


def test_two_seats_who_steer_for_long_are_not_kept_mixed() -> None:
    """Entropy of a box has no bound: at the weight of a guessing game it drowns what a force brings in a long game."""
    steering = spec(actions=ActionSpec("box", shape=(2,)), has_mask=False)
    won = {"spec": steering, "zero_sum": True, "final_only": True, "return_values": (-1.0, 0.0, 1.0), "log_legal": 0.0}
    few, many = (settled(pursuit(decisions=even(size), **won))[0].learner for size in (1, 150))
    assert few.algorithm["kind"] == "appo" and many.algorithm["kind"] == "ppo"  # type: ignore[index]
    assert few.entropy_cost == many.entropy_cost == 0.01
    assert many.advantage_floor == pytest.approx(few.advantage_floor * (16 / 150) ** 0.5, rel=0.01)


@pytest.mark.parametrize(
    ("returns", "groups", "scales"),
    [
        ((spread(-1, 1), spread(-100, 100)), False, ()),
        ((spread(-1, 1), spread(-8, 8)), True, ()),
        ((spread(0, 1), spread(0, 1000)), True, (1.0, 0.001)),
        ((even(0), spread(0, 1000)), True, ()),
        ((spread(0, 0.001), spread(-0.001, 0)), False, (1000.0,)),
        ((spread(0, 0.0004), spread(0, 0.0004)), False, (1000.0,)),
        ((spread(0, 1e4), spread(0, 1e4)), False, ()),
        ((spread(-1e12, 0), spread(-1e11, 0)), False, (1e-12,)),
        ((spread(98_800, 99_200), spread(98_800, 99_200)), False, ()),
        ((spread(99_801, 100_201), spread(99_801, 100_201)), False, ()),
        ((spread(1e12, 1e12 + 4e7), spread(1e12, 1e12 + 2e7)), False, (1e-7,)),
        ((spread(1e12, 1e12 + 4), spread(1e12, 1e12 + 4)), False, (1e-6,)),
        ((spread(5, 5.004), spread(5, 5.002)), False, (1000.0,)),
        ((even(0), even(0)), True, ()),
        ((), True, ()),
    ],
)
def test_tiny_and_huge_returns_and_those_of_unequal_groups_are_brought_to_about_one(
    returns: tuple[Spread, ...], groups: bool, scales: tuple[float, ...]
) -> None:
    made = spec()
    parts = tuple(SeatGroup(name, (seat,), made.observations, made.actions) for seat, name in enumerate("ab"))
    game = poker(spec=replace(made, seat_groups=parts if groups else ()), returns=returns)
    learner = settled(game)[0].learner
    assert learner.reward_scales == pytest.approx(scales, abs=0.0)
    if scales:  # the floor is in the scaled units
        deviations = [one.deviation * scale for one, scale in zip(returns, 2 * scales, strict=False)]
        assert learner.advantage_floor == pytest.approx(0.3 * min(deviations), rel=0.01)


@pytest.mark.parametrize(
    "changes",
    [
        {"spec": spec(seats=2)},
        {"zero_sum": True},
        {"interaction": 0.3},
        {"interaction": 0.0, "final_only": True},
        {"interaction": 0.0, "spec": replace(pursuit().spec, win_draw_loss=True)},
    ],
    ids=["two seats", "zero sum", "rewards of guesses", "paid at the end", "won or lost"],
)
def test_a_guessing_game_stays_mixed_however_many_rounds_it_has(changes: dict[str, Any]) -> None:
    for rounds in (15, 20, 200):
        learner = settled(pursuit(decisions=even(rounds), **changes))[0].learner
        assert learner.algorithm["kind"] == "appo" and learner.algorithm["magnet_cost"] == 0.1  # type: ignore[index]
        assert learner.entropy_cost >= 0.3


@pytest.mark.parametrize("zero_sum", [False, True])
def test_two_seats_whose_rewards_need_no_guess_are_not_kept_mixed(zero_sum: bool) -> None:
    learner = settled(pursuit(spec=spec(seats=2), zero_sum=zero_sum, interaction=0.01))[0].learner
    assert learner.algorithm["kind"] == "ppo" and learner.algorithm["magnet_cost"] == 0.0  # type: ignore[index]
    assert learner.entropy_cost <= 0.03


def test_mixed_play_sheds_nearly_all_of_its_entropy_cost_as_it_settles() -> None:
    mixed, board = (settled(game)[0].learner for game in (poker(), board_game()))
    assert mixed.entropy_cost_end / mixed.entropy_cost < 0.1 < board.entropy_cost_end / board.entropy_cost


def test_the_floor_of_advantages_is_that_of_the_seat_with_the_least_at_stake() -> None:
    uneven = (spread(-1, 1), even(0.0), spread(-100, 100))
    assert settled(poker(returns=uneven))[0].learner.advantage_floor == settled(board_game())[0].learner.advantage_floor


def test_a_small_budget_cannot_afford_the_entropy_of_a_large_one() -> None:
    costs = [
        settled(board_game(), budget=BudgetConfig(env_steps=steps))[0].learner.entropy_cost
        for steps in (1_000, 400_000, 20_000_000)
    ]
    assert costs[0] == 0.05 and 0.08 < costs[1] < 0.11 and costs[2] == 0.4
    mixed = [settled(poker(), budget=BudgetConfig(env_steps=steps))[0].learner.entropy_cost for steps in (10**5, 10**8)]
    assert mixed[0] == mixed[1]


def test_advantages_have_a_floor_by_what_is_at_stake() -> None:
    floors = {name: settled(game)[0].learner.advantage_floor for name, game in KINDS.items()}
    assert floors == {"board": 0.15, "poker": 1.95, "one_shot": 0.15, "one_seat": 0.345}
    assert settled(poker(returns=()))[0].learner.advantage_floor == 0.0


def test_a_game_of_several_seats_is_over_when_its_time_is_up() -> None:
    found = {name: settled(game)[0].learner.bootstrap_time_limits for name, game in KINDS.items()}
    assert found == {"board": False, "poker": False, "one_shot": False, "one_seat": True}
    team = one_seat(spec=spec(seats=3, teams=(0, 0, 0)))
    assert not settled(team)[0].learner.bootstrap_time_limits


def test_so_is_that_of_a_lone_seat_that_sees_when_its_time_is_up() -> None:
    assert not settled(one_seat(limit_is_shown=True))[0].learner.bootstrap_time_limits


def test_the_average_is_longer_in_one_shot_games() -> None:
    shares = {name: settled(game)[0].learner.ema_share for name, game in KINDS.items()}
    assert shares == {"board": 0.1, "poker": 0.1, "one_shot": 0.3, "one_seat": 0.1}


def test_a_lone_seat_explores_with_little_entropy() -> None:
    alone, board, mixed = (settled(game)[0].learner for game in (one_seat(), board_game(), poker()))
    assert alone.entropy_cost < 0.1 * min(board.entropy_cost, mixed.entropy_cost)
    assert alone.entropy_cost_end < 0.2 * alone.entropy_cost


def test_many_legal_actions_want_less_entropy() -> None:
    few, many = (settled(board_game(log_legal=size))[0].learner.entropy_cost for size in (1.0, 5.0))
    assert many < few


@pytest.mark.parametrize(
    ("env_id", "name"),
    [
        ("connect_four", "connect-four"),
        ("pettingzoo:classic/tictactoe_v3", "tictactoe-v3"),
        ("my_game.py:make", "my-game"),
        ("games/Race.py:parallel_env", "race"),
        ("race.py:short_race", "short-race"),
    ],
)
def test_a_run_is_called_as_its_game(env_id: str, name: str) -> None:
    assert settled(board_game(spec=spec(env_id=env_id)))[0].name == name


def test_bots_are_those_that_can_play() -> None:
    assert settled(poker())[0].evaluation.bots == ("random",)
    assert settled(one_shot())[0].evaluation.bots == ("random",)
    assert settled(one_seat())[0].evaluation.bots == ("random",)
    assert settled(board_game())[0].evaluation.bots == ("random", "tactical", "mcts:25", "mcts:100")
    assert settled(board_game(costs=SLOW))[0].evaluation.bots == ("random", "tactical")


def test_probes_are_those_that_fit_the_game_where_their_share_pays_for_them() -> None:
    hour = BudgetConfig(core_seconds=3_600.0)
    kuhn = poker(has_tree=True, endings=5.0)
    assert settled(kuhn, budget=hour)[0].probes.kinds == ("yardsticks", "exact", "past")
    for large in (replace(kuhn, endings=1e6), replace(kuhn, endings=None), replace(kuhn, has_tree=False)):
        assert "exact" not in settled(large, budget=hour)[0].probes.kinds
    assert settled(board_game(), budget=hour)[0].probes.kinds == ("yardsticks", "past", "best_response")
    some = BudgetConfig(core_seconds=1_000.0)
    assert settled(board_game(), budget=some)[0].probes.kinds == ("yardsticks", "past")
    without_bots, reasons = settled(board_game(), {"evaluation": {"bots": []}}, budget=some)
    assert without_bots.probes.kinds == ("past",) and reasons["probes.kinds"] == "its own past"
    assert settled(one_seat(), budget=hour)[0].probes.kinds == ("mean_return",)
    short, reasons = settled(board_game(), budget=BudgetConfig(core_seconds=60.0))
    assert short.probes.kinds == () and "2.4 core-seconds" in reasons["probes.kinds"]
    assert settled(board_game(), is_exact=True)[0].probes.kinds == ()


def test_given_values_win_and_others_follow_them() -> None:
    given = {
        "actors": {"num_envs": 10},
        "network": {"value_output": "linear"},
        "league": {"players": [{"role": "main_agent", "gate": {"timeout_steps": 77}}, {"role": "league_exploiter"}]},
        "learner": {"algorithm": "appo", "entropy_cost": 0.8},
    }
    config, reasons = settled(board_game(), given)
    assert config.actors.num_envs == 10
    assert (config.network.value_output, config.learner.value_normalisation) == ("linear", "none")
    assert [group.role for group in config.league.players] == ["main_agent", "league_exploiter"]
    assert config.league.players[0].gate.timeout_steps == 77
    assert config.league.players[0].gate.min_steps <= 77
    assert config.league.players[1].gate.reset_to == "main"
    assert config.learner.algorithm["kind"] == "appo"  # type: ignore[index]
    assert config.learner.entropy_cost_end == 0.2
    missing = {"actors.num_envs", "network.value_output", "league.players", "learner.algorithm.kind"}
    assert not missing & set(reasons)
    assert "league.players.1.gate.min_steps" in reasons


def test_a_preset_keeps_its_players_and_takes_the_cadence() -> None:
    config, reasons = settled(board_game(), {"league": {"preset": "self_play"}})
    assert [group.matchmaker_name for group in config.league.players] == ["self_play"]
    assert config.league.players[0].gate.timeout_steps == config.league.population.save_steps
    assert "league.population.save_steps" in reasons


def test_options_of_a_given_algorithm_stay_its_own() -> None:
    config, _ = settled(board_game(), {"learner": {"algorithm": {"epochs": 3}}})
    assert config.learner.algorithm["kind"] == "ppo"  # type: ignore[index]
    assert config.learner.algorithm["epochs"] == 3  # type: ignore[index]


@pytest.mark.parametrize(("value", "rounded"), [(1.4, 1), (1.5, 2), (90.0, 64), (91.0, 128), (1e9, 1024), (0.0, 1)])
def test_sizes_are_rounded_to_powers_of_two_within_bounds(value: float, rounded: int) -> None:
    assert power_of_two(value, low=1, high=1024) == rounded
