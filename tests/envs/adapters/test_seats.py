"""Teams and groups of seats: patterns, padding to one form and back, late and early seats, what team mates saw."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from league.agents.acting.arena import Arena
from league.agents.acting.policy import BotPolicy
from league.agents.unroll.unroll import Unrolls, UnrollSpec, concatenate
from league.core.state.records import Assignment
from league.envs.adapters.pettingzoo import ParallelEnv
from league.envs.bots import RandomBot
from league.envs.conformance import check_turn
from league.envs.protocol import SEAT_GROUP, EnvConfig, EnvError
from league.envs.registry import make
from league.envs.seat_plan import SeatPlan, own_teams, suggested_teams, teams_of
from tests.envs.oracles.raw_roles import RawRoles

SEATS = ("red_0", "red_1", "blue_0", "blue_1")
DISCRETE = {"red_0": spaces.Discrete(2), "red_1": spaces.Discrete(2), "blue_0": spaces.Discrete(4, start=3)}
SIZES = {"red_0": 3, "red_1": 3, "blue_0": 5}


def roles(seat_plan: SeatPlan | None = None, *, num_envs: int = 1, **options: Any) -> ParallelEnv:
    options = {"sizes": SIZES, "actions": DISCRETE, **options}
    return ParallelEnv.of(
        lambda: RawRoles(**options), env_id="roles", num_envs=num_envs, seat_plan=seat_plan or SeatPlan()
    )


def equal_seats(seats: tuple[str, ...], **options: Any) -> ParallelEnv:
    return roles(**{"sizes": dict.fromkeys(seats, 3), "actions": dict.fromkeys(seats, spaces.Discrete(2)), **options})


def test_teams_are_given_by_names_and_patterns() -> None:
    assert teams_of(SEATS, [["red_*"], ["blue_*"]], env_id="x") == (0, 0, 1, 1)
    assert teams_of(SEATS, [["red_0", "blue_1"], ["*_1", "blue_0"][1:], ["red_1"]], env_id="x") == (0, 2, 1, 0)
    assert roles(SeatPlan(teams=(("red_?",), ("blue_0",)))).spec.teams == (0, 0, 1)
    assert roles().spec.teams == (0, 1, 2), "no team is ever made up"


@pytest.mark.parametrize(
    ("teams", "words"),
    [
        (
            [["red_*"], ["green_*"]],
            "env.teams: 'green_\\*' matches no seat; the seats are red_0, red_1, blue_0, blue_1",
        ),
        ([["red_*"], ["*"]], "env.teams: seat red_0 is in two teams, the second by '\\*'"),
        ([["red_*"], ["blue_0"]], "env.teams: blue_1 in no team"),
    ],
)
def test_teams_that_do_not_fit_are_refused(teams: list[list[str]], words: str) -> None:
    with pytest.raises(EnvError, match=words):
        teams_of(SEATS, teams, env_id="x")


def test_an_envs_own_teams_count_where_they_name_every_seat_once() -> None:
    assert own_teams([["red_0", "red_1"], ["blue_0", "blue_1"]], SEATS) == (0, 0, 1, 1)
    assert own_teams({"red_0": "r", "red_1": "r", "blue_0": "b", "blue_1": "r"}, SEATS) == (0, 0, 1, 0)
    for other in (None, 2, "red", ["red", "blue"], [["red_0"], ["blue_0"]], {"red_0": 1}, [list(SEATS), ["red_0"]]):
        assert own_teams(other, SEATS) is None

    class Stated(RawRoles):
        teams = (("red_0", "blue_0"), ("red_1",))

    env = ParallelEnv.of(lambda: Stated(SIZES, DISCRETE), env_id="stated", num_envs=1)
    assert env.spec.teams == (0, 1, 0)


def test_prefixes_are_a_suggestion() -> None:
    assert suggested_teams(roles().spec) == (("red_*",), ("blue_0",))
    assert suggested_teams(roles(SeatPlan(teams=(("red_*",), ("blue_*",)))).spec) == ()


@pytest.mark.parametrize(
    ("seats", "teams"),
    [
        (("red0", "red1", "blue0", "blue1"), (("red*",), ("blue*",))),
        (("adversary", "agent_0", "agent_1"), (("adversary",), ("agent_*",))),
        (("wolf-1", "wolf-2", "sheep-1"), (("wolf-*",), ("sheep-1",))),
    ],
    ids=str,
)
def test_a_suggestion_fits_the_seats(seats: tuple[str, ...], teams: tuple[tuple[str, ...], ...]) -> None:
    spec = equal_seats(seats).spec
    assert suggested_teams(spec) == teams
    assert len(set(teams_of(seats, teams, env_id="x"))) == 2


def test_names_with_the_signs_of_patterns_name_themselves() -> None:
    seats = ("a[0]", "a[1]", "b?", "b*")
    assert teams_of(seats, (("a[0]", "a[1]"), ("b?", "b*")), env_id="x") == (0, 0, 1, 1)
    assert own_teams({0: "x", 1: "y", 2: "x"}, ("0", "1", "2")) == (0, 1, 0)


def test_seats_named_in_another_script_keep_networks_of_their_own() -> None:
    env = ParallelEnv.of(
        lambda: RawRoles({"白": 3, "黒": 5}, dict.fromkeys("白黒", spaces.Discrete(2))), env_id="x", num_envs=1
    )
    assert [group.name for group in env.spec.seat_groups] == ["seat-0", "seat-1"]


def test_keys_for_seats_are_refused_where_a_game_says_it_itself() -> None:
    for env_id in ("connect_four", "gymnasium:CartPole-v1", "league.envs.games.connect_four:ConnectFour"):
        with pytest.raises(EnvError, match=r"env\.teams cannot be set"):
            make(EnvConfig(env_id, teams=(("player_*",),)), num_envs=1)


def test_seats_with_other_spaces_make_groups_with_one_padded_form() -> None:
    env = roles(num_envs=2)
    spec = env.spec
    assert [(group.name, group.seats) for group in spec.seat_groups] == [("red", (0, 1)), ("blue", (2,))]
    assert [group.observations["observation"].shape for group in spec.seat_groups] == [(3,), (5,)]
    assert [group.actions.num_actions for group in spec.seat_groups] == [2, 4]
    assert (spec.observations["observation"].shape, spec.observations[SEAT_GROUP].shape) == ((5,), (2,))
    assert (spec.actions.num_actions, spec.has_mask) == (4, True)
    turn = env.reset(0)
    for step in range(14):  # rows are reused by other seats: padding must be written again
        assert not list(check_turn(spec, turn, num_envs=2))
        for row, seat in enumerate(turn.seat):
            own = [100 * (seat + 1) + step % 6] * (5 if seat == 2 else 3)
            assert turn.obs["observation"][row].tolist() == own + [0] * (5 - len(own))
            assert turn.obs[SEAT_GROUP][row].tolist() == [seat < 2, seat == 2]
            assert turn.action_mask is not None
            assert turn.action_mask[row].tolist() == [True, True, seat == 2, seat == 2]
        turn = env.step(np.where(turn.seat == 2, 3, 1))
    with pytest.raises(EnvError, match="seat red_0: action 2 is illegal"):
        env.step(np.full(6, 2))


def test_policies_group_seats_as_asked() -> None:
    same = {"sizes": dict.fromkeys(SIZES, 2), "actions": dict.fromkeys(SIZES, spaces.Discrete(2))}
    assert roles(**same).spec.seat_groups == ()
    own = roles(SeatPlan(policies={"first": ("red_0",), "rest": ("red_1", "blue_*")}), **same).spec
    assert [(group.name, group.seats) for group in own.seat_groups] == [("first", (0,)), ("rest", (1, 2))]
    shared = roles(SeatPlan(policies={"all": ("*",)}))
    assert shared.spec.seat_groups == ()
    assert SEAT_GROUP not in shared.spec.observations
    assert shared.reset(0).obs["observation"][0].tolist() == [100, 100, 100, 0, 0]
    with pytest.raises(EnvError, match=r"env.policies: blue_0 in no group"):
        roles(SeatPlan(policies={"red": ("red_*",)}))
    with pytest.raises(EnvError, match=r"'a\.b' is no name of a group"):
        roles(SeatPlan(policies={"a.b": ("*",)}))


def box(low: float, high: float, *shape: int) -> spaces.Box:
    return spaces.Box(low, high, shape, np.float32)


@pytest.mark.parametrize(
    ("actions", "padded"),
    [
        ({"red_0": box(-2, 2, 2), "red_1": box(-2, 2, 2), "blue_0": box(-2, 2, 3)}, (-2, 2, (3,))),
        ({"red_0": box(0, 1, 2), "red_1": box(0, 1, 2), "blue_0": box(-5, 5, 1)}, (-1, 1, (2,))),
    ],
)
def test_boxes_are_padded_and_come_back_in_their_own_bounds(
    actions: Mapping[str, spaces.Space], padded: tuple[float, float, tuple[int, ...]]
) -> None:
    env = roles(actions=dict(actions))
    code = env.spec.actions
    assert (code.low, code.high, code.shape) == padded
    assert not env.spec.has_mask
    got: list[dict[str, Any]] = []
    env._games[0].step, step = (lambda given: (got.append(given), step(given))[1]), env._games[0].step
    env.reset(0)
    env.step(np.full((3, *code.shape), code.high, np.float32))
    assert {agent: action.tolist() for agent, action in got[0].items()} == {
        agent: space.high.tolist() for agent, space in actions.items()
    }


def test_sub_actions_beside_numbered_ones_are_padded_with_unused_ones() -> None:
    actions = {"red_0": spaces.MultiDiscrete([2, 3]), "red_1": spaces.Discrete(4), "blue_0": spaces.MultiBinary(1)}
    env = roles(actions=actions)
    assert env.spec.actions.nvec == (4, 3)
    turn, bot = env.reset(0), RandomBot(seed=0)
    assert turn.action_mask is not None
    legal = ["1100111", "1111000", "1100000"]
    assert ["".join(map(str, row.astype(int))) for row in turn.action_mask] == legal
    for _ in range(20):
        turn = env.step(bot.act(env, turn, np.arange(3)))  # the raw game asserts that each action is in its space


def test_seats_that_act_in_boxes_and_numbers_are_refused() -> None:
    with pytest.raises(EnvError, match="some seats act in a Box, others in a space of another kind"):
        roles(actions={**DISCRETE, "blue_0": box(-1, 1, 2)})


def test_a_fork_of_a_game_with_groups_shows_the_same() -> None:
    env = roles(num_envs=2, lives={"red_1": (0, 2)})
    env.reset(0)
    for _ in range(3):
        turn = env.step(np.zeros(len(env._builder.slots[0]), np.int64))
    forked, shown = env.fork(np.array([1]))
    assert shown.seat.tolist() == [0, 2]
    for name, rows in turn.obs.items():
        assert np.array_equal(shown.obs[name], rows[turn.env_index == 1])
    assert forked.step(np.zeros(2, np.int64)).obs["observation"][1].tolist() == [304] * 5


def test_team_mates_are_shown_to_the_value_alone() -> None:
    env = roles(SeatPlan(teams=(("red_*",), ("blue_0",)), team_observations=True), lives={"red_1": (2, 4)}, cut=True)
    spec = env.spec
    assert spec.value_fields == ("team.observation", "team.seat_group")
    assert spec.observations["team.observation"].shape == (1, 5)
    assert all("team.observation" in group.observations for group in spec.seat_groups)
    turn = env.reset(0)
    seen = []
    for _ in range(6):
        assert not list(check_turn(spec, turn, num_envs=1))
        seen.append({int(seat): turn.obs["team.observation"][row, 0, 0] for row, seat in enumerate(turn.seat)})
        turn = env.step(np.zeros(len(turn.seat), np.int64))
    assert seen[:2] == [{0: 0, 2: 0}] * 2, "a seat that is not there yet is zeros, and blue has nobody"
    assert seen[2:4] == [{0: 202, 1: 102, 2: 0}, {0: 203, 1: 103, 2: 0}]
    assert turn.final is not None
    assert turn.final.seat.tolist() == [0, 2]
    assert turn.obs["team.observation"][:, 0, 0].tolist() == [0, 0], "the next episode knows nothing of the last"
    with pytest.raises(EnvError, match="no team has two seats"):
        roles(SeatPlan(team_observations=True))


def played(env: ParallelEnv, *, steps: int, unroll_length: int = 3) -> Unrolls:
    """Unrolls of a random player that holds every seat."""
    arena = Arena(env, UnrollSpec(env.spec, unroll_length), seed=0)
    seats = env.spec.num_seats
    table = [Assignment(("p",) * seats, (True,) * seats, 1.0)]
    return concatenate(list(arena.run(table, {"p": BotPolicy(RandomBot(seed=0))}, steps=steps)))


@pytest.mark.parametrize("cut", [False, True])
def test_seats_that_leave_early_and_come_late_cost_their_own_decisions_only(cut: bool) -> None:
    lives = {"red_0": (0, 2), "blue_0": (3, 6)}
    env = roles(lives=lives, cut=cut, blows=[("red_0", 4, -7.0)])
    raw = env._games[0]
    unrolls = played(env, steps=36, unroll_length=4)
    number = {"red_0": 1, "red_1": 2, "blue_0": 3}
    first = unrolls.obs["observation"][:, :-1, 0]
    decided = {seat: first[unrolls.valid & (first // 100 == digit)] % 100 for seat, digit in number.items()}
    for seat, steps in {"red_0": [0, 1], "red_1": [0, 1, 2, 3, 4, 5], "blue_0": [3, 4, 5]}.items():
        assert set(decided[seat].tolist()) == set(steps)
        assert raw.decisions.count(seat) == 6 * len(steps), "the game was asked for no other decision"
    assert unrolls.valid.all() == (not cut), "nothing beside decisions is recorded but marks of truncations"


@pytest.mark.parametrize("cut", [False, True])
def test_what_a_seat_earns_after_it_is_gone_belongs_to_its_last_decision(cut: bool) -> None:
    env = roles(lives={"red_0": (0, 2)}, cut=cut, blows=[("red_0", 2, 10.0), ("red_0", 4, -7.0)])
    unrolls = played(env, steps=36)
    own = unrolls.valid & (unrolls.obs["observation"][:, :-1, 0] // 100 == 1)
    step = unrolls.obs["observation"][:, :-1, 0] % 100
    assert set(unrolls.rewards[own & (step == 0)].tolist()) == {1.0}
    assert set(unrolls.rewards[own & (step == 1)].tolist()) == {3.0}
    assert set(unrolls.discounts[own & (step == 1)].tolist()) == {0.0}, "it is out, whatever ends the others' episode"
    others = unrolls.valid & (unrolls.obs["observation"][:, :-1, 0] // 100 > 1)
    assert set(unrolls.discounts[others & (step == 5)].tolist()) == {1.0 if cut else 0.0}
