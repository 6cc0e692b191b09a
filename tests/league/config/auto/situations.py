"""Made-up facts of each kind of game."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from league.config.auto.draft import Draft
from league.config.auto.resolve import settle
from league.config.auto.situation import Situation
from league.config.loading import config_of
from league.config.run_config import BudgetConfig, RunConfig
from league.envs.facts.game_facts import GameCosts, GameFacts, Spread
from league.envs.protocol import ActionSpec, ArraySpec, EnvSpec

BUDGETS = {
    "minute": BudgetConfig(core_seconds=60.0),
    "hour": BudgetConfig(seconds=3600.0),
    "month": BudgetConfig(seconds=30 * 86400.0),
    "steps": BudgetConfig(env_steps=1_000_000),
    "none": BudgetConfig(),
}

FAST = GameCosts(make_s=1e-6, make_mib=0.001, reset_s=1e-6, call_s=1e-4, game_s=1e-6)
SLOW = GameCosts(make_s=0.02, make_mib=5.0, reset_s=0.01, call_s=0.0, game_s=0.01)


def even(value: float) -> Spread:
    """A quantity that never varies."""
    return Spread(value, 0.0, value, value, value, value)


def spread(low: float, high: float) -> Spread:
    """A quantity between two values."""
    return Spread((low + high) / 2, (high - low) / 4, low, low, high, high)


def spec(*, seats: int = 2, shape: tuple[int, ...] = (84,), **changes: Any) -> EnvSpec:
    """The spec of a made-up game."""
    made = EnvSpec(
        env_id="made_up",
        num_seats=seats,
        observations={"observation": ArraySpec(shape, "float32")},
        actions=ActionSpec("categorical", num_actions=7),
        teams=tuple(range(seats)),
        has_mask=True,
    )
    return replace(made, **changes)


def board_game(**changes: Any) -> GameFacts:
    """Two seats in turn, nothing hidden, won or lost at the end."""
    made = GameFacts(
        spec=spec(),
        play="turn_based",
        episodes=100,
        turns=spread(7, 42),
        decisions=spread(4, 21),
        returns=(spread(-1, 1), spread(-1, 1)),
        margin=spread(-2, 2),
        return_values=(-1.0, 0.0, 1.0),
        zero_sum=True,
        legal=7.0,
        log_legal=1.9,
        copyable=True,
        costs=FAST,
    )
    return replace(made, **changes)


def poker(**changes: Any) -> GameFacts:
    """Two seats in turn with hidden cards, and chips to win."""
    return board_game(
        **{
            "turns": spread(2, 8),
            "decisions": spread(1, 4),
            "surprises": True,
            "return_values": (),
            "returns": (spread(-13, 13), spread(-13, 13)),
            "margin": spread(-26, 26),
            **changes,
        }
    )


def one_shot(**changes: Any) -> GameFacts:
    """All seats decide once, at the same time."""
    return board_game(
        **{"play": "one_shot", "acting": 2.0, "turns": even(1), "decisions": even(1), "copyable": True, **changes}
    )


def one_seat(**changes: Any) -> GameFacts:
    """One seat with a reward in every step."""
    made = {
        "spec": spec(seats=1, shape=(4,), has_mask=False),
        "turns": spread(9, 60),
        "decisions": spread(9, 60),
        "returns": (spread(9, 60),),
        "margin": None,
        "return_values": (),
        "final_only": False,
        "zero_sum": False,
        "copyable": False,
    }
    return board_game(**{**made, **changes})


def settled(game: GameFacts, given: dict[str, Any] | None = None, **changes: Any) -> tuple[RunConfig, dict[str, str]]:
    """The configuration of a game in 300 core-seconds, and the reasons of what was chosen."""
    situation = Situation(game, **{"budget": BudgetConfig(core_seconds=300.0), **changes})
    draft = Draft({"env": {"id": "tic_tac_toe"}, **(given or {})})
    _, choices = settle(draft, situation)
    return config_of(draft.plain, [], source="made up"), {choice.key: choice.reason for choice in choices}
