"""A match between contenders: paired seats, an early end by the test, failures that count for nobody, its record."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from league.agents.acting.policy import ActInputs, ActOutputs, Policy
from league.envs.protocol import EnvConfig
from league.envs.registry import spec_of
from league.judge.contenders.contender import Game, OpenConditions, UnknownContender
from league.judge.contenders.finding import find_contenders
from league.judge.matches.contest import ContestConditions
from league.judge.matches.game_moves import PlayedGame
from league.judge.matches.sprt import SprtConfig
from league.judge.tournaments.head_to_head import HeadToHead, head_to_head_csv, head_to_head_lines, play_head_to_head
from league.policies.frozen import FrozenCopy
from tests.league.commands import league
from tests.league.judge.matches.eval_runs import RulePolicy, first_legal
from tests.league.judge.played_batch import play_batch


def game_of_id(env_id: str) -> Game:
    env = EnvConfig(env_id)
    return Game(env, spec_of(env))


TIC_TAC_TOE = game_of_id("tic_tac_toe")
CONDITIONS = ContestConditions(seed=3)


class FailsAtMove(RulePolicy):
    """Plays the first legal move, and fails in game 0 of every batch as soon as three moves have been made."""

    last_failure = "was made to fail"

    def __init__(self, seen: list[list[int]]) -> None:
        super().__init__(first_legal)
        self._seen = seen
        self._failed: list[int] = []

    def act(self, inputs: ActInputs, rng: np.random.Generator) -> ActOutputs:
        assert inputs.history is not None
        games: NDArray[np.int64] = inputs.turn.env_index[inputs.slots]
        self._seen.extend(list(inputs.history[game]) for game in games.tolist())
        self._failed = [game for game in games.tolist() if game == 0 and len(inputs.history[game]) >= 3]
        return super().act(inputs, rng)

    def failed_games(self) -> list[int]:
        failed, self._failed = self._failed, []
        return failed


@dataclass(frozen=True)
class FailingContender:
    """Opens `FailsAtMove`; fields as of `Contender`."""

    seen: list[list[int]]
    name: str = "failing"
    identity: str = "0" * 64
    reason: str = "made for the test"
    game: Game | None = None
    copies: tuple[FrozenCopy, ...] = ()

    @contextmanager
    def open(self, game: Game, conditions: OpenConditions) -> Iterator[Policy]:
        yield FailsAtMove(self.seen)


def played(*names: str, games: int = 40, sprt: SprtConfig | None = None, game: Game = TIC_TAC_TOE) -> HeadToHead:
    return play_head_to_head(game, find_contenders(names), CONDITIONS, games=games, sprt=sprt)


def test_the_stronger_scores_more_and_the_record_says_who_played_how() -> None:
    report = played("bot:tactical", "bot:random", games=41)
    first, second = report.contenders
    assert report.games == 42, "rounded up to pairs"
    assert first.score is not None and second.score is not None
    assert first.score.low > 0.5 and first.score.value + second.score.value == pytest.approx(1.0)
    assert report.elo is not None and report.elo.low > 0
    pair = report.pairs[0]
    assert pair.wins + pair.draws + pair.losses == 42
    plain = json.loads(report.to_json())
    assert plain["contenders"][0]["identity"] == first.identity and plain["conditions"]["seed"] == 3
    assert head_to_head_csv(report).splitlines()[1].startswith(f"bot:tactical,{first.identity},42,")
    assert played("bot:tactical", "bot:random", games=41) == report, "the same seed, the same games"


def test_the_test_ends_a_match_early_and_says_which_hypothesis_holds() -> None:
    sprt = SprtConfig(elo0=0.0, elo1=100.0)
    clear = played("bot:tactical", "bot:random", games=4000, sprt=sprt)
    assert clear.sprt is not None and clear.sprt.decision == "H1" and clear.games < 400
    turned = played("bot:random", "bot:tactical", games=4000, sprt=sprt)
    assert turned.sprt is not None and turned.sprt.decision == "H0"
    assert sum(clear.sprt.pairs) == clear.games / 2
    assert any("H1 accepted" in line for line in head_to_head_lines(clear))
    short = played("bot:random", "bot:mcts:1", games=4, sprt=sprt)
    assert short.sprt is not None and short.sprt.decision == "" and short.games == 4


def test_three_contenders_share_a_game_of_three_seats() -> None:
    game = game_of_id("openspiel:kuhn_poker(players=3)")
    report = played("bot:random", "bot:league.envs.bots:RandomBot", games=30, game=game)
    assert report.elo is None and len(report.contenders) == 2 and len(report.contenders[0].by_team) == 3
    with pytest.raises(UnknownContender, match="needs a game of two teams"):
        played("bot:random", "bot:tactical", sprt=SprtConfig(), game=game)
    with pytest.raises(UnknownContender, match="has 2 teams, which does not fit 1 contender: give 2"):
        played("bot:random")


def test_a_failure_aborts_its_group_counts_for_nobody_and_the_third_ends_the_match() -> None:
    seen: list[list[int]] = []
    failing, bot = FailingContender(seen), find_contenders(["bot:random"])[0]
    result = play_batch(TIC_TAC_TOE, [failing, bot], CONDITIONS, number=0, games=20)
    assert result.aborted == (2, 0) and result.games == 18, "the pair of game 0, which failed from both seats"
    assert all(len(moves) >= 2 for moves in seen) and {len(moves) % 2 for moves in seen} == {0, 1}
    report = play_head_to_head(TIC_TAC_TOE, [failing, bot], CONDITIONS, games=4000)
    assert report.games == 252 and report.contenders[0].aborted == 4, "ended after the second batch of 128"
    assert "failing failed in 3 games" in report.notes[0]
    nothing = play_head_to_head(TIC_TAC_TOE, [failing, bot], CONDITIONS, games=2)
    assert (
        nothing.games == 0
        and nothing.contenders[0].score is None
        and "no game counted" in str(head_to_head_lines(nothing))
    )


def test_every_game_is_shown_with_its_moves_and_those_of_a_group_share_their_opening() -> None:
    games: list[PlayedGame] = []
    lineup = find_contenders(["bot:random", "bot:tactical"])
    result = play_batch(TIC_TAC_TOE, lineup, CONDITIONS, number=1, games=10, on_game=games.append)
    assert [(one.group, one.rotation) for one in games] == [(group, side) for group in range(5) for side in (0, 1)]
    for first, second in zip(games[::2], games[1::2], strict=True):
        assert first.opening == 2 and first.moves[:2] == second.moves[:2]
    assert sum(one.returns[one.rotation] for one in games) == result.team_returns[:, :, 0].sum()
    assert all(len(set(one.moves)) == len(one.moves) <= 9 for one in games)


def test_the_command_takes_the_words_of_the_test_and_names_mistakes() -> None:
    words = ["match", "bot:tactical", "bot:random", "--env", "tic_tac_toe", "--sprt", "elo0=0", "elo1=200"]
    done = league(*words)
    assert done.code == 0 and "H1 accepted" in done.out
    wrong = league(*words, "elo1=-5")
    assert wrong.code == 2 and "elo0 must be the smaller" in wrong.err
