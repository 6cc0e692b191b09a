"""Selects the bots of an evaluation: those of the run where none are named, that can play, and that the time allows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from league.agents.acting.policy import ActInputs
from league.config.run_config import EvaluationConfig
from league.envs.protocol import EnvConfig, EnvError, EnvSpec
from league.envs.registry import make
from league.judge.contenders.bots import SEARCH, bot_policy, simulations_of
from league.judge.matches.timed import Deadline, affordable, expected_seconds
from league.policies.loading import OpenRun
from league.wording import duration_text

WORTH_SAYING_S = 10.0
"""Seconds of all games of a bot from which on its cost is said beforehand."""


@dataclass(frozen=True)
class BotGames:
    """The games of each bot. games: of a match. players: whom it meets. seed: of its draws."""

    games: int
    players: int
    seed: int


def chosen_bots(evaluation: EvaluationConfig, spec: EnvSpec) -> tuple[str, ...]:
    """The bots of a configuration. In games of one team the default searching ones say nothing and are left out."""
    if evaluation.bots != EvaluationConfig().bots or spec.num_teams > 1:
        return evaluation.bots
    return ("random",)


def bots_to_play(
    run: OpenRun,
    bots: Sequence[str] | None,
    asked: BotGames,
    *,
    deadline: Deadline | None,
    say: Callable[[str], None],
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The bots that play, and a sentence on each that is left out.

    Args:
      bots: names as in `make_bot`; None for `chosen_bots`.
      deadline: those too dear for it are left out. Without one, `say` takes a sentence on the time that they need.
    Raises:
      EnvError: no such bot, or the game cannot be made.
    """
    named = chosen_bots(run.evaluation, run.spec) if bots is None else bots
    fitting, notes = fitting_bots(run.env, named, seed=asked.seed)
    decisions = run.state.totals.decisions / max(run.state.totals.games, 1) / run.spec.num_teams
    if deadline is None:
        _say_costs(run.env, fitting, asked, decisions=decisions, say=say)
        return fitting, notes
    limit_s = max(deadline.left(), 0.0)
    kept, dear = affordable(
        run.env,
        fitting,
        limit_s=limit_s,
        players=asked.players,
        games=asked.games,
        decisions=decisions,
        seed=asked.seed,
    )
    return kept, notes + dear


def _say_costs(
    env: EnvConfig, bots: Sequence[str], asked: BotGames, *, decisions: float, say: Callable[[str], None]
) -> None:
    """Say how long the games of slow bots take. decisions: of a bot in one game."""
    moves = asked.games * asked.players * decisions
    costs = expected_seconds(env, bots, moves=moves, seed=asked.seed, enough_s=WORTH_SAYING_S)
    dear = [f"{bot} about {duration_text(seconds)}" for bot, seconds in costs.items() if seconds >= WORTH_SAYING_S]
    if dear:
        say(f"For {asked.games} games a match the bots need time: {', '.join(dear)}. --bots and --games choose others.")


def fitting_bots(env_config: EnvConfig, bots: Sequence[str], *, seed: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The bots that can play a game, and a sentence on each that cannot; found out by asking each for one move.

    Searches answer together, for one simulation: a move of mcts:100 takes minutes in some games.

    Raises:
      EnvError: no such bot, or the game cannot be made.
    """
    fitting, notes, refusals = [], [], dict[str, str]()
    env = make(env_config, num_envs=1)
    try:
        turn = env.reset(seed)
        view = ActInputs(env, turn, np.arange(1), np.zeros((1, 0), np.float32))
        for name in dict.fromkeys(bots):
            bot_policy(name, seed=seed)  # raises where there is none of this name
            asked = f"{SEARCH}:1" if simulations_of(name) else name
            if asked not in refusals:
                refusals[asked] = _refusal(asked, view, seed=seed)
            if refusals[asked]:
                notes.append(f"{name} does not play {env_config.id}: {refusals[asked]}")
            else:
                fitting.append(name)
    finally:
        env.close()
    return tuple(fitting), tuple(notes)


def _refusal(bot: str, view: ActInputs, *, seed: int) -> str:
    """The reason for which a bot cannot play a game, "" if it can."""
    try:
        bot_policy(bot, seed=seed).act(view, np.random.default_rng(seed))
    except EnvError as error:
        return str(error)
    return ""
