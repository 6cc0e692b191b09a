"""A policy that is asked about a game answers as it would have moved, and tells nothing that a person may not know."""

from __future__ import annotations

import pytest

from league.agents.acting.network_policy import NetworkPolicy
from league.agents.nets.config import NetworkConfig
from league.agents.nets.network import build_network
from league.envs.protocol import EnvConfig
from league.envs.registry import spec_of
from league.errors import LeagueError
from league.judge.contenders.bots import bot_policy
from league.judge.recording.recorder import record_game
from league.see.games.opinions import Advisors, opinion_of
from league.see.games.opponents import open_session
from league.see.games.playback import frames_of

GAME = EnvConfig("tic_tac_toe")


def network_policy(*, memory: bool = False) -> NetworkPolicy:
    config = NetworkConfig(hidden=(8,), core="lstm") if memory else NetworkConfig(hidden=(8,))
    return NetworkPolicy(build_network(spec_of(GAME), config, seed=0))


@pytest.mark.parametrize("memory", [False, True])
def test_who_played_a_game_answers_with_the_thoughts_that_were_recorded(memory: bool) -> None:
    policy = network_policy(memory=memory)
    replay = record_game(GAME, [policy] * 2, 1)
    moves = [frame.moves for frame in frames_of(replay)[1:]]
    found = opinion_of(replay, 0, policy, name="itself")
    assert [[(move.value, move.probs) for move in step] for step in found.answers] == [
        [(move.value, move.probs) for move in step] for step in moves
    ]
    later = opinion_of(replay, 0, policy, name="itself", since=3)
    assert later.answers == found.answers[3:]


def test_another_policy_answers_for_whoever_acts_and_too_slow_a_one_is_refused() -> None:
    replay = record_game(GAME, [bot_policy("random", seed=0)] * 2, 4)
    found = opinion_of(replay, 0, network_policy(), name="net")
    assert [[move.seat for move in step] for step in found.answers] == [[n % 2] for n in range(replay.games[0].steps)]
    assert all(move.action == move.probs[0][0] for step in found.answers for move in step)
    seconds = iter(range(0, 1000, 20))
    with pytest.raises(LeagueError, match="ask a faster policy"):
        opinion_of(replay, 0, network_policy(), name="net", clock=lambda: float(next(seconds)))


@pytest.mark.parametrize(("game", "seats"), [("tic_tac_toe", {0, 1}), ("kuhn_poker", {1})])
def test_in_a_game_that_hides_a_policy_is_asked_in_the_place_of_the_person_alone(game: str, seats: set[int]) -> None:
    with open_session("bot:random", seat=1, env=EnvConfig(game), seed=3) as session:
        found = session.opinion("bot:random", Advisors(), name="random", since=0)
        assert len(found.answers) == session.num_steps + 1
        assert {move.seat for step in found.answers for move in step} == seats
