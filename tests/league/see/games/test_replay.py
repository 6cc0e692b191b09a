"""Replays: what is written is read back, verified against the game, and refused where it is damaged."""

from __future__ import annotations

import hashlib
import struct
import zlib
from pathlib import Path

import msgspec
import numpy as np
import pytest

from league.agents.acting.network_policy import NetworkPolicy
from league.agents.nets.network import build_network
from league.envs.protocol import EnvConfig
from league.envs.registry import BUILT_IN, spec_of
from league.judge.contenders.bots import bot_policy
from league.judge.matches.match import Match
from league.judge.recording.recorder import record_game
from league.judge.recording.recording import Recording
from league.judge.recording.replay import CorruptReplay, GameOutcome, Replay, ReplayError, ReplayMismatch, SeatHolder
from league.judge.recording.replay_file import (
    MAGIC,
    MAX_RECORD_BYTES,
    decode_replay,
    encode_replay,
    read_replay,
    write_replay,
)
from league.policies.trust import Untrusted
from league.see.games.playback import frames_of, verify_replay
from tests.league.commands import league
from tests.league.judge.matches.eval_runs import TINY

OTHERS = (
    "openspiel:goofspiel(num_cards=3,imp_info=true)",
    "openspiel:liars_dice(numdice=1)",
    "pettingzoo:classic/tictactoe_v3",
)


def random_game(env_id: str, *, seed: int = 3) -> Replay:
    config = EnvConfig(env_id)
    seats = spec_of(config).num_seats
    return record_game(config, [bot_policy("random", seed=seed)] * seats, seed, tags={"kind": "test"})


@pytest.mark.parametrize("env_id", [*sorted(BUILT_IN), *OTHERS])
def test_a_game_is_written_read_and_played_again(env_id: str, tmp_path: Path) -> None:
    replay = random_game(env_id)
    read = read_replay(write_replay(tmp_path / "new" / "one.replay", replay))
    assert read == replay
    verify_replay(read)
    frames = frames_of(read)
    assert len(frames) == replay.games[0].steps + 1 and frames[-1].ended and not frames[0].moves
    assert sum(len(frame.moves) for frame in frames) == sum(replay.slots)


def test_a_folder_in_the_place_of_a_replay_is_one_sentence(tmp_path: Path) -> None:
    ran = league("replay", tmp_path)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == (
        f"league: {tmp_path} is a folder: give a replay file (*.replay), as `league replays RUN` lists them.\n"
    )


def test_values_and_probabilities_of_networks_are_kept(tmp_path: Path) -> None:
    config = EnvConfig("tic_tac_toe")
    policy = NetworkPolicy(build_network(spec_of(config), TINY, seed=1))
    replay = record_game(config, [policy, bot_policy("random", seed=0)], 4)
    frames = frames_of(decode_replay(encode_replay(replay)))
    for frame in frames[1:]:
        (move,) = frame.moves
        if move.seat == 0:
            assert move.value is not None and sum(chance for _, chance in move.probs) == pytest.approx(1, abs=1e-2)
            assert [chance for _, chance in move.probs] == sorted((c for _, c in move.probs), reverse=True)
        else:
            assert move.value is None and not move.probs


@pytest.mark.parametrize("env_id", ["tic_tac_toe", "leduc_poker", "team_rock_paper_scissors"])
def test_every_game_of_a_match_is_recorded(env_id: str) -> None:
    kept: list[Replay] = []
    config, bot = EnvConfig(env_id), bot_policy("random", seed=2)
    named = (SeatHolder("home", "d1"), SeatHolder("away"))
    result = Match(
        config, [bot, bot], seed=1, opening_plies=4, recording=Recording(named, kept.append, {"match": "home-away"})
    ).play(12)
    assert sum(len(replay.games) for replay in kept) == 12
    assert [replay.seats[0].name for replay in kept] == ["home", "away"]
    home = 0.0
    for replay in kept:
        verify_replay(decode_replay(encode_replay(replay)))
        seat = [holder.name for holder in replay.seats].index("home")
        home += sum((game.returns[seat] > 0) + (game.returns[seat] == 0) / 2 for game in replay.games)
        assert all(frames_of(replay, game)[-1].ended for game in range(3))
    assert home / 12 == pytest.approx(result.score().value)


