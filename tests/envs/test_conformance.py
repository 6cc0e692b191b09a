"""Every built-in env keeps the contract, and each way of breaking it is found."""

from __future__ import annotations

import collections
import dataclasses
import itertools
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from league.envs import conformance
from league.envs.bots import RandomBot
from league.envs.conformance import MIN_STEPS, check_env
from league.envs.games.connect_four import ConnectFour
from league.envs.protocol import ArraySpec, EnvConfig, EnvError, Turn
from league.envs.registry import BUILT_IN
from league.envs.sub_actions import sub_actions_are_legal
from tests.envs.counting_games import SimultaneousProbe, TurnProbe
from tests.envs.probe_sub_actions import SubActionsProbe
from tests.envs.uncopyable_games import HELD

OUTSIDE = [
    "pettingzoo:classic/connect_four_v3",
    "pettingzoo:classic/rps_v2",
    "gymnasium:CartPole-v1",
    "gymnasium:Pendulum-v1",
]
VARIANTS = [
    EnvConfig("connect_four", {"opening_plies": 3}),
    EnvConfig("matrix_game", {"payoffs": [[1, 2, 3], [4, 5, 6]]}),
    EnvConfig("dark_hex", {"abrupt": True, "cols": 4}),
    EnvConfig("pursuit", {"seats": 2, "steps": 9, "width": 7, "hill": 0, "tag": 2.5}),
    EnvConfig("probe_turns", {"num_seats": 3, "episode_length": [2, 5, 1], "truncate": True}),
    EnvConfig("probe_simultaneous", {"num_seats": 4, "truncate": True}),
    EnvConfig("probe_mask", {"num_seats": 1}),
    EnvConfig("probe_sub_actions", {"num_seats": 2, "nvec": [2, 2, 3, 5], "masked": True}),
]


def faults_of(config: EnvConfig, **how: Any) -> list[str]:
    return [f"{finding.rule}: {finding.text}" for finding in check_env(config, **how) if finding.kind == "fault"]


@pytest.mark.parametrize("config", [*map(EnvConfig, [*BUILT_IN, *OUTSIDE]), *VARIANTS], ids=lambda config: config.id)
def test_every_env_keeps_the_contract(config: EnvConfig) -> None:
    assert faults_of(config) == []


def test_a_dtype_that_nothing_can_be_learnt_from_is_a_fault() -> None:
    env = TurnProbe(num_envs=1)
    fields = {**env.spec.observations, "wide": ArraySpec((), "uint16")}
    turn = env.reset(0)
    turn = dataclasses.replace(turn, obs={**turn.obs, "wide": np.zeros(1, np.uint16)})
    found = dict(conformance.check_turn(dataclasses.replace(env.spec, observations=fields), turn, num_envs=1))
    assert list(found) == ["fields have a dtype that travels"] and "'wide' is uint16" in found.popitem()[1]
    large = dataclasses.replace(turn, rewards=turn.rewards + 1e20, obs=env.reset(0).obs)
    assert list(dict(conformance.check_turn(env.spec, large, num_envs=1))) == ["rewards are bounded"]


def test_a_check_lists_seats_observations_actions_and_copies() -> None:
    findings = check_env(EnvConfig("connect_four"), num_envs=4, steps=100)
    facts = {finding.rule: finding.text for finding in findings}
    assert facts["seats"] == "2: first, second; every seat for itself"
    assert facts["observations"] == "board bool [2, 6, 7]"
    assert facts["actions"] == "7 numbered actions, some masked"
    assert facts["copies"] == "games can be copied and saved"


def test_of_large_observations_fewer_turns_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("league.envs.conformance.MAX_KEPT_BYTES", 4 * 2 * 6 * 7 * 10)  # ten turns of four games
    facts = {found.rule: found.text for found in check_env(EnvConfig("connect_four"), num_envs=4, steps=100)}
    assert facts["episodes of the check"].startswith("1 at random, 9.0 turns on average")  # 36 in 200 turns


