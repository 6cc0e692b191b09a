"""Plays the telling games of a run that nobody has recorded, and lists the best of all that are."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from league.agents.acting.policy import Policy
from league.core.metagame.ratings import RatingRow, rate, rating_inputs
from league.core.state.records import is_bot
from league.errors import LeagueError
from league.judge.contenders.bots import bot_policy
from league.judge.recording.recorder import record_game
from league.judge.recording.replay import Replay, SeatHolder
from league.judge.recording.replay_file import SUFFIX, write_replay
from league.policies.loading import OpenRun, load_from_run, open_run
from league.see.games.replay_list import ReplayList
from league.see.games.telling import FIRST_WIN, LONGEST, UPSET, TellingGame, TellingResult, choose, telling_results
from league.store.run_folder import RunFolder

MAX_TRIES = 60
"""Games played for one result; a win that does not come in them is left out."""


def telling_games(path: Path, *, count: int, play: bool = True) -> tuple[TellingGame, ...]:
    """The most telling games of a run.

    Args:
      count: how many. play: whether games that are missing are played and recorded in the run's folder of replays.
    Raises:
      LeagueError, EnvError: the run cannot be read, or its game cannot be made.
    """
    run = open_run(path)
    replays = ReplayList(RunFolder(run.path).replays_path)
    inputs = rating_inputs(run.state)
    ratings: tuple[RatingRow, ...] = () if inputs is None else rate(inputs)
    if play and inputs is not None and run.spec.num_seats == run.spec.num_teams == 2:
        player_of = {name: known.player for name, known in run.state.snapshots.items()}
        wanted = telling_results(inputs, ratings, player_of)
        each = -(-count // 3)
        for kind in (UPSET, FIRST_WIN):
            _record(run, [result for result in wanted if result.why == kind][:each], replays.folder)
    if play and not any(row.tags.get("why") == LONGEST for row in replays.rows()):
        _record_longest(run, ratings, replays.folder)
    return choose(replays.rows(), ratings, count=count)


def _record(run: OpenRun, wanted: Sequence[TellingResult], folder: Path) -> None:
    """Play for each result until its winner wins, and write that game; one that is there already stays."""
    for result in wanted:
        path = folder / f"telling-{_short(result.why, result.winner, result.loser)}{SUFFIX}"
        if path.exists():
            continue
        tags = {"why": result.why, "text": result.text, "score": f"{result.score:.4f}", "kind": "played again"}
        names = (result.winner, result.loser)
        try:
            policies = _policies(run, names)
        except LeagueError:
            continue  # its weights are gone, such as by `league gc`
        for seed in range(MAX_TRIES):
            replay = _game(run, names, policies, seed=seed, tags=tags)
            won, lost = (replay.games[0].returns[_seat(replay, name)] for name in names)
            if won > lost:
                write_replay(path, replay)
                break


def _record_longest(run: OpenRun, ratings: Sequence[RatingRow], folder: Path) -> None:
    """Write the longest of some games of the strongest policies, each against itself and the next."""
    names = [row.policy for row in ratings if not is_bot(row.policy)][:2] or list(run.state.snapshots)[-2:]
    if not names:
        return
    policies = _policies(run, names)
    best: Replay | None = None
    for seed in range(MAX_TRIES // 3):
        replay = _game(run, names, policies, seed=seed, tags={"why": LONGEST, "kind": "played again"})
        if best is None or replay.games[0].steps > best.games[0].steps:
            best = replay
    assert best is not None
    write_replay(folder / f"telling-{_short(LONGEST, *names)}{SUFFIX}", best)


def _policies(run: OpenRun, names: Sequence[str]) -> dict[str, Policy]:
    return {
        name: bot_policy(name, seed=0) if is_bot(name) else load_from_run(run, name).as_seat_policy() for name in names
    }


def _game(
    run: OpenRun, names: Sequence[str], policies: Mapping[str, Policy], *, seed: int, tags: dict[str, str]
) -> Replay:
    """One game; the names take the teams in turn, another one first for each seed."""
    teams = list(dict.fromkeys(run.spec.teams))
    held = [names[(teams.index(team) + seed) % len(names)] for team in run.spec.teams]
    holders = []
    for name in held:
        known = run.state.snapshots.get(name)
        holders.append(SeatHolder(name, "" if known is None else known.digest, run.path.name))
    env = replace(run.env, workers=0)
    return record_game(env, [policies[name] for name in held], seed, seats=holders, tags=tags)


def _seat(replay: Replay, name: str) -> int:
    return [holder.name for holder in replay.seats].index(name)


def _short(*words: str) -> str:
    """A name for a file that always is the same for the same words."""
    return hashlib.sha256(msgspec.json.encode(words)).hexdigest()[:16]
