"""How strong a run's policies are: its players against each other and against bots that they never trained with."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from rich.table import Table

from agents.policy import SeatPolicy, View
from envs.protocol import EnvConfig, EnvError
from envs.registry import make
from league.eval.choose import BEST, MIXTURE, choose
from league.eval.load import load_selection, open_run
from league.eval.match import play_match
from league.eval.pairs import PairRow, bot_entrant, pair_row
from league.eval.scores import Interval

Progress = Callable[[int, int], None]
"""Called with (games finished, games in all)."""

DEFAULT_BOTS = ("random", "tactical", "mcts:25", "mcts:100")


@dataclass(frozen=True)
class PlayerRow:
    """Who stood for a name.

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


@dataclass(frozen=True)
class Conditions:
    """How the matches were played.

    Fields:
      games: of each match.
      seed: of openings, bots and sampled actions.
      opening_plies: random plies before the policies take over, see `play_match`.
      greedy: whether policies took the likeliest action of one forward pass, without search, instead of sampling.
    """

    games: int
    seed: int
    opening_plies: int
    greedy: bool


@dataclass(frozen=True)
class EvalReport:
    """A finished evaluation.

    Fields:
      run: its folder. env_id: the game.
      conditions: how it was played.
      players: who played.
      pairs: every match, from the players' side; empty in a game of one team.
      returns: instead of them in a game of one team.
      notes: what was left out and why.
    """

    run: str
    env_id: str
    conditions: Conditions
    players: tuple[PlayerRow, ...]
    pairs: tuple[PairRow, ...]
    returns: tuple[ReturnRow, ...]
    notes: tuple[str, ...]

    def to_json(self) -> str:
        """The whole record as one JSON object."""
        return json.dumps(asdict(self), allow_nan=False)

    def row(self, home: str, away: str) -> PairRow:
        """The match of two names.

        Raises:
          KeyError: it was not played.
        """
        for row in self.pairs:
            if (row.home, row.away) == (home, away):
                return row
        raise KeyError(f"{home} did not play {away}")

    def table(self) -> Table:
        """For the console: a column per player, a row per opponent, a score with its 95 % interval in each cell."""
        how = "likeliest action, no search" if self.conditions.greedy else "sampled actions"
        table = Table(title=f"{self.env_id}: {how}, {self.conditions.games} games a cell", title_justify="left")
        if self.returns:
            table.add_column("player")
            table.add_column("mean return", justify="right")
            for line in self.returns:
                table.add_row(line.name, _cell(line.mean_return))
            return table
        table.add_column("score against")
        for player in self.players:
            table.add_column(f"{player.player}\n{_shown(player.members)}", justify="right")
        scores = {(row.home, row.away): _cell(row.score) for row in self.pairs}
        for opponent in dict.fromkeys(row.away for row in self.pairs):
            table.add_row(opponent, *[scores.get((player.player, opponent), "") for player in self.players])
        return table


