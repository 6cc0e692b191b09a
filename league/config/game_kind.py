"""Decides the kind of a game: by what it says itself, by what random play showed, or by the user's word.

With it a league is created.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

from league.config.default_scoring import scoring_of
from league.config.run_config import GameConfig, RunConfig
from league.core.state.commands import CreateLeague
from league.core.state.records import GameKind
from league.envs.facts.game_facts import GameFacts
from league.envs.protocol import EnvConfig, EnvSpec
from league.envs.registry import BUILT_IN, make


def kind_of_facts(game: GameFacts) -> GameKind:
    """The kind of a game as random play shows it."""
    information = said_by(game.spec)
    if information == "unknown" and game.hides:
        information = "hidden"
    elif information == "unknown" and game.surprises:
        information = "open"  # it draws lots, and all seats were seen to see the same
    return GameKind(information, game.is_simultaneous, game.spec.num_teams)


def kind_of_run(config: RunConfig, spec: EnvSpec) -> GameKind:
    """The kind of the game of a run: as configured, else as the game says itself.

    Raises:
      EnvError: the game cannot be made.
    """
    chosen = config.game
    if chosen.moves is None:
        return configured(chosen, kind_of_game(config.env, spec))
    return configured(chosen, GameKind(said_by(spec), sides=spec.num_teams))


def creation_of(config: RunConfig, spec: EnvSpec) -> CreateLeague:
    """The command that creates the league of a run.

    Raises:
      ConfigError: the scoring does not fit the game. EnvError: the game cannot be made.
    """
    scoring, kind = scoring_of(config.league.payoff, spec), kind_of_run(config, spec)
    return CreateLeague(config.seed, spec.num_seats, spec.teams, config.league, scoring, kind=kind)


def kind_of_game(env: EnvConfig, spec: EnvSpec) -> GameKind:
    """The kind of a game as far as it says itself and as its first turn shows.

    Raises:
      EnvError: it cannot be made.
    """
    with closing(make(env, num_envs=1)) as game:
        at_once = len(game.reset(0).env_index) > 1
    return GameKind(said_by(spec), at_once, spec.num_teams)


def configured(chosen: GameConfig, kind: GameKind) -> GameKind:
    """The kind with what the user, or `auto`, has set."""
    at_once = kind.at_once if chosen.moves is None else chosen.moves == "at_once"
    return replace(kind, information=chosen.information or kind.information, at_once=at_once)


def said_by(spec: EnvSpec) -> str:
    """The information of a game by its own word; PettingZoo and an env of one's own cannot say that they hide none."""
    if spec.hidden_information:
        return "hidden"
    return "open" if spec.information_known or spec.env_id in BUILT_IN or spec.num_seats == 1 else "unknown"
