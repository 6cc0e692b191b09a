"""An evaluation within a time: what is over in time counts, every meeting gets its part, dear bots are left out."""

from __future__ import annotations

import functools
import itertools
import re
from pathlib import Path

import pytest

from league.envs.protocol import EnvConfig, EnvError
from league.judge.contenders.bots import bot_policy
from league.judge.matches import bots_to_play
from league.judge.matches import timed as timed_module
from league.judge.matches.evaluation import evaluate_run
from league.judge.matches.match import Match
from league.judge.matches.timed import Deadline, Meeting, affordable, play_all
from tests.league.judge.matches.eval_runs import MadeRun, RulePolicy, constant_network, first_legal

FOUR = EnvConfig("connect_four")


class Clock:
    """Seconds that pass when somebody looks."""

    def __init__(self, tick: float) -> None:
        self.now = 0.0
        self._tick = tick

    def __call__(self) -> float:
        self.now += self._tick
        return self.now


def matches(*names: str) -> dict[Meeting, Match]:
    home = RulePolicy(first_legal)
    return {("first", name): Match(FOUR, [home, bot_policy(name, seed=1)], seed=1) for name in names}


BOTS = ("random", "tactical")


def test_with_time_enough_every_game_is_played() -> None:
    deadline = Deadline.after(1e9, clock=Clock(0.001))
    results = play_all(matches(*BOTS), games=100, teams=2, deadline=deadline)
    assert {meeting[1]: result.games for meeting, result in results.items()} == dict.fromkeys(BOTS, 100)


def test_when_the_time_is_over_every_meeting_has_games_and_nothing_runs_on() -> None:
    clock = Clock(0.01)
    deadline = Deadline.after(1.5, clock=clock)
    results = play_all(matches(*BOTS), games=10_000, teams=2, deadline=deadline)
    assert {meeting[1] for meeting in results} == set(BOTS)
    assert all(2 <= result.games < 10_000 for result in results.values())
    assert clock.now < 2.0


def test_no_time_at_all_plays_nothing() -> None:
    deadline = Deadline.after(0.0, clock=Clock(0.01))
    assert play_all(matches(*BOTS), games=100, teams=2, deadline=deadline) == {}


def test_rounds_add_up_to_all_games() -> None:
    deadline = Deadline.after(1e9, clock=Clock(0.001))
    whole = play_all(matches("random"), games=42, teams=2, deadline=None)
    rounds = play_all(matches("random"), games=42, teams=2, deadline=deadline)
    assert [result.games for result in (*whole.values(), *rounds.values())] == [42, 42]
    assert rounds["first", "random"].num_groups == 21


def test_a_bot_too_dear_for_the_time_is_left_out_with_a_sentence() -> None:
    bots = ("random", "mcts:100000")
    kept, notes = affordable(FOUR, bots, limit_s=2.0, players=3, games=100, decisions=18.0, seed=0)
    assert kept == ("random",)
    assert notes[0].startswith("mcts:100000 is left out: 10 games against each")
    left = re.search(r"and it has ([0-9.]+) s$", notes[0])
    assert left and 1.0 <= float(left[1]) <= 2.0, "its part at least"


def test_a_dear_bot_is_timed_in_one_game_and_none_after_the_end_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    timed, now = [], [0.0]

    def moves(env: EnvConfig, bot: str, *, seed: int, num_envs: int, clock: object) -> float:
        timed.append((bot, num_envs))
        now[0] += 1.5 if bot == "tactical" else 0.0
        return 1.5 if bot == "tactical" else 1e-6

    monkeypatch.setattr(timed_module, "_timed_moves", moves)
    kept, notes = affordable(
        FOUR,
        ["random", "tactical", "mcts:25"],
        limit_s=1.0,
        players=1,
        games=100,
        decisions=20.0,
        seed=0,
        clock=lambda: now[0],
    )
    assert kept == ("random",)
    assert timed == [("random", 1), ("random", 8), ("tactical", 1)]
    assert notes[0] == "mcts:25 is left out: the time was over before a move of it was timed"


