"""Pursuit: the rules by a slow transcription, both sides alike, a circle of conventions, and the options."""

from __future__ import annotations

import numpy as np
import pytest

from league.envs.games.pursuit import COLUMN_STEPS, NOBODY, ROW_STEPS, Pursuit
from league.envs.protocol import EnvError
from tests.envs.games.pursuit_teams import TEAMS, Hill, Posts, play

OPTIONS = [{}, {"seats": 2, "steps": 7, "width": 7, "hill": 3, "tag": 0.5}, {"seats": 4, "steps": 30, "tag": 2}]


class SlowGame:
    """One game, seat by seat, by the words of the rules."""

    def __init__(self, *, seats: int, width: int, hill: float, tag: float) -> None:
        self.seats, self.width, self.hill, self.tag = seats, width, hill, tag
        self.places = [(2 * seat + 1, 0) for seat in range(seats)] + [
            (2 * seat + 1, width - 1) for seat in range(seats)
        ]
        self.starts, self.holders = list(self.places), [NOBODY] * seats

    def on(self, team: int, place: tuple[int, int]) -> int:
        return self.places[team * self.seats : (team + 1) * self.seats].count(place)

    def step(self, actions: list[int]) -> float:
        """What the first team earns less what the second does."""
        for seat, action in enumerate(actions):
            row, column = self.places[seat]
            forward = 1 if seat < self.seats else -1
            row, column = row + ROW_STEPS[action], column + forward * COLUMN_STEPS[action]
            height = 2 * self.seats + 3
            self.places[seat] = min(max(row, 0), height - 1), min(max(column, 0), self.width - 1)
        earned, caught = [0.0, 0.0], []
        for seat, place in enumerate(self.places):
            team = seat // self.seats
            at_home = place[1] == (0, self.width - 1)[team]
            if not at_home and self.on(1 - team, place) >= 2 and self.on(1 - team, place) > self.on(team, place):
                caught.append(seat)
                earned[1 - team] += self.tag
        for seat in caught:
            self.places[seat] = self.starts[seat]
        middle = self.width // 2
        for post in range(self.seats):
            numbers = [self.on(team, (2 * post, middle)) for team in (0, 1)]
            if numbers[0] != numbers[1]:
                self.holders[post] = 0 if numbers[0] > numbers[1] else 1
            elif numbers == [0, 0]:
                self.holders[post] = NOBODY
            if self.holders[post] != NOBODY:
                earned[self.holders[post]] += 1
        hill = [(row, middle + side) for row in range(2 * self.seats, 2 * self.seats + 3) for side in (-1, 0, 1)]
        numbers = [sum(self.on(team, place) for place in hill) for team in (0, 1)]
        for team in (0, 1):
            if numbers[team] == self.seats and numbers[1 - team] == 0:
                earned[team] += self.hill
        return earned[0] - earned[1]


@pytest.mark.parametrize("options", OPTIONS)
def test_a_step_is_that_of_the_rules(options: dict) -> None:
    env, rng = Pursuit(num_envs=8, **options), np.random.default_rng(3)
    pays = {"hill": env.rules.hill, "tag": env.rules.tag}
    shown = set()
    for _ in range(12):
        turn = env.reset(0)
        slow = [SlowGame(seats=env.board.seats, width=env.board.width, **pays) for _ in range(8)]
        totals = np.zeros(8)
        lean = rng.dirichlet(np.ones(5))  # some games drift to one side of the board, where seats meet
        for step in range(env.rules.steps):
            actions = rng.choice(5, (8, 2 * env.board.seats), p=lean)
            turn = env.step(actions.ravel())
            margins = np.array([game.step(row.tolist()) for game, row in zip(slow, actions, strict=True)])
            shown |= set(margins.tolist())
            totals += margins
            assert np.allclose(turn.rewards[:, 0], margins / env.rules.steps)
            assert (turn.rewards[:, : env.board.seats] == -turn.rewards[:, env.board.seats :]).all()
            if step < env.rules.steps - 1:
                assert [list(divmod(cell, env.board.width)) for cell in env.cells[5].tolist()] == [
                    list(place) for place in slow[5].places
                ]
                assert env.holders.tolist() == [game.holders for game in slow]
        assert turn.terminated.all() and np.allclose(turn.returns[:, 0], totals / env.rules.steps, atol=1e-5)
    assert len(shown) >= 4


