"""Figures of a finished run: what a best response wins, scores against bots and the past, or mean returns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.defaults.games import EXACT, RETURN, Game
from benchmarks.strength.robustness import load_snapshot, main_snapshots
from league.agents.acting.policy import Policy
from league.core.matchmaking.roles import MAIN_ROLE
from league.core.state.records import SnapshotInfo
from league.envs.registry import spec_of
from league.judge.contenders.bots import bot_policy
from league.judge.matches.match import Match
from league.policies.exact.behaviours import members_of, uniform
from league.policies.exact.exploitability import nash_conv
from league.policies.loaded_policy import LoadedMixture, LoadedPolicy
from league.policies.loading import OpenRun, load_from_run
from league.policies.select import UnknownPolicy

LAST = "last"
EXPORTS = (LAST, "average", "mixture", "best", "ema", "exact", "auto")
"""Exports that are judged, `LAST` being the newest snapshot; a run that has no export of a name has no figure of it."""
MAX_PAST = 12
"""Most snapshots of the own past that a policy meets."""
SLOW_BOTS = {"mcts:100": 100, "mcts:1000": 40}
"""Bot -> the most games of a match with it."""
WORST_PAST = "v worst of own past"

Loaded = LoadedPolicy | LoadedMixture


@dataclass(frozen=True)
class Evaluation:
    """games: of each match. seed: of openings, bots and sampled actions."""

    games: int
    seed: int


def figures_of(run: OpenRun, game: Game, evaluation: Evaluation) -> dict[str, float]:
    """Figure -> value of a run: those of its training, and each export's, such as "mixture NashConv"."""
    figures = training_figures(run)
    known: dict[tuple[str, ...], dict[str, float]] = {}  # several exports may be the same policy
    for export, policy in exports_of(run, seed=evaluation.seed).items():
        members = tuple(f"{weight:.9f} {member.name}" for weight, member in policy.members)
        if members not in known:
            known[members] = _policy_figures(run, game, policy, evaluation)
        figures |= {f"{export} {name}": value for name, value in known[members].items()}
    return figures


def training_figures(run: OpenRun) -> dict[str, float]:
    """Decisions of a run, the fraction of them that main agents learnt from, and the number of their snapshots.

    A learner that uses a row several times counts it each time, so that the fraction may be above 1.
    """
    mains = [player for player in run.state.players.values() if player.role == MAIN_ROLE]
    totals = run.state.totals
    learnt = sum(player.trained_steps for player in mains)
    return {
        "decisions": float(totals.decisions),
        "decisions learnt by main": learnt / totals.decisions if totals.decisions else 0.0,
        "main snapshots": float(len(main_snapshots(run))),
    }


def exports_of(run: OpenRun, *, seed: int) -> dict[str, Loaded]:
    """Export -> policy, of those that the run has."""
    found: dict[str, Loaded] = {LAST: load_snapshot(run, main_snapshots(run)[-1])}
    for export in EXPORTS[1:]:
        try:
            found[export] = load_from_run(run, export, seed=seed)
        except UnknownPolicy:
            continue
    return found


def reference_figures(game: Game, evaluation: Evaluation) -> dict[str, float]:
    """The figures of uniform play, under the names that an export's have."""
    if game.judge == EXACT:
        return {"NashConv": nash_conv(game.env, uniform)}
    if game.judge == RETURN:
        return {"return": _mean_return(game, bot_policy("random", seed=evaluation.seed + 1), evaluation)}
    return _scores(game, lambda: bot_policy("random", seed=evaluation.seed + 1), evaluation)


def versus(game: Game, one: Loaded, other: Loaded, evaluation: Evaluation) -> float:
    """Score of one policy against another, both sampling their actions."""
    policies = [one.as_seat_policy(), other.as_seat_policy()]
    games = _whole(game, evaluation.games)
    return Match(game.env, policies, seed=evaluation.seed).play(games).score().value


def _policy_figures(run: OpenRun, game: Game, policy: Loaded, evaluation: Evaluation) -> dict[str, float]:
    if game.judge == EXACT:
        return {"NashConv": nash_conv(game.env, members_of(policy))}
    if game.judge == RETURN:
        return {"return": _mean_return(game, policy.as_seat_policy(greedy=True), evaluation)}
    greedy = game.has_perfect_information
    figures = _scores(game, lambda: policy.as_seat_policy(greedy=greedy), evaluation)
    past = spread(main_snapshots(run)[:-1], MAX_PAST)
    scores = [versus(game, policy, load_snapshot(run, snapshot), evaluation) for snapshot in past]
    return figures | ({WORST_PAST: min(scores)} if scores else {})


def _scores(game: Game, contender: Callable[[], Policy], evaluation: Evaluation) -> dict[str, float]:
    figures = {}
    for bot in game.bots:
        games = _whole(game, min(evaluation.games, SLOW_BOTS.get(bot, evaluation.games)))
        players = [contender(), bot_policy(bot, seed=evaluation.seed)]
        result = Match(game.env, players, seed=evaluation.seed).play(games)
        figures[f"v {bot}"] = result.score().value
    return figures


def _mean_return(game: Game, contender: Policy, evaluation: Evaluation) -> float:
    result = Match(game.env, [contender], seed=evaluation.seed).play(evaluation.games)
    return result.mean_return().value


def _whole(game: Game, games: int) -> int:
    """At least so many games, a multiple of the game's teams."""
    teams = len(set(spec_of(game.env).teams))
    return -(-games // teams) * teams


def spread(snapshots: Sequence[SnapshotInfo], most: int) -> list[SnapshotInfo]:
    """At most so many of them, evenly spaced, first and last included."""
    if len(snapshots) <= most:
        return list(snapshots)
    places = np.linspace(0, len(snapshots) - 1, most).round().astype(int)
    return [snapshots[place] for place in places.tolist()]
