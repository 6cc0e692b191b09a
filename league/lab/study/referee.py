"""Matches between the exports of two arms' runs, with common openings, each ended by a sequential test."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from league.judge.tournaments.batches import Where
from league.judge.tournaments.records import TournamentConfig
from league.judge.tournaments.run_tournament import play_tournament
from league.lab.study.study_config import CompareConfig
from league.policies.auto_export import AUTO
from league.policies.loading import open_run


@dataclass(frozen=True)
class MatchFigure:
    """A match between two runs of one seed.

    Fields:
      score: of the first, in [0, 1]. games: that count.
      decision: "H1" where the test found the first stronger, "H0" the second, "" neither; "-" without a test, as in
        games of more than two teams.
    """

    score: float
    games: int
    decision: str


class Referee(Protocol):
    """Plays the match of two runs: by the games themselves, or in a test."""

    def play(self, path: Path, runs: tuple[Path, Path], *, seed: int) -> MatchFigure:
        """Play it, or continue the one in the folder `path`. seed: of openings. Raises LeagueError, EnvError."""
        ...


class TournamentReferee:
    """Plays each match as a tournament of two in a folder of its own, whose journal knows every batch of games.

    Args:
      compare: of the study. jobs: processes that play.
    """

    def __init__(self, compare: CompareConfig, *, jobs: int) -> None:
        self._compare = compare
        self._where = Where(jobs)

    def play(self, path: Path, runs: tuple[Path, Path], *, seed: int) -> MatchFigure:
        config = TournamentConfig(
            written=tuple(f"{run}:{AUTO}" for run in runs),
            games=self._compare.games,
            seed=seed,
            opening_plies=self._compare.opening_plies,
            sprt=self._compare.sprt if self._has_two_teams(runs[0]) else None,
        )
        report = play_tournament(path, config, where=self._where)
        names = [row.name for row in report.standings]
        first, second = (names.index(name) for name in config.written)
        score = report.scores[first][second]
        assert score is not None, "policies of ours do not fail"
        return MatchFigure(score, report.games, report.tests[0].test.decision if report.tests else "-")

    def _has_two_teams(self, run: Path) -> bool:
        return open_run(run).spec.num_teams == 2