def test_both_teams_see_the_same_game_from_their_own_side() -> None:
    env, rng = Pursuit(num_envs=16), np.random.default_rng(0)
    exchanged = Pursuit(num_envs=16)
    one, two = env.reset(0), exchanged.reset(0)
    for _ in range(45):
        by_team = [turn.obs["state"].reshape(16, 2, 3, -1) for turn in (one, two)]
        assert np.array_equal(by_team[0], by_team[1][:, ::-1])
        actions = rng.integers(0, 5, (16, 2, 3))
        one, two = env.step(actions.ravel()), exchanged.step(actions[:, ::-1].ravel())
        assert np.array_equal(one.rewards, -two.rewards)


def test_a_seat_sees_itself_both_teams_the_posts_the_time_and_its_number() -> None:
    env = Pursuit(num_envs=1)
    env.reset(0)
    forward = np.array([4, 1, 4, 4, 0, 4])
    for actions in (forward, np.array([4, 0, 4, 0, 0, 0]), np.array([1, 0, 1, 0, 0, 0])):
        turn = env.step(actions)
    cells = np.split(turn.obs["state"][:, : 3 * 45].reshape(6, 3, 9, 5), 3, axis=1)
    own, mates, others = (part[:, 0] for part in cells)
    assert np.argwhere(own[0]).tolist() == [[0, 2]] and np.argwhere(own[3]).tolist() == [[1, 1]]
    assert np.argwhere(mates[2]).tolist() == [[0, 2], [2, 0], [4, 2]]
    assert np.argwhere(others[0]).tolist() == [[1, 3], [3, 4], [5, 3]]
    rest = turn.obs["state"][:, 3 * 45 :]
    assert rest[0].tolist() == pytest.approx([1, 0, 1, 0, 0, 0, 3 / 20, 1, 0, 0])
    assert rest[4].tolist() == pytest.approx([0, 0, 0, 1, 0, 1, 3 / 20, 0, 1, 0])


def test_two_catch_one_who_is_safe_at_home() -> None:
    env = Pursuit(num_envs=1)
    env.reset(0)
    env.load({**env.save(), "cells": np.array([[11, 11, 40, 12, 44, 24]])})
    turn = env.step(np.array([0, 0, 0, 4, 0, 0]))  # the right team's first seat walks onto the cell of two
    assert env.cells[0].tolist() == [11, 11, 40, 9, 44, 24]
    assert turn.rewards[0, 0] == pytest.approx(1 / 20)
    env.load({**env.save(), "cells": np.array([[8, 8, 40, 9, 44, 24]])})
    env.step(np.array([4, 4, 0, 0, 0, 0]))  # both walk into its own first column
    assert env.cells[0, 3] == 9


def test_conventions_go_round_in_a_circle() -> None:
    posts, hill, spoilers = TEAMS["posts"], TEAMS["hill"], TEAMS["spoilers"]
    assert play(hill, posts, games=2) > 0.5
    assert play(spoilers, hill, games=200) > 0.1
    assert play(posts, spoilers, games=40) > 0.5


@pytest.mark.parametrize("number", [1, 2])
def test_fewer_than_the_whole_team_lose_by_going_to_the_hill(number: int) -> None:
    class Some(Posts):
        def one(self, env: Pursuit, seat: int, cell: int, game: int) -> int:
            return (Hill if seat % env.board.seats < number else Posts).one(self, env, seat, cell, game)  # type: ignore[arg-type]

    assert play(Some(), Posts(), games=2) < -0.5


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"seats": 1}, "seats is 1; give a whole number from 2 to 5"),
        ({"steps": 0}, "steps is 0"),
        ({"width": 6}, "width is 6; give an odd number"),
        ({"width": True}, "width is True"),
        ({"hill": float("nan")}, "hill is nan; give a number from 0 to 1000"),
        ({"tag": -1}, "tag is -1"),
        ({"num_envs": 0}, "num_envs is 0"),
    ],
)
def test_a_bad_option_is_one_sentence(options: dict, words: str) -> None:
    with pytest.raises(EnvError, match=words):
        Pursuit(**{"num_envs": 1, **options})


def test_an_illegal_walk_names_seat_and_game() -> None:
    env = Pursuit(num_envs=2)
    env.reset(0)
    with pytest.raises(EnvError, match="action 5 of seat 1 is illegal in game 1; legal are 0 to 4"):
        env.step(np.array([0] * 7 + [5] + [0] * 4))
