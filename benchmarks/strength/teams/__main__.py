"""Team games against a scripted opponent: mpe2's simple_tag and MAgent2's battle, beside random play's own figures.

`python -m benchmarks.strength.teams --runs DIR --json`. Needs the extras `mpe` and `magent`. Each seed trains the
game's configuration for `--core-seconds`. Finished runs in `--runs` are used again and interrupted ones resumed, and
figures in `--results` are not found again.

A tie is a game and its return leg with the teams exchanged; who earns more by seat in both together has won it.
Games won would say nothing in simple_tag, where taggers always earn more than the runner. What each team learnt is the
mean return of one of its seats against the scripted other team.

Shape letters: R rotations, G ties, T teams.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.report import Report
from benchmarks.strength.runs import (
    LEAGUE,
    ROOT,
    Plan,
    add_plan_arguments,
    core_budget,
    finished_run,
    measured,
    wall_limit,
)
from benchmarks.strength.teams.team_bots import BattleBot, TagBot
from league.agents.acting.policy import BotPolicy, Policy
from league.config.loading import load_config
from league.envs.bots import Bot, RandomBot
from league.envs.protocol import EnvConfig, EnvSpec
from league.envs.registry import spec_of
from league.judge.matches.match import Match
from league.judge.matches.match_result import MatchResult
from league.policies.loading import load_from_run, open_run

EXPORTS = ("best", "ema")
RANDOM, SCRIPTED = "random", "scripted"
SEED = 20_261_122


@dataclass(frozen=True)
class Game:
    """A team game. teams: words for its teams; bot: makes the scripted opponent."""

    config: Path
    teams: tuple[str, str]
    bot: Callable[[int], Bot]


GAMES: Mapping[str, Game] = {
    "simple_tag": Game(ROOT / "configs" / "simple_tag.yaml", ("taggers", "runner"), lambda seed: TagBot(seed=seed)),
    "battle": Game(ROOT / "configs" / "battle.yaml", ("red", "blue"), lambda seed: BattleBot(seed=seed)),
}


def seat_returns(result: MatchResult, spec: EnvSpec) -> NDArray[np.float64]:
    """float64 [R, G, T], mean return of a seat of each contender's team."""
    sizes = np.array([spec.teams.count(team) for team in dict.fromkeys(spec.teams)])
    teams = np.arange(len(sizes))
    held = (teams[None, :] + teams[:, None]) % len(sizes)  # [R, T], the team of each contender
    returns: NDArray[np.float64] = result.team_returns / sizes[held][:, None, :]
    return returns


def figures_of(name: str, result: MatchResult, spec: EnvSpec, teams: Sequence[str]) -> dict[str, float]:
    """The figures of one contender's match against the scripted opponent."""
    returns = seat_returns(result, spec)
    margins = (returns[:, :, 0] - returns[:, :, 1]).sum(axis=0)
    found = {f"{name}: ties won": float((margins > 0).mean() + 0.5 * (margins == 0).mean())}
    for number, team in enumerate(teams):
        found[f"{name}: return as {team}"] = float(returns[number, :, 0].mean())
        found[f"{name}: return that the other side is left with, as {team}"] = float(returns[number, :, 1].mean())
    return found


def baselines(game: Game, env: EnvConfig, *, games: int) -> dict[str, float]:
    """The figures of random play and of the scripted player itself against the scripted opponent."""
    spec, found = spec_of(env), {}
    players: dict[str, Bot] = {RANDOM: RandomBot(seed=SEED), SCRIPTED: game.bot(SEED + 1)}
    for name, player in players.items():
        pair = [BotPolicy(player), BotPolicy(game.bot(SEED))]
        found.update(figures_of(name, Match(env, pair, seed=SEED).play(games), spec, game.teams))
    return found


def judged(game: Game, run_dir: Path, *, games: int) -> dict[str, float]:
    """The figures of each export of a finished run against the scripted opponent."""
    run, found = open_run(run_dir), {}
    spec = spec_of(run.env)
    for export in EXPORTS:
        player: Policy = load_from_run(run, export).as_seat_policy(greedy=False)
        result = Match(run.env, [player, BotPolicy(game.bot(SEED))], seed=SEED).play(games)
        found.update(figures_of(export, result, spec, game.teams))
    return found


def measure(name: str, plan: Plan) -> Report:
    """Train and judge each seed of a game; collect the rows."""
    game, report = GAMES[name], Report()
    config = load_config(game.config)
    budget = plan.core_seconds or config.budget.core_seconds
    assert budget is not None, f"{game.config} has no budget of processor time"
    for row, value in baselines(game, config.env, games=plan.games).items():
        report.add(f"{name}: {row}", value, _unit(row))
    kept: dict[str, list[float]] = {}
    for seed in plan.seeds:
        run_dir = plan.run_dir(name, LEAGUE, seed)
        settings = [f"seed={seed}", core_budget(budget), "evaluation.bots=[]"]

        def find(run_dir: Path = run_dir, settings: Sequence[str] = settings) -> dict[str, float]:
            finished_run(game.config, run_dir=run_dir, settings=settings, timeout_s=wall_limit(budget))
            return judged(game, run_dir, games=plan.games)

        for row, value in plan.figures(run_dir, config=game.config, settings=settings, find=find).items():
            kept.setdefault(row, []).append(value)
            report.add(f"{name}, seed {seed}: {row}", value, _unit(row))
    for row, values in kept.items():
        report.add(f"{name}: {row}, median of {len(values)} seeds", statistics.median(values), _unit(row))
    return report


def _unit(row: str) -> str:
    return "of ties" if "ties won" in row else "a seat"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the games that the command line names; the last line is JSON if asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.strength.teams", description=__doc__)
    parser.add_argument("--games", nargs="+", choices=GAMES, default=[*GAMES])
    parser.add_argument("--core-seconds", type=float, help="budget of each run; that of its configuration if not given")
    parser.add_argument("--matches", type=int, default=400, help="games of each match, two a tie")
    add_plan_arguments(parser)
    options = parser.parse_args(arguments)

    def measure_all(plan: Plan) -> Report:
        report = Report()
        for name in options.games:
            report.rows.extend(measure(name, plan).rows)
        return report

    return measured(options, measure_all, games=options.matches, evaluation_seed=SEED)


if __name__ == "__main__":
    sys.exit(main())