def test_a_slow_env_plays_the_turns_of_its_time_and_a_few_at_least() -> None:
    for limit_s, turns in ((30.0, MIN_STEPS + 30), (0.0, MIN_STEPS)):
        found = check_env(
            EnvConfig("probe_turns"), steps=100, limit_s=limit_s, clock=map(float, itertools.count()).__next__
        )
        episodes = next(one.text for one in found if one.rule == "episodes of the check")
        (number,) = re.findall(r"^(\d+) at random, 5.0 turns", episodes)
        assert int(number) == 4 * (turns // 5)


def test_an_env_that_cannot_be_made_is_a_fault() -> None:
    assert faults_of(EnvConfig("conect_four")) == [
        "it can be made: unknown env 'conect_four'; did you mean connect_four? (an id is a built-in id, pettingzoo:ID,"
        " gymnasium:ID, openspiel:NAME, module:function or path/file.py:function)"
    ]


class Bent:
    """An env whose turns go through `bend` first; has no copies, so that only turns are judged."""

    def __init__(self, env: Any, bend: Callable[[Turn], Turn]) -> None:
        self.env, self.bend, self.spec, self.num_envs = env, bend, env.spec, env.num_envs

    def reset(self, seed: int) -> Turn:
        return self.bend(self.env.reset(seed))

    def step(self, actions: Any) -> Turn:
        return self.bend(self.env.step(actions))

    def close(self) -> None:
        self.env.close()


def bent(monkeypatch: pytest.MonkeyPatch, env: Callable[[], Any], bend: Callable[[Turn], Turn]) -> list[str]:
    monkeypatch.setattr(conformance, "make", lambda config, num_envs: Bent(env(), bend))
    return faults_of(EnvConfig("bent"))


def probe() -> TurnProbe:
    return TurnProbe(num_envs=4, episode_length=3, truncate=True)


def changed(turn: Turn, **fields: Any) -> Turn:
    return dataclasses.replace(turn, **fields)


def with_nan(turn: Turn) -> Turn:
    turn.obs["counter"][1, 2] = np.nan
    return turn


BENDS: list[tuple[str, Callable[[Turn], Turn]]] = [
    ("slots are sorted", lambda turn: changed(turn, env_index=turn.env_index[::-1].copy())),
    ("every game has a slot", lambda turn: changed(turn, env_index=np.zeros(4, np.int64), seat=np.arange(4) % 2)),
    ("seats exist", lambda turn: changed(turn, seat=turn.seat + 2)),
    ("slots are int64", lambda turn: changed(turn, seat=turn.seat.astype(np.int32))),
    ("obs has the fields", lambda turn: changed(turn, obs={"counter": turn.obs["counter"]})),
    ("obs fits the spec", lambda turn: changed(turn, obs={**turn.obs, "echo": turn.obs["echo"].astype(np.float64)})),
    ("obs is finite: 'counter' is nan at .1, 2.", with_nan),
    ("a mask where", lambda turn: changed(turn, action_mask=np.ones((4, 4), np.bool_))),
    ("rewards fits", lambda turn: changed(turn, rewards=turn.rewards.astype(np.float64))),
    ("rewards are finite", lambda turn: changed(turn, rewards=turn.rewards + np.float32(np.inf))),
    ("rewards add up", lambda turn: changed(turn, rewards=np.where(turn.ended[:, None], 0, turn.rewards))),
    ("returns only at the end", lambda turn: changed(turn, returns=turn.returns + 1)),
    ("terminated or truncated", lambda turn: changed(turn, terminated=turn.truncated)),
    ("last observations", lambda turn: changed(turn, final=None)),
    ("max_turns holds", lambda turn: turn),
    ("return_range holds", lambda turn: turn),
    ("win_draw_loss holds", lambda turn: turn),
    ("a range where returns say who won", lambda turn: turn),
]
WRONG_FACTS: dict[str, dict[str, Any]] = {
    "max_turns holds": {"max_turns": 2},
    "return_range holds": {"return_range": (0.0, 98.5)},  # an episode of three steps returns 96 and 99
    "win_draw_loss holds": {"return_range": (0.0, 100.0), "win_draw_loss": True},
    "a range where returns say who won": {"win_draw_loss": True},
}


@pytest.mark.parametrize(("rule", "bend"), BENDS, ids=[rule for rule, _ in BENDS])
def test_each_broken_rule_is_found(rule: str, bend: Callable[[Turn], Turn], monkeypatch: pytest.MonkeyPatch) -> None:
    def env() -> TurnProbe:
        made = probe()
        made.spec = dataclasses.replace(made.spec, **WRONG_FACTS.get(rule, {}))
        return made

    faults = bent(monkeypatch, env, bend)
    assert any(fault.startswith(rule.partition(":")[0]) for fault in faults), faults


def test_seeds_that_do_not_decide_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    count = itertools.count()
    env = lambda: ConnectFour(num_envs=4, opening_plies=2)  # noqa: E731

    def reseeded(self: Bent, seed: int) -> Turn:
        return self.env.reset(seed + next(count))

    monkeypatch.setattr(Bent, "reset", reseeded)
    assert any(fault.startswith("the same seed") for fault in bent(monkeypatch, env, lambda turn: turn))


def test_seeds_that_are_ignored_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the generator is made with the env: a new env then begins with the same games."""
    counts = collections.defaultdict[int, Any](itertools.count)
    env = lambda: ConnectFour(num_envs=4, opening_plies=2)  # noqa: E731

    def deaf(self: Bent, seed: int) -> Turn:
        return self.env.reset(next(counts[id(self)]))

    monkeypatch.setattr(Bent, "reset", deaf)
    assert any(fault.startswith("the same seed") for fault in bent(monkeypatch, env, lambda turn: turn))


def test_swallowed_illegal_actions_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def lenient(self: Bent, actions: Any) -> Turn:
        actions = np.resize(np.asarray(actions), 4) % 4
        return self.env.step(actions)

    monkeypatch.setattr(Bent, "step", lenient)
    assert any("illegal action 4 was taken" in fault for fault in bent(monkeypatch, probe, lambda turn: turn))


def test_swallowed_illegal_sub_actions_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def lenient(self: Bent, actions: Any) -> Turn:
        legal = RandomBot(seed=0).act(self.env, self.shown, np.arange(4))
        fine = sub_actions_are_legal(self.spec.actions, np.resize(actions, (4, 3)), mask=self.shown.action_mask)
        self.shown = self.env.step(np.where(fine[:, None], np.resize(actions, (4, 3)), legal))
        return self.shown

    def reset(self: Bent, seed: int) -> Turn:
        self.shown = self.env.reset(seed)
        return self.shown

    monkeypatch.setattr(Bent, "step", lenient)
    monkeypatch.setattr(Bent, "reset", reset)
    for masked, words in (
        (False, r"illegal action \[3 0 0\] was taken"),
        (True, r"illegal action \[0 \d 0\] was taken"),
    ):
        faults = bent(monkeypatch, lambda masked=masked: SubActionsProbe(num_envs=4, masked=masked), lambda turn: turn)
        assert any(re.search(words, fault) for fault in faults), faults


def test_an_env_that_raises_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Bent, actions: Any) -> Turn:
        raise EnvError("bent: step raised ValueError: no")

    monkeypatch.setattr(Bent, "step", broken)
    assert any(
        "step raised ValueError: no; mend the env" in fault for fault in bent(monkeypatch, probe, lambda turn: turn)
    )


def test_incomplete_copies_and_saves_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    class Forgetful(SimultaneousProbe):
        def save(self) -> dict[str, Any]:
            return {**super().save(), "episode": np.zeros(self.num_envs, np.int64)}

        def load(self, saved: Any) -> Turn:
            return super().load({**saved, "step": self._step, "waiting": self._waiting})

    monkeypatch.setattr(
        conformance, "make", lambda config, num_envs: Forgetful(num_envs=num_envs, episode_length=[2, 7])
    )
    rules = [fault.partition(":")[0] for fault in faults_of(EnvConfig("forgetful"))]
    assert "copies show what the originals show" in rules
    assert "saved games continue" in rules


@pytest.mark.parametrize("what", HELD)
def test_games_that_cannot_be_copied_are_ready_to_train_on_and_said_to_be_so(what: str) -> None:
    findings = check_env(EnvConfig("tests.envs.uncopyable_games:holding", {"what": what}), steps=20)
    assert [finding for finding in findings if finding.kind == "fault"] == []
    facts = {finding.rule: finding.text for finding in findings}
    assert "games cannot be copied (" in facts["copies"]


def test_an_own_env_whose_fork_raises_is_said_not_to_be_copied() -> None:
    findings = check_env(EnvConfig("tests.envs.uncopyable_games:fork_raises"), steps=20)
    assert [finding for finding in findings if finding.kind == "fault"] == []
    facts = {finding.rule: finding.text for finding in findings}
    assert "fork raised RuntimeError: the engine has one board" in facts["copies"]


def test_a_check_that_broke_off_says_nothing_of_copies() -> None:
    findings = check_env(EnvConfig("tests.league.bad_envs:breaking", {"how": "raise", "after": 3}))
    assert {finding.rule: finding.text for finding in findings}["copies"] == "not tried"


def test_a_check_lists_the_seats_of_each_side() -> None:
    def seats(env_id: str, **kwargs: Any) -> str:
        return {found.rule: found.text for found in check_env(EnvConfig(env_id, kwargs), steps=20)}["seats"]

    assert seats("gymnasium:CartPole-v1") == "1: player"
    assert seats("three_seat_rock_paper_scissors").endswith("every seat for itself")
    assert "; sides " in seats("team_rock_paper_scissors")
