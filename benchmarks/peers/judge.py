"""Judges a trained policy: its level on a ladder of searches, exact NashConv, or its mean return."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers.games import EXACT, RANDOM, RANDOM_SIMULATIONS, RETURN, TACTICAL, Game
from benchmarks.peers.network_bot import NetworkBot
from benchmarks.peers.search_bot import SearchPolicy
from league.agents.acting.policy import BotPolicy, Policy
from league.judge.contenders.bots import bot_policy
from league.judge.matches.match import Match
from league.judge.matches.match_result import MatchResult
from league.policies.exact.behaviours import Mixture, members_of
from league.policies.exact.exploitability import nash_conv
from league.policies.loading import load_from_run, open_run

SEED = 915_203
"""Of openings, bots and drawn actions."""
GAMES = 200
RUNG_GAMES: Mapping[int, int] = {25: 200, 100: 200, 400: 100, 1600: 60, 6400: 40}
"""Simulations of a rung -> games of its match."""
ENDS_BELOW = 0.5
"""The ladder ends at the first rung whose interval lies below it."""

Groups = dict[str, list[float]]


@dataclass(frozen=True)
class Trained:
    """A trained policy. seat_policy: makes it for a match, given whether it is greedy. mixture: for exact values."""

    seat_policy: Callable[[bool], Policy]
    mixture: Callable[[], Mixture]


def of_run(folder: Path) -> Trained:
    """The policy that League takes by itself from a run: `auto`."""
    loaded = load_from_run(open_run(folder), "auto", seed=SEED)
    return Trained(lambda greedy: loaded.as_seat_policy(greedy=greedy), lambda: members_of(loaded))


def of_file(path: Path) -> Trained:
    """A peer's network."""

    def bot(greedy: bool) -> NetworkBot:
        return NetworkBot(str(path), greedy, seed=zlib.crc32(f"{SEED}/{path.stem}".encode()))

    return Trained(lambda greedy: BotPolicy(bot(greedy)), lambda: [(1.0, bot(False).probs)])


def judged(game: Game, trained: Trained) -> dict[str, object]:
    """Its figures: the scores of groups of games by opponent, a NashConv, or returns of episodes."""
    if game.judge == EXACT:
        return {"nash_conv": nash_conv(game.env, trained.mixture())}
    if game.judge == RETURN:
        result = Match(game.env, [trained.seat_policy(True)], seed=SEED).play(GAMES)
        return {"returns": result.team_returns[:, :, 0].ravel().tolist()}
    return {"groups": ladder(game, trained)}


def ladder(game: Game, trained: Trained) -> Groups:
    """Opponent -> scores of the groups of its match, up to the first rung that is significantly stronger."""
    bots = [RANDOM, *([TACTICAL] if game.has_tactical else [])]
    groups = {bot: _scores(_match(game, trained, bot_policy(bot, seed=SEED), GAMES)) for bot in bots}
    for rung in game.rungs:
        result = _match(game, trained, SearchPolicy(game.spiel, rung, seed=SEED), RUNG_GAMES[rung])
        groups[f"mcts:{rung}"] = _scores(result)
        if result.score().high < ENDS_BELOW:
            break
    return groups


def versus(game: Game, one: Trained, other: Trained) -> list[float]:
    """Scores of the groups of a match of two trained policies."""
    greedy = game.judge != EXACT
    policies = [one.seat_policy(greedy), other.seat_policy(greedy)]
    return _scores(Match(game.env, policies, seed=SEED).play(GAMES))


def simulations_of(opponent: str) -> int | None:
    """The place of an opponent on the ladder; None for one that is no search."""
    if opponent == RANDOM:
        return RANDOM_SIMULATIONS
    return int(opponent.removeprefix("mcts:")) if opponent.startswith("mcts:") else None


def _match(game: Game, trained: Trained, opponent: Policy, games: int) -> MatchResult:
    return Match(game.env, [trained.seat_policy(True), opponent], seed=SEED).play(games)


def _scores(result: MatchResult) -> list[float]:
    return [float(score) for score in result.group_scores[:, 0]]
