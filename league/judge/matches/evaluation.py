"""Evaluation report: a run's players against each other and against bots absent from their training."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from league.agents.acting.policy import Policy
from league.envs.protocol import EnvConfig, EnvSpec
from league.json_report import JsonReport
from league.judge.contenders.bots import bot_policy
from league.judge.matches.bots_to_play import BotGames, bots_to_play
from league.judge.matches.match import Match, team_places, team_sizes, whole_groups
from league.judge.matches.match_result import Interval, MatchResult
from league.judge.matches.pairs import PairRow, pair_row
from league.judge.matches.run_contenders import RunContender, open_contenders
from league.judge.matches.timed import Deadline, Meeting, play_all
from league.judge.recording.recording import Recording, ReplayFolder
from league.judge.recording.replay import SeatHolder
from league.policies.auto_export import AUTO, LAST
from league.policies.exact.exports import ASK_S, ExportSearch
from league.policies.loading import OpenRun

Progress = Callable[[int, int], None]
"""Called with (games finished, games in all), at least once in every turn of a match."""


@dataclass(frozen=True)
class PlayerRow:
    """The policies that a name in the table stands for.

    Fields:
      player: as asked for.
      members: (weight, snapshot), one for a single policy.
      reason: one sentence on why these.
    """

    player: str
    members: tuple[tuple[float, str], ...]
    reason: str


@dataclass(frozen=True)
class ReturnRow:
    """Mean return in a game of one team, with a 95 % interval."""

    name: str
    games: int
    mean_return: Interval


MAX_NAMED = 3
"""Seats of a team that are named; of a larger one only the first is."""


@dataclass(frozen=True)
class Conditions:
    """The conditions under which the matches were played.

    Fields:
      games: of each match.
      seed: of openings, bots and sampled actions.
      opening_plies: random plies before the policies take over, see `Match`.
      greedy: whether policies took the likeliest action of one forward pass instead of sampling.
      search: simulations before each move, which was then the most visited one; 0 for none.
    """

    games: int
    seed: int
    opening_plies: int
    greedy: bool
    search: int = 0


@dataclass(frozen=True)
class EvalReport(JsonReport):
    """A finished evaluation.

    Fields:
      run: its folder. env_id: the game.
      conditions: how it was played.
      players: who played.
      pairs: every match, from the players' side; empty in a game of one team.
      returns: instead of them in a game of one team.
      notes: what was left out and why.
      team_names: [T] the seats of each team, where some team has several; else empty.
      score: what the run counts, "wins" or "returns".
    """

    must_be_finite: ClassVar[bool] = True

    run: str
    env_id: str
    conditions: Conditions
    players: tuple[PlayerRow, ...]
    pairs: tuple[PairRow, ...]
    returns: tuple[ReturnRow, ...]
    notes: tuple[str, ...]
    team_names: tuple[str, ...] = ()
    score: str = "wins"

    def row(self, home: str, away: str) -> PairRow:
        """The match of two names.

        Raises:
          KeyError: it was not played.
        """
        for row in self.pairs:
            if (row.home, row.away) == (home, away):
                return row
        raise KeyError(f"{home} did not play {away}")


def evaluate_run(
    run_path: str | Path,
    *,
    players: Sequence[str] = (AUTO, LAST),
    bots: Sequence[str] | None = None,
    games: int | None = None,
    seed: int = 0,
    opening_plies: int = 2,
    greedy: bool | None = None,
    simulations: int = 0,
    progress: Progress | None = None,
    limit_s: float | None = None,
    replays: Path | None = None,
    say: Callable[[str], None] = lambda sentence: None,
) -> EvalReport:
    """Play the players of a run against bots and each other, all on the same openings, each from every team.

    Args:
      run_path: a run folder, also of a live run, or the folder of one snapshot.
      players: as in `load_policy`, and FOLDER:NAME of another run or snapshot. Those of equal weights play as one.
      bots: names as in `make_bot`; None for those of the run's configuration, see `league.judge.matches.bots_to_play`.
        One that cannot play the game is left out with a note.
      games: of each match, None for those of the configuration; rounded up to a multiple of the number of teams.
      seed: of openings, bots and sampled actions. opening_plies: see `Match`.
      greedy: None takes the likeliest action where two sides move in turn and nothing hidden is known. Elsewhere it
        samples, since a fixed choice is easily exploited there.
      simulations: of policies before each move, see `LoadedPolicy.as_seat_policy`.
      progress: see `Progress`. replays: folder in which the games are recorded; None records nothing.
      limit_s: seconds of the games, after which it ends with those that it has; too dear bots are left out with a note.
        The search for the least exploitable export takes as long at most, and is made once.
      say: takes a sentence on the time that slow bots need, where there is no limit.
    Raises:
      LeagueError: the run or a player cannot be loaded.
      EnvError: the game cannot be played here, or there is no such bot.
    """
    search = ExportSearch() if limit_s is None else ExportSearch(min(limit_s, ASK_S))
    run, found = open_contenders(Path(run_path), players, seed=seed, search=search)
    deadline = None if limit_s is None else Deadline.after(limit_s)
    greedy = not run.kind.must_mix if greedy is None else greedy
    policies: dict[str, Policy] = {
        one.name: one.policy.as_seat_policy(greedy=greedy, search=simulations) for one in found
    }
    teams = run.spec.num_teams
    games = run.evaluation.games if games is None else games
    conditions = Conditions(whole_groups(games, teams), seed, opening_plies, greedy, simulations)
    asked = BotGames(conditions.games, 1 if teams == 1 else len(policies), seed)
    fitting, notes = bots_to_play(run, bots, asked, deadline=deadline, say=say)
    recording = functools.partial(_recorded, None if replays is None else ReplayFolder(replays), run, found)
    meetings = _meetings(tuple(policies), fitting, teams=teams)
    matches = {one: _match(one, run.env, policies, conditions, recording(one)) for one in meetings}
    results = play_all(matches, games=conditions.games, teams=teams, deadline=deadline, progress=progress)
    pairs, returns = _rows(results, run.spec)
    notes += _cut_short(results, len(matches) * conditions.games, limit_s=limit_s, path=run.path)
    counts = run.state.scoring.score
    notes += (*_equal_ones(found), *_stronger_than_auto(pairs, list(policies), teams=teams, counts=counts))
    names, rows = team_names(run.spec), _player_rows(found)
    return EvalReport(str(run.path), run.env.id, conditions, rows, pairs, returns, notes, names, counts)


def _player_rows(found: Sequence[RunContender]) -> tuple[PlayerRow, ...]:
    return tuple(PlayerRow(one.name, one.members, one.reason) for one in found)


def _cut_short(
    results: Mapping[Meeting, MatchResult], games: int, *, limit_s: float | None, path: Path
) -> tuple[str, ...]:
    """A note where fewer games than these were played within the limit."""
    if limit_s is None or sum(result.games for result in results.values()) >= games:
        return ()
    return (f"stopped at the time limit of {limit_s:.0f} s: `league eval {path}` plays every game",)


def team_names(spec: EnvSpec) -> tuple[str, ...]:
    """[T] the names of the seats of each team; empty where every seat is a team of its own."""
    return () if len(set(spec.teams)) == spec.num_seats else team_labels(spec)


def team_labels(spec: EnvSpec) -> tuple[str, ...]:
    """[T] the names of the seats of each team."""
    places = team_places(spec).tolist()
    names = spec.seat_names or tuple(f"seat {seat}" for seat in range(spec.num_seats))
    texts = []
    for team in range(max(places) + 1):
        own = [name for name, place in zip(names, places, strict=True) if place == team]
        texts.append("+".join(own) if len(own) <= MAX_NAMED else f"{own[0]} and {len(own) - 1} more")
    return tuple(texts)


def _meetings(players: Sequence[str], bots: Sequence[str], *, teams: int) -> list[Meeting]:
    """Players against bots, then against each other; in a game of one team each player alone.

    With more than two teams a match says nothing of the player that holds all teams but one, so each is home in turn.
    """
    if teams == 1:
        return [(name,) for name in (*players, *bots)]
    among = itertools.combinations(players, 2) if teams == 2 else itertools.permutations(players, 2)
    return [*itertools.product(players, bots), *among]


def _rows(results: Mapping[Meeting, MatchResult], spec: EnvSpec) -> tuple[tuple[PairRow, ...], tuple[ReturnRow, ...]]:
    """Matches as rows: pairs, or in a game of one team returns."""
    if spec.num_teams > 1:
        sizes = team_sizes(spec)
        return tuple(pair_row(home, away, result, sizes=sizes) for (home, away), result in results.items()), ()
    return (), tuple(ReturnRow(name, result.games, result.mean_return()) for (name,), result in results.items())


def _match(
    meeting: Meeting,
    env: EnvConfig,
    policies: Mapping[str, Policy],
    conditions: Conditions,
    recording: Recording | None,
) -> Match:
    """The match of a meeting. A bot is made for each match, and answers independently of the others."""
    seats = [policies[name] if name in policies else bot_policy(name, seed=conditions.seed) for name in meeting]
    plies = conditions.opening_plies
    return Match(env, seats, seed=conditions.seed, opening_plies=plies, recording=recording)


def _equal_ones(contenders: Sequence[RunContender]) -> Iterator[str]:
    return (f"{other} is {one.name}: the same weights" for one in contenders for other in one.equals)


def _stronger_than_auto(pairs: Sequence[PairRow], players: Sequence[str], *, teams: int, counts: str) -> Iterator[str]:
    """A sentence on each player that has beaten, beyond chance, the one that is played where nobody names one."""
    for row in pairs:
        if not {row.home, row.away} <= set(players):
            continue
        value, even = row.edge(counts)
        stronger = row.home if row.away == AUTO and value.low > even else ""
        if row.home == AUTO and teams == 2 and value.high < even:
            stronger = row.away
        if stronger:
            yield f"{stronger} has beaten {AUTO} beyond chance: play it by that name"


def _recorded(
    folder: ReplayFolder | None, run: OpenRun, contenders: Sequence[RunContender], meeting: Meeting
) -> Recording | None:
    """The recording of one match in a folder; None without one."""
    if folder is None:
        return None
    holders = {name: SeatHolder(name) for name in meeting}
    for contender in contenders:
        member = contender.members[0][1] if len(contender.members) == 1 else ""
        known = run.state.snapshots.get(member)
        holders[contender.name] = SeatHolder(
            member or contender.name, "" if known is None else known.digest, source=run.path.name
        )
    return Recording(tuple(holders[name] for name in meeting), folder.add, {"match": " - ".join(meeting)})
