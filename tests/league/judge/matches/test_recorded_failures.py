"""A recorded match outlives games that the env fails in: they are left out, and the others stay as they are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest

from league.agents.acting.policy import ActInputs
from league.envs.plugins import admit
from league.envs.protocol import EnvConfig
from league.judge.matches.match import Match
from league.judge.matches.match_result import MatchResult
from league.judge.recording.recorder import record_game
from league.judge.recording.recording import Recording
from league.judge.recording.replay import CorruptReplay, Replay, ReplayError, ReplayMismatch, SeatHolder, check_replay
from league.judge.recording.replay_file import decode_replay, encode_replay
from league.see.games.playback import frames_of, names_of_replay, verify_replay
from tests.envs.workers.forked_games import forked_games  # noqa: F401 - a fixture
from tests.league.judge.matches import fragile_games
from tests.league.judge.matches.eval_runs import RulePolicy, first_legal
from tests.league.judge.matches.fragile_games import ROUNDS, Fragile

GROUPS = 40


class Uneven(Fragile):
    """Games of 6 to 10 rounds, which fail at once where they start again after their end."""

    is_over = False

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        answer = super().reset(seed, options)
        self.round = int(self.lots.integers(5))
        self.chance, self.is_over = float(self.is_over), False
        return answer

    def step(self, actions: dict[str, Any]) -> Any:
        answer = super().step(actions)
        self.is_over = not self.agents
        return answer


def mixed(inputs: ActInputs) -> np.ndarray:
    """Actions that tell games, seats and rounds apart."""
    turn, slots = inputs.turn, inputs.slots
    (rounds,) = turn.obs.values()
    return (turn.env_index[slots] // 3 + turn.seat[slots] * rounds[slots, 0].astype(np.int64)) % 2


def recorded(env: EnvConfig, *, is_recorded: bool = True) -> tuple[MatchResult, list[Replay]]:
    Fragile.made = -1  # the one that only shows its spec comes first
    kept: list[Replay] = []
    recording = Recording((SeatHolder("home"), SeatHolder("away")), kept.append) if is_recorded else None
    policies = [RulePolicy(mixed), RulePolicy(mixed)]
    result = Match(env, policies, seed=3, recording=recording).play(2 * GROUPS)
    admit(found.entry for replay in kept for found in names_of_replay(replay))
    return result, [decode_replay(encode_replay(replay)) for replay in kept]


def fragile(**rules: Any) -> EnvConfig:
    return EnvConfig(f"{fragile_games.__name__}:Fragile", kwargs=rules)


def left_out(replay: Replay) -> list[int]:
    return [number for number, game in enumerate(replay.games) if game.is_left_out]


@pytest.mark.usefixtures("forked_games")
@pytest.mark.parametrize("workers", [0, 2])
def test_failed_games_are_left_out_and_the_others_are_recorded_byte_for_byte(workers: int) -> None:
    _, whole = recorded(fragile())
    env = replace(fragile(chance=0.02), workers=workers)
    result, found = recorded(env)
    unrecorded, _ = recorded(env, is_recorded=False)
    np.testing.assert_array_equal(result.team_returns, unrecorded.team_returns)
    assert result.mean_steps == unrecorded.mean_steps
    assert 0 < result.games < 2 * GROUPS and len(found) == len(whole) == 2
    for replay, sound in zip(found, whole, strict=True):
        failed = left_out(replay)
        kept = np.setdiff1d(np.arange(GROUPS), failed)
        assert 0 < len(failed) < GROUPS
        actions = np.frombuffer(sound.actions, sound.action_dtype).reshape(ROUNDS, GROUPS, 2)
        assert replay.actions == actions[:, kept].tobytes()
        assert [replay.games[game] for game in kept] == [sound.games[game] for game in kept]
        assert replay.slots == (2 * len(kept),) * ROUNDS
        verify_replay(replay)
        assert frames_of(replay, int(kept[0]))[-1].ended
        with pytest.raises(ReplayError, match="was given up before its end"):
            frames_of(replay, failed[0])


def test_a_game_that_fails_after_its_end_counts_and_is_left_out() -> None:
    result, found = recorded(EnvConfig(f"{__name__}:Uneven"))
    assert result.games == 2 * GROUPS
    for replay in found:
        longest = max(game.steps for game in replay.games)
        assert 0 < len(left_out(replay)) < GROUPS
        assert {game.steps for game in replay.games if not game.is_left_out} == {longest}
        verify_replay(replay)


def test_a_failure_that_was_not_recorded_is_another_course() -> None:
    _, (replay, _) = recorded(fragile(num_sound=35))
    assert left_out(replay) == [0, 36, 37, 38, 39]
    Fragile.made = 0
    verify_replay(replay)
    Fragile.made = 1
    with pytest.raises(ReplayMismatch, match=r"another course here: .*the dice fell under the table .*game 35"):
        verify_replay(replay)


def test_a_game_is_left_out_only_where_the_env_can_play_the_others_without_it() -> None:
    replay = record_game(EnvConfig("tic_tac_toe"), [RulePolicy(first_legal)] * 2, 0)
    (game,) = replay.games
    with pytest.raises(ReplayError, match="game 0 of the replay failed as it was recorded"):
        verify_replay(msgspec.structs.replace(replay, games=(msgspec.structs.replace(game, steps=0, aborted=True),)))
    with pytest.raises(CorruptReplay, match="begins or ends outside"):
        check_replay(msgspec.structs.replace(replay, games=(msgspec.structs.replace(game, steps=0),)))
