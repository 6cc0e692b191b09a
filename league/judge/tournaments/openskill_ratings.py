"""Openskill ratings of frozen policies, learnt from the placements of their teams.

Bradley-Terry (`league.core.metagame.ratings`) rates pairs: of a team it cannot say who in it was strong, and of a game
of three it sees three games of two. Here a team is the sum of the policies on its seats, and a game is one placement
of its teams.

Shape letters: K teams of the game, S seats.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from league.core.state.events import EVENTS, LeagueCreated, LeaseFinished, LeaseGranted
from league.core.state.placements import placements_of
from league.core.state.records import AssignmentOutcome
from league.envs.placements import Placements
from league.json_report import JsonReport
from league.store.journal_reader import JournalReader
from league.store.run_folder import RunFolder
from league.text_table import TextTable

MAX_GAMES = 16
"""Games of one outcome that are rated: it may hold thousands, and a game takes some 40 microseconds."""

Ranks = tuple[int, ...]


@dataclass(frozen=True)
class SkillRow:
    """One policy's skill.

    Fields:
      mu, sigma: mean and standard deviation of what is believed of it, 25 and 25 / 3 before its first game.
      ordinal: mu - 3 sigma, a lower bound on it with high probability.
      games: that it was rated in, those left out by `MAX_GAMES` included.
    """

    policy: str
    mu: float
    sigma: float
    ordinal: float
    games: int


@dataclass(frozen=True)
class SkillsReport(JsonReport):
    """Skills of the frozen policies that were rated, highest ordinal first."""

    run: str
    rows: tuple[SkillRow, ...]
    model: str = "openskill"

    def text(self) -> str:
        if not self.rows:
            return f"{self.run}: nothing is rated yet"
        rows = [(row.policy, row.mu, row.sigma, row.ordinal, row.games) for row in self.rows]
        forms = ("", "z.2f", ".2f", "z.2f", ",")
        lines = TextTable(("policy", "mu", "sigma", "ordinal", "games"), rows, forms=forms).lines()
        return "\n".join([*lines, "by placements (openskill, Plackett-Luce); ordinal is mu - 3 sigma"])


def read_skills(path: Path) -> SkillsReport:
    """The skills in a run, also in a live one.

    Raises:
      MissingRun, JournalError.
    """
    folder = RunFolder.open(path)
    with JournalReader.open_readonly(folder.journal_path, events=EVENTS) as journal:
        return SkillsReport(str(path), openskill_ratings(event for _, event in journal.replay()))


def openskill_ratings(events: Iterable[object]) -> tuple[SkillRow, ...]:
    """Skills from the rating matches of a journal, in its order, so that the same journal gives the same skills.

    Args:
      events: the journal from its first event.
    Returns:
      A row for every policy that was rated, highest ordinal first; empty in games of one team.
    """
    teams: tuple[int, ...] = ()
    rating_leases: set[int] = set()
    outcomes: list[AssignmentOutcome] = []
    for event in events:
        if isinstance(event, LeagueCreated):
            teams = event.teams
        elif isinstance(event, LeaseGranted) and event.lease.home is None:
            rating_leases.add(event.lease.lease_id)
        elif isinstance(event, LeaseFinished) and event.lease_id in rating_leases:
            outcomes.extend(event.outcomes)
    return skills_of(outcomes, teams)


def skills_of(outcomes: Iterable[AssignmentOutcome], teams: Sequence[int]) -> tuple[SkillRow, ...]:
    """Skills from outcomes, one after another; frozen policies do not change, so uncertainty does not grow with time.

    A policy on n seats of a team counts n times in its sum. A policy in several teams moves by the sum of its updates
    in them. It grows as certain as they say on average, since games with itself say nothing. Teams of the same policies
    say nothing, nor does an outcome of more than two teams without placements.

    Args:
      teams: [S] team of each seat.
    Source: Weng and Lin 2011, A Bayesian approximation method for online ranking, algorithm 4 (Plackett-Luce).
    """
    table = SkillTable()
    games: Counter[str] = Counter()
    for outcome in outcomes:
        placements = placements_of(outcome, teams)
        lineup = [Counter(_members(outcome.policies, teams, side)) for side in dict.fromkeys(teams)]
        if not placements or all(team == lineup[0] for team in lineup):
            continue
        for ranks in games_of(placements, most=MAX_GAMES):
            table.rate(lineup, ranks)
        games.update(dict.fromkeys(outcome.policies, outcome.games))
    rows = [SkillRow(policy, mu, sigma, mu - 3.0 * sigma, games[policy]) for policy, mu, sigma in table.skills()]
    return tuple(sorted(rows, key=lambda row: (-row.ordinal, row.policy)))


def games_of(placements: Placements, *, most: int) -> Iterator[Ranks]:
    """The games of an outcome one by one, each placement spread evenly among the others, at most `most` of them.

    Of more games than that, every placement keeps its fraction of `most`, rounded down. Those with the largest
    remainders keep one more, the earlier one where they are equal. So a placement with fewer than about 1 in 2 `most`
    games is left out.
    """
    total = sum(times for _, times in placements)
    shares = [divmod(most * times, total) if total > most else (times, 0) for _, times in placements]
    missing = min(most, total) - sum(whole for whole, _ in shares)
    favoured = set(sorted(range(len(placements)), key=lambda place: (-shares[place][1], place))[:missing])
    chosen = [whole + (place in favoured) for place, (whole, _) in enumerate(shares)]
    spread = ((2 * number + 1) / (2 * n) for place, n in enumerate(chosen) for number in range(n))
    places = (place for place, n in enumerate(chosen) for _ in range(n))
    for _, place in sorted(zip(spread, places, strict=True)):
        yield placements[place][0]


class SkillTable:
    """Skills after the games so far."""

    def __init__(self) -> None:
        from openskill.models import PlackettLuce  # here, so that who asks for no skills does without the package

        self._model = PlackettLuce(tau=0.0)
        self._skills: dict[str, tuple[float, float]] = {}

    def rate(self, lineup: Sequence[Counter[str]], ranks: Ranks) -> None:
        """Learn from one game.

        Args:
          lineup: [K] policies of each team -> its seats. ranks: [K], teams that finished before each.
        """
        # A policy on n seats of a team is one member of n times its skill: n members would pass for independent ones.
        before = {policy: self._skill(policy) for team in lineup for policy in team}
        members = [
            [self._model.rating(mu=n * before[policy][0], sigma=n * before[policy][1]) for policy, n in team.items()]
            for team in lineup
        ]
        moves = dict.fromkeys(before, 0.0)
        narrowings: dict[str, list[float]] = {policy: [] for policy in before}
        rated = self._model.rate(members, ranks=[float(rank) for rank in ranks])
        for team, skills in zip(lineup, rated, strict=True):
            for (policy, n), skill in zip(team.items(), skills, strict=True):
                mu, sigma = before[policy]
                moves[policy] += skill.mu / n - mu
                narrowings[policy].append(skill.sigma / n / sigma)
        for policy, (mu, sigma) in before.items():
            places = narrowings[policy]
            self._skills[policy] = (mu + moves[policy], sigma * math.prod(places) ** (1.0 / len(places)))

    def skills(self) -> list[tuple[str, float, float]]:
        """(policy, mu, sigma) of everyone met so far."""
        return [(policy, mu, sigma) for policy, (mu, sigma) in self._skills.items()]

    def _skill(self, policy: str) -> tuple[float, float]:
        return self._skills.get(policy, (self._model.mu, self._model.sigma))


def _members(policies: Sequence[str], teams: Sequence[int], side: int) -> list[str]:
    """The policies on the seats of one team."""
    return [policy for policy, team in zip(policies, teams, strict=True) if team == side]
