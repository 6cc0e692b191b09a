"""A game between a person and policies: moves, take back, hints, and nothing shown that a seat may not know."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from league.agents.acting.network_policy import NetworkPolicy
from league.agents.acting.policy import ActInputs, ActOutputs, Policy
from league.agents.nets.config import NetworkConfig
from league.agents.nets.network import build_network
from league.envs.protocol import EnvConfig
from league.envs.registry import BUILT_IN, spec_of
from league.errors import LeagueError
from league.judge.recording.replay import SeatHolder
from league.see.games.opponents import open_session, seat_of
from league.see.games.playback import verify_replay
from league.see.games.session import GameSession, IllegalMove
from league.see.games.terminal_play import play_in_terminal
from tests.league.commands import league
from tests.league.judge.matches.eval_runs import TINY, TINY_LSTM


def network_policy(env_id: str, config: NetworkConfig = TINY) -> NetworkPolicy:
    return NetworkPolicy(build_network(spec_of(EnvConfig(env_id)), config, seed=1))


def session_of(env_id: str, *, seat: int = 0, seed: int = 0, config: NetworkConfig = TINY) -> GameSession:
    seats = spec_of(EnvConfig(env_id)).num_seats
    holders = [SeatHolder("you") if place == seat else SeatHolder("net") for place in range(seats)]
    policies: Sequence[Policy] = [network_policy(env_id, config)] * seats
    return GameSession(EnvConfig(env_id), policies, seat=seat, holders=holders, seed=seed)


def played_out(session: GameSession, rng: np.random.Generator) -> list[int]:
    taken = []
    while not session.over:
        options = session.view().options
        taken.append(options[int(rng.integers(len(options)))].action)
        session.choose(taken[-1])
    return taken


PLAYABLE = sorted(set(BUILT_IN) - {"probe_sub_actions"})


@pytest.mark.parametrize("env_id", PLAYABLE)
def test_every_game_is_played_to_its_end_and_recorded(env_id: str) -> None:
    rng = np.random.default_rng(3)
    for seat in range(spec_of(EnvConfig(env_id)).num_seats):
        session = session_of(env_id, seat=seat, seed=seat)
        played_out(session, rng)
        view = session.view()
        assert view.options == () and view.returns is not None and "your return is" in view.outcome
        assert view.returns == session.replay().games[0].returns
        verify_replay(session.replay())


@pytest.mark.parametrize("config", [TINY, TINY_LSTM], ids=["mlp", "lstm"])
def test_a_move_taken_back_and_made_again_gets_the_same_answers(config: NetworkConfig) -> None:
    session = session_of("connect_four", seat=1, seed=5, config=config)
    first = [session.view().options[0].action for _ in range(1)]
    session.choose(first[0])
    before = session.view()
    session.choose(before.options[-1].action)
    after = session.view()
    session.take_back()
    again = session.view()
    assert again.scene.text == before.scene.text and again.moves == before.moves and again.hint == before.hint
    session.choose(before.options[-1].action)
    assert session.view().moves == after.moves and session.view().hint == after.hint
    session.take_back()
    session.take_back()
    assert session.num_steps == 1
    with pytest.raises(IllegalMove, match="no move of yours"):
        session.take_back()


def test_the_hint_is_what_the_policy_would_do_in_the_persons_place() -> None:
    session = session_of("tic_tac_toe")
    plan = session.hint()
    assert plan is not None and plan.value is not None
    assert sorted(thought.action for thought in plan.actions) == list(range(9))
    assert sum(thought.chance for thought in plan.actions) == pytest.approx(1, abs=1e-2)


def test_an_illegal_move_changes_nothing() -> None:
    session = session_of("tic_tac_toe")
    session.choose(4)
    before = session.view()
    with pytest.raises(IllegalMove, match="allowed are"):
        session.choose(4)
    assert session.view().moves == before.moves


class Spy:
    """Answers the same, and notes how often it was asked."""

    version = 0

    def __init__(self) -> None:
        self.asked = 0

    def act(self, inputs: ActInputs, rng: np.random.Generator) -> ActOutputs:
        self.asked += 1
        return ActOutputs(np.full(len(inputs.slots), 2), np.zeros(len(inputs.slots), np.float32), inputs.core)


def test_a_simultaneous_opponent_is_asked_when_the_persons_choice_is_in() -> None:
    spy = Spy()
    config = EnvConfig("repeated_rock_paper_scissors", {"rounds": 3})
    session = GameSession(config, [None, spy], seat=0, holders=[SeatHolder("you"), SeatHolder("spy")])
    for round_number in range(3):
        view = session.view()
        assert view.simultaneous and len(view.moves) == round_number and spy.asked == round_number
        session.choose(0)
        assert [move.action for move in session.view().moves[-1]] == ["rock", "scissors"]


@pytest.mark.parametrize("env_id", ["kuhn_poker", "leduc_poker"])
def test_neither_the_card_nor_thoughts_on_it_are_shown_before_the_end(env_id: str) -> None:
    rng = np.random.default_rng(0)
    for seed in range(6):
        session = session_of(env_id, seat=1, seed=seed)
        while not session.over:
            view = session.view()
            assert "first: card ?" in view.scene.text
            assert all(move.value is None and not move.probs for moves in view.moves for move in moves)
            session.choose(view.options[int(rng.integers(len(view.options)))].action)
        if "fold" in session.view().scene.text:
            assert "card ?" in session.view().scene.text
        with pytest.raises(IllegalMove, match="hidden"):
            session.take_back()


def test_what_cannot_be_played_by_hand_is_refused() -> None:
    with pytest.raises(LeagueError, match="not numbered"):
        GameSession(EnvConfig("probe_sub_actions"), [None], seat=0, holders=[SeatHolder("you")])
    with pytest.raises(LeagueError, match="no such seat"):
        GameSession(EnvConfig("kuhn_poker"), [None, None], seat=2, holders=[SeatHolder("you")] * 2)


def test_a_whole_game_is_played_in_the_terminal() -> None:
    session, out = session_of("tic_tac_toe", seed=1), io.StringIO()
    lines = iter(
        ["hint", "help", "nonsense", "b2", "back", "moves", *(f"{col}{row}" for row in "123" for col in "abc")]
    )

    def ask(prompt: str) -> str:
        out.write(prompt)
        try:
            return next(lines)
        except StopIteration:
            raise EOFError from None

    assert play_in_terminal(session, ask, out, evaluation=True, hints=True)
    text = out.getvalue()
    assert "hint: value" in text and "0: a1" in text and "is no move" in text and "your return is" in text
    assert not play_in_terminal(session_of("tic_tac_toe"), ask, out, evaluation=False, hints=False)


def test_a_word_that_ends_a_name_comes_before_the_number_of_an_action() -> None:
    session, out = session_of("connect_four"), io.StringIO()
    lines = iter(["4", "quit"])
    assert not play_in_terminal(session, lambda prompt: next(lines), out, evaluation=False, hints=False)
    assert session.view().moves[0][0].action == "column 4"


def test_a_contender_is_opened_by_name(tmp_path: Path) -> None:
    with open_session("bot:random", env=EnvConfig("kuhn_poker"), seat=1, seed=3) as session:
        played_out(session, np.random.default_rng(0))
        assert [holder.name for holder in session.view().seats] == ["bot:random", "you"]
    named = EnvConfig("pettingzoo:classic/tictactoe_v3")
    with open_session("bot:random", env=named, seat=spec_of(named).seat_names[1], seed=3) as session:
        assert session.seat == 1
    with pytest.raises(LeagueError, match="seats 0 to 1, or player_1, player_2"):
        seat_of("player_3", spec_of(named))
    ran = league("play", "bot:random", "--env", "kuhn_poker", "--seat", "5")
    assert ran.code == 2 and "seats 0 to 1" in ran.err
    ran = league("play", tmp_path / "nothing")
    assert ran.code == 2 and "no contender" in ran.err