def evaluate_run(
    run_path: str | Path,
    *,
    players: Sequence[str] = (BEST, MIXTURE),
    bots: Sequence[str] = DEFAULT_BOTS,
    games: int = 100,
    seed: int = 0,
    opening_plies: int = 2,
    greedy: bool | None = None,
    progress: Progress | None = None,
) -> EvalReport:
    """Play the players of a run against bots and each other, all on the same openings, each from every team.

    Args:
      run_path: a run folder, also of a live run.
      players: names as in `load_policy`.
      bots: names as in `make_bot`; one that cannot play the game is left out with a note.
      games: of each match; rounded up to a multiple of the number of teams.
      seed: of openings, bots and sampled actions.
      opening_plies: see `play_match`.
      greedy: None takes the likeliest action where one seat acts at a time, and samples where several act at once (a
        fixed choice there is one that anybody can exploit).
      progress: see `Progress`.
    Raises:
      LeagueError: the run or a player cannot be loaded.
      EnvError: the game cannot be played here, or there is no such bot.
    """
    run = open_run(Path(run_path))
    if greedy is None:
        greedy = not _acts_at_once(run.env)
    selections = {player: choose(run.state, player) for player in players}
    entrants: dict[str, SeatPolicy] = {
        player: load_selection(run, selection, greedy=greedy, seed=seed).as_seat_policy()
        for player, selection in selections.items()
    }
    fitting, notes = fitting_bots(run.env, bots, seed=seed)
    teams = len(set(run.spec.teams))
    conditions = Conditions(-(-games // teams) * teams, seed, opening_plies, greedy)
    pairs: tuple[PairRow, ...] = ()
    returns: tuple[ReturnRow, ...] = ()
    if teams > 1:
        pairs = _play_pairs(run.env, entrants, fitting, conditions, progress)
    else:
        returns = _play_alone(run.env, entrants, fitting, conditions, progress)
    rows = tuple(
        PlayerRow(name, tuple((weight, snapshot.snapshot_id) for weight, snapshot in found.members), found.reason)
        for name, found in selections.items()
    )
    return EvalReport(str(run.path), run.env.id, conditions, rows, pairs, returns, notes)


def fitting_bots(env_config: EnvConfig, bots: Sequence[str], *, seed: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The bots that can play a game, and a sentence on each that cannot; found out by asking each for one move.

    Raises:
      EnvError: no such bot, or the game cannot be made.
    """
    fitting, notes = [], []
    env = make(env_config, num_envs=1)
    try:
        turn = env.reset(seed)
        slots = np.arange(1)
        view = View(env, turn, slots, np.zeros((1, 0), np.float32))
        for name in dict.fromkeys(bots):
            bot = bot_entrant(name, seed=seed)
            try:
                bot.act(view, np.random.default_rng(seed))
            except EnvError as error:
                notes.append(f"{name} does not play {env_config.id}: {error}")
            else:
                fitting.append(name)
    finally:
        env.close()
    return tuple(fitting), tuple(notes)


def _play_pairs(
    env_config: EnvConfig,
    entrants: Mapping[str, SeatPolicy],
    bots: Sequence[str],
    conditions: Conditions,
    progress: Progress | None,
) -> tuple[PairRow, ...]:
    """Players against bots, then against each other."""
    meetings = [*itertools.product(entrants, bots), *itertools.combinations(entrants, 2)]
    count = _Count(len(meetings) * conditions.games, progress)
    rows = []
    for home, away in meetings:
        # A bot made anew for each match answers the same whoever played before.
        rival = entrants[away] if away in entrants else bot_entrant(away, seed=conditions.seed)
        result = play_match(
            env_config,
            [entrants[home], rival],
            games=conditions.games,
            seed=conditions.seed,
            opening_plies=conditions.opening_plies,
            progress=count.add,
        )
        rows.append(pair_row(home, away, result))
    return tuple(rows)


def _play_alone(
    env_config: EnvConfig,
    entrants: Mapping[str, SeatPolicy],
    bots: Sequence[str],
    conditions: Conditions,
    progress: Progress | None,
) -> tuple[ReturnRow, ...]:
    """Players, then bots, in a game of one team."""
    everyone = {**entrants, **{bot: bot_entrant(bot, seed=conditions.seed) for bot in bots}}
    count = _Count(len(everyone) * conditions.games, progress)
    rows = []
    for name, policy in everyone.items():
        result = play_match(
            env_config,
            [policy],
            games=conditions.games,
            seed=conditions.seed,
            opening_plies=conditions.opening_plies,
            progress=count.add,
        )
        rows.append(ReturnRow(name, result.games, result.mean_return()))
    return tuple(rows)


class _Count:
    """Games finished so far, passed on."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self._total = total
        self._progress = progress
        self._done = 0

    def add(self, games: int) -> None:
        self._done += games
        if self._progress is not None:
            self._progress(self._done, self._total)


def _acts_at_once(env_config: EnvConfig) -> bool:
    """Whether several seats act in the first turn of the game."""
    env = make(env_config, num_envs=1)
    try:
        return len(env.reset(0).env_index) > 1
    finally:
        env.close()


def _cell(interval: Interval) -> str:
    if min(abs(interval.low), abs(interval.high)) >= 10.0:
        return f"{interval.value:.1f} [{interval.low:.1f}, {interval.high:.1f}]"
    return f"{interval.value:.2f} [{interval.low:.2f}, {interval.high:.2f}]"


def _shown(members: Sequence[tuple[float, str]]) -> str:
    """The heaviest snapshots that stand for a name."""
    if len(members) == 1:
        return members[0][1]
    if not members:
        return "as it stands"
    weight, snapshot = members[0]
    return f"{weight:.0%} {snapshot}, {len(members) - 1} more"
