"""What counts in a tournament depends on the numbers of its batches alone, never on when they were played."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from league.envs.protocol import EnvConfig
from league.envs.registry import spec_of
from league.errors import LeagueError
from league.judge.contenders.contender import Game
from league.judge.contenders.finding import find_contenders
from league.judge.matches.contest import MAX_FAILURES, ContestConditions
from league.judge.matches.match_result import MatchResult, score_games
from league.judge.matches.sprt import SprtConfig, pair_counts, sequential_test
from league.judge.tournaments.batches import BatchJob, BatchOutcome, Field, Where, play_job
from league.judge.tournaments.formats import format_named
from league.judge.tournaments.head_to_head import play_head_to_head
from league.judge.tournaments.play_round import play_round
from league.judge.tournaments.records import BatchKey, TournamentConfig, played_batch
from league.judge.tournaments.run_tournament import play_tournament
from league.judge.tournaments.tournament import Tournament
from league.judge.tournaments.tournament_report import sprt_csv

HERE = Where(jobs=1)
SPRT = SprtConfig(elo0=0.0, elo1=200.0)
CONFIG = TournamentConfig(("a", "b", "c", "d"), games=200, batch_games=20, sprt=SPRT)
Play = Callable[[BatchJob], BatchOutcome]


class InAnyOrder:
    """Players that hold so many batches and hand them back in an order drawn by a seed."""

    def __init__(self, play: Play, *, jobs: int, seed: int) -> None:
        self._play = play
        self._jobs = jobs
        self._rng = np.random.default_rng(seed)
        self._held: list[BatchJob] = []

    def __enter__(self) -> InAnyOrder:
        return self

    def __exit__(self, *error: object) -> None:
        """Does nothing."""

    @property
    def num_busy(self) -> int:
        return len(self._held)

    @property
    def has_room(self) -> bool:
        return len(self._held) < self._jobs

    def give(self, job: BatchJob) -> None:
        self._held.append(job)

    def wait(self) -> Sequence[BatchOutcome]:
        number = int(self._rng.integers(len(self._held) + 1))
        ended = [self._held.pop(int(self._rng.integers(len(self._held)))) for _ in range(number)]
        return [self._play(job) for job in ended]


def made_up(job: BatchJob, *, failing: int = -1) -> BatchOutcome:
    """Games of contenders of which the first in the alphabet wins more; `failing` fails in every fourth batch."""
    key = job.key
    rng = np.random.default_rng([key.round, *key.lineup, key.number])
    won = rng.random((2, job.games // 2)) < 0.5 + 0.12 * (key.lineup[1] - key.lineup[0])
    fails = failing in key.lineup and key.number % 4 == 1
    lost = (int(fails and key.lineup[0] == failing), int(fails and key.lineup[1] == failing))
    won = won[:, 1:] if fails else won
    result = score_games(np.stack([won, ~won], axis=2).astype(np.float64), steps=job.games)
    return BatchOutcome(job, MatchResult(**{**vars(result), "aborted": lost}), (), ())


def played(config: TournamentConfig, play: Play, *, jobs: int = 1, seed: int = 0) -> Tournament:
    state = Tournament(config, contenders=4, teams=2, format=format_named(config.format))
    players = InAnyOrder(play, jobs=jobs, seed=seed)
    while not state.is_over:
        play_round(state, players)
        state.close_round()
    return state


def facts(state: Tournament) -> object:
    results = {lineup: result.team_returns.tolist() for lineup, result in state.results().items()}
    return state.keys(), results, state.tests(), state.aborted, state.games_played, state.closed_rounds


@pytest.mark.parametrize("format", ["round-robin", "ladder"])
@pytest.mark.parametrize("failing", [-1, 1])
def test_what_counts_does_not_depend_on_the_order_in_which_batches_end(format: str, failing: int) -> None:
    config = replace(CONFIG, format=format)

    def play(job: BatchJob) -> BatchOutcome:
        return made_up(job, failing=failing)

    one_by_one = played(config, play)
    assert not one_by_one.surplus(), "one at a time plays nothing in vain"
    assert (failing < 0) or one_by_one.aborted[failing] == MAX_FAILURES
    in_vain = 0
    for seed in range(6):
        shuffled = played(config, play, jobs=3 + seed, seed=seed)
        assert facts(shuffled) == facts(one_by_one)
        in_vain += len(shuffled.surplus())
    assert in_vain, "batches that do not count were played, and the results are the same"


def test_each_pairing_ends_with_the_first_batch_after_which_its_test_decides() -> None:
    state = played(CONFIG, made_up)
    tests = {row.lineup: row for row in state.tests()}
    assert {row.test.decision for row in tests.values()} >= {"H1"} and len(tests) == 6
    for lineup, row in tests.items():
        scores: list[float] = []
        for number in range(10):
            outcome = made_up(BatchJob(BatchKey(0, lineup, number), number, 20))
            scores += outcome.result.group_scores[:, 0].tolist()
            test = sequential_test(pair_counts(np.array(scores)), SPRT)
            if test.decision:
                break
        assert row.test == test and row.games == 2 * len(scores)


def test_a_state_of_half_the_batches_in_any_order_continues_to_the_same_end() -> None:
    whole = played(CONFIG, made_up)
    state = Tournament(CONFIG, contenders=4, teams=2, format=format_named("round-robin"))
    rng = np.random.default_rng(0)
    due = list(state.due())
    for place in rng.permutation(len(due))[: len(due) // 2].tolist():
        key, games = due[place]
        job = BatchJob(key, state.seed_number(key), games)
        state.add(played_batch(key, job.seed_number, games, made_up(job).result))
    play_round(state, InAnyOrder(made_up, jobs=4, seed=1))
    state.close_round()
    assert facts(state) == facts(whole)


def test_a_match_with_a_test_does_not_depend_on_how_many_batches_are_played_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    env = EnvConfig("tic_tac_toe")
    game, contenders = Game(env, spec_of(env)), find_contenders(["bot:tactical", "bot:random"])
    reports = []
    for jobs in (1, 3):

        def players_of(field: Field, game: Game, where: Where, jobs: int = jobs, **rest: object) -> InAnyOrder:
            return InAnyOrder(lambda job: play_job(field, game, job, still=lambda: True), jobs=jobs, seed=2)

        monkeypatch.setattr("league.judge.tournaments.head_to_head.players_of", players_of)
        reports.append(
            play_head_to_head(game, contenders, ContestConditions(seed=3), games=640, sprt=SprtConfig(0, 150))
        )
    assert reports[0] == reports[1]
    assert reports[0].sprt is not None and reports[0].sprt.decision == "H1" and reports[0].games < 640


def test_the_tests_are_in_the_report_the_table_and_a_file_of_their_own(tmp_path: Path) -> None:
    config = TournamentConfig(
        ("bot:tactical", "bot:random"), env_id="tic_tac_toe", games=400, batch_games=20, sprt=SprtConfig(0.0, 200.0)
    )
    report = play_tournament(tmp_path / "t", config, where=HERE)
    (row,) = report.tests
    assert row.test.decision == "H1" and row.games == report.games < 400
    assert (tmp_path / "t" / "tests.csv").read_text() == sprt_csv(report)
    assert sprt_csv(report).splitlines()[1].startswith(f"1,bot:tactical,bot:random,{row.games},")
    assert "H1 accepted" in (tmp_path / "t" / "report.html").read_text()
    one_seat = TournamentConfig(
        ("bot:random", "bot:league.envs.bots:RandomBot"), env_id="gymnasium:CartPole-v1", sprt=SPRT
    )
    with pytest.raises(LeagueError, match="--sprt needs a game of two teams"):
        play_tournament(tmp_path / "one", one_seat, where=HERE)