def test_a_cheap_bot_leaves_its_time_to_the_dear_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The headline of a report is what its dearest yardstick says."""
    cost = {"random": 1e-6, "tactical": 1e-5, "mcts:25": 0.006, "mcts:100": 0.025}
    monkeypatch.setattr(timed_module, "seconds_a_move", lambda env, bot, **_: cost[bot])
    for limit_s, kept in ((36.0, tuple(cost)), (12.0, ("random", "tactical", "mcts:25"))):
        found, _ = affordable(FOUR, list(cost), limit_s=limit_s, players=2, games=200, decisions=20.0, seed=0)
        assert found == kept, limit_s
    _, notes = affordable(FOUR, ["random", "mcts:100"], limit_s=2.0, players=3, games=100, decisions=18.0, seed=0)
    assert notes[0].endswith("would take it about 14 s, and it has 2 s"), "next to all of it"
    _, notes = affordable(FOUR, ["mcts:100"], limit_s=13.4, players=3, games=100, decisions=17.8, seed=0)
    assert notes == (), "17.8 decisions of 0.025 s in 30 games are 13.35 s"
    _, notes = affordable(FOUR, ["mcts:100"], limit_s=13.2, players=3, games=100, decisions=17.8, seed=0)
    assert notes[0].endswith("would take it about 13.4 s, and it has 13.2 s"), "13 of both would say nothing"


def test_a_search_whose_simulation_takes_seconds_is_timed_by_one_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    timed = []

    def moves(env: EnvConfig, bot: str, *, seed: int, num_envs: int, clock: object) -> float:
        timed.append((bot, num_envs))
        return 2.5

    monkeypatch.setattr(timed_module, "_timed_moves", moves)
    assert timed_module.seconds_a_move(FOUR, "bot:mcts:100", seed=0, enough_s=1e6) == 250.0
    assert timed == [("mcts:1", 1)]


def test_searches_answer_together_for_one_simulation_where_they_must_show_that_they_can_play(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    moved, plain = [], bots_to_play.bot_policy

    def noted(name: str, *, seed: int) -> object:
        policy = plain(name, seed=seed)
        act = policy.act
        monkeypatch.setattr(policy, "act", lambda *given: (moved.append(name), act(*given))[1])
        return policy

    monkeypatch.setattr(bots_to_play, "bot_policy", noted)
    bots = ("mcts:1000000", "random", "bot:mcts:7")
    assert bots_to_play.fitting_bots(FOUR, bots, seed=0) == (bots, ())
    assert moved == ["mcts:1", "random"]
    with pytest.raises(EnvError, match="1 or more"):
        bots_to_play.fitting_bots(FOUR, ["mcts:0"], seed=0)
    hidden, (first, second) = bots_to_play.fitting_bots(EnvConfig("kuhn_poker"), ["mcts:5", "mcts:9"], seed=0)
    assert hidden == () and first.startswith("mcts:5 does not play kuhn_poker: ")
    assert second == first.replace("mcts:5", "mcts:9")


def test_an_evaluation_with_a_limit_says_that_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = MadeRun(tmp_path / "run", env=FOUR)
    made.snapshot("main-0", constant_network(made.config, action=1))
    clock = Clock(0.01)
    monkeypatch.setattr(
        "league.judge.matches.evaluation.Deadline.after", lambda limit_s: Deadline(limit_s, limit_s, clock)
    )
    report = evaluate_run(made.close(), players=["best"], bots=["random"], games=10_000, limit_s=1.0)
    assert 0 < report.pairs[0].games < 10_000
    assert "stopped at the time limit of 1 s" in report.notes[-1]


def test_the_cost_of_a_bot_is_in_the_seconds_of_the_clock_that_is_given() -> None:
    """On a loaded machine the wall clock runs on; a limit in processor seconds does not."""
    for step_s, kept in ((100.0, ()), (0.0, ("random",))):
        ticks = itertools.count(0.0, step_s)
        clock = functools.partial(next, ticks)
        assert (
            affordable(FOUR, ["random"], limit_s=2.0, players=1, games=100, decisions=1.0, seed=0, clock=clock)[0]
            == kept
        )