def test_recording_changes_no_result() -> None:
    config = EnvConfig("connect_four")
    play = [
        Match(config, [bot_policy("tactical", seed=0), bot_policy("random", seed=0)], seed=5, recording=recording).play(
            8
        )
        for recording in (None, Recording((SeatHolder("a"), SeatHolder("b")), lambda replay: None))
    ]
    assert play[0].score() == play[1].score() and play[0].mean_steps == play[1].mean_steps


def test_another_outcome_than_recorded_is_refused() -> None:
    replay = random_game("connect_four")
    (game,) = replay.games
    for changed in (
        msgspec.structs.replace(game, returns=(-game.returns[0] or 1.0, -game.returns[1] or -1.0)),
        msgspec.structs.replace(game, truncated=True),
        msgspec.structs.replace(game, steps=game.steps - 1),
    ):
        with pytest.raises(ReplayMismatch):
            verify_replay(msgspec.structs.replace(replay, games=(changed,)))


def test_illegal_actions_and_another_game_are_refused() -> None:
    replay = random_game("tic_tac_toe")
    with pytest.raises(ReplayMismatch, match="refused"):
        verify_replay(msgspec.structs.replace(replay, actions=bytes(len(replay.actions))))
    other = msgspec.structs.replace(replay.env, id="connect_four")
    with pytest.raises(ReplayMismatch, match="another game"):
        verify_replay(msgspec.structs.replace(replay, env=other))


def test_code_that_a_replay_names_is_not_loaded() -> None:
    replay = random_game("tic_tac_toe")
    named = msgspec.structs.replace(replay.env, id="tests.league.bad_envs:never_there")
    with pytest.raises(Untrusted):
        verify_replay(msgspec.structs.replace(replay, env=named))


def test_a_missing_game_is_named() -> None:
    with pytest.raises(ReplayError, match="0 to 0"):
        frames_of(random_game("tic_tac_toe"), 1)


def test_every_flipped_bit_is_found() -> None:
    content = encode_replay(random_game("kuhn_poker"))
    rng = np.random.default_rng(0)
    for place in rng.permutation(len(content))[:60]:
        broken = bytearray(content)
        broken[place] ^= 1 << int(rng.integers(8))
        with pytest.raises(CorruptReplay):
            decode_replay(bytes(broken))
    for length in range(0, len(content), 25):
        with pytest.raises(CorruptReplay):
            decode_replay(content[:length])


def _signed(fields: bytes, body: bytes) -> bytes:
    return MAGIC + fields + hashlib.sha256(fields + body).digest() + body


def test_sizes_are_checked_before_anything_is_unpacked() -> None:
    bomb = zlib.compress(bytes(1 << 22), 9)
    with pytest.raises(CorruptReplay, match="more than"):
        decode_replay(_signed(struct.pack("<HQ", 1, MAX_RECORD_BYTES + 1), bomb))
    with pytest.raises(CorruptReplay, match="does not hold"):
        decode_replay(_signed(struct.pack("<HQ", 1, 1000), bomb))
    with pytest.raises(CorruptReplay, match="version 9"):
        decode_replay(_signed(struct.pack("<HQ", 9, 1000), bomb))


@pytest.mark.parametrize(
    "change",
    [
        {"games": ()},
        {"slots": (1, -1)},
        {"slots": (1 << 27,)},
        {"action_shape": (0,)},
        {"actions": b"1"},
        {"opening": 99},
        {"seed": -1},
        {"games": (GameOutcome(1, (1.0,)),)},
        {"games": (GameOutcome(99, (1.0, -1.0)),)},
        {"games": (GameOutcome(2, (1.0, -1.0), start=2),)},
        {"decisions": (None,)},
        {"seats": ()},
    ],
)
def test_numbers_that_do_not_agree_are_refused(change: dict[str, object]) -> None:
    replay = msgspec.structs.replace(random_game("tic_tac_toe"), **change)
    record = msgspec.msgpack.encode(replay)
    with pytest.raises(CorruptReplay):
        encode_replay(replay)
    with pytest.raises(CorruptReplay):
        decode_replay(_signed(struct.pack("<HQ", 1, len(record)), zlib.compress(record)))
