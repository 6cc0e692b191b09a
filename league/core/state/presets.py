"""Whole populations in a few lines: groups of players, and the ratings, meta-game and PBT that belong to them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from league.core.state.league_config import GateConfig, PlayerConfig, RatingConfig
from league.core.state.population_config import (
    HyperparameterConfig,
    MetaGameConfig,
    PbtConfig,
    PopulationConfig,
)

SAVE_STEPS = 2_000_000
"""Trained steps between two snapshots of the populations that have no gate."""

CROSS_PLAY_EXPONENT = 6.0
"""Of PFSP in `cross_play`: an opponent that always wins weighs as 64 that draw, so that it is met in most games."""

EARLIEST_PART = 8
"""Of a counter's life that must be over before the gate may end it: the main agents are answered at once, not at the
timeout. In pursuit counters had won every game for half of their lives."""

QUALITY_OPPONENTS = 16
"""Most distinct opponents in one lease of `openai_five`."""


@dataclass(frozen=True)
class PresetParts:
    """The parts of the configuration that a preset replaces; None leaves the default."""

    players: tuple[PlayerConfig, ...]
    ratings: RatingConfig | None = None
    meta_game: MetaGameConfig | None = None
    pbt: PbtConfig | None = None


class Preset(Protocol):
    """Makes a population from a few numbers."""

    def __call__(self, population: PopulationConfig, /) -> PresetParts: ...


def alphastar(population: PopulationConfig) -> PresetParts:
    """Main agents, main exploiters and league exploiters with the published probabilities, gates and resets.

    Source: Vinyals et al. 2019. Half of the env steps go to the main agents, as for one of each.
    """
    gate = GateConfig()
    if population.save_steps is not None:
        gate = GateConfig(min_steps=population.save_steps, timeout_steps=2 * population.save_steps)
    mains = population.main_agents or 1
    counts = {
        "main_exploiter": 1 if population.main_exploiters is None else population.main_exploiters,
        "league_exploiter": 1 if population.league_exploiters is None else population.league_exploiters,
    }
    step_weight = max(sum(counts.values()), 1) / mains
    again = replace(gate, reset_to=population.exploiters_reset_to or gate.reset_to)
    exploiters = [PlayerConfig(role=role, count=count, gate=again) for role, count in counts.items() if count]
    return PresetParts(players=(PlayerConfig(count=mains, step_weight=step_weight, gate=gate), *exploiters))


def openai_five(population: PopulationConfig) -> PresetParts:
    """80 % of the games against the newest weights, 20 % against snapshots by their quality.

    A lease meets more of them than elsewhere: with few at a time, the qualities fall in turns and in large steps.

    Source: Berner et al. 2019, arXiv 1912.06680, appendix N.
    """
    latest = population.play_against_latest_model_ratio
    group = _simple(population, "quality", self_play=0.8 if latest is None else latest)
    return PresetParts(players=(replace(group, opponents_per_lease=QUALITY_OPPONENTS),))


def self_play(population: PopulationConfig) -> PresetParts:
    """The newest weights only; snapshots are kept for ratings and export."""
    return PresetParts(players=(_simple(population, "self_play"),))


def fictitious(population: PopulationConfig) -> PresetParts:
    """Every snapshot alike. Source: Heinrich et al. 2015, fictitious self-play."""
    return PresetParts(players=(_simple(population, "fictitious", self_play=0.0),))


def window(population: PopulationConfig) -> PresetParts:
    """The newest weights, and a window of snapshots. Source: Unity ML-Agents, self-play settings."""
    latest = population.play_against_latest_model_ratio
    share = 0.5 if latest is None else latest
    return PresetParts(players=(_simple(population, "window", self_play=share, window=population.window or 10),))


def psro(population: PopulationConfig) -> PresetParts:
    """Best responses to the Nash mixture over all snapshots. Source: Lanctot et al. 2017, PSRO."""
    return PresetParts(
        players=(_simple(population, "meta_nash", self_play=0.0),),
        ratings=RatingConfig(step_fraction=0.2),
        meta_game=MetaGameConfig(solve=True),
    )


def pbt(population: PopulationConfig) -> PresetParts:
    """A population that meets opponents of its own strength, copies and mutates.

    Source: Jaderberg et al. 2019 (matchmaking, who copies whom, +-20 %), Jaderberg et al. 2017 (PBT).
    """
    save_steps = population.save_steps or SAVE_STEPS
    tuned = ("learning_rate", "entropy_cost", "discount")
    return PresetParts(
        players=(_simple(population, "even_odds", self_play=0.2, main_agents=4),),
        pbt=PbtConfig(
            selection="elo_gap",
            hyperparameters=(
                *(HyperparameterConfig(name) for name in tuned),
                HyperparameterConfig("self_play", initial=0.2, low=0.05, high=0.8),
            ),
            period_steps=max(save_steps // 4, 1),
            burn_in_steps=max(save_steps // 2, 1),
        ),
    )


def cross_play(population: PopulationConfig) -> PresetParts:
    """A main agent and a counter population for games of teams, where the newest weights alone stay in a trap.

    There no seat alone leaves a joint choice that a whole other team beats. Counters start again and again from their
    first weights, each to beat the main agents as they are. A life ends once it does, or after `save_steps`. What they
    found stays in the population. The main agents meet whom they do not beat, and hardly themselves.

    Source: Xu et al. 2023, Fictitious Cross-Play; Xu et al. 2025, its generalisation: who trains against whom. The
    numbers are ours.
    """
    steps = population.save_steps or SAVE_STEPS
    counters = 4 if population.main_exploiters is None else population.main_exploiters
    gate = GateConfig(min_steps=steps, timeout_steps=steps)
    meets = {"kind": "main_agent", "self_play": 0.1, "pfsp": 0.9, "verification": 0.0, "weighting": "hard"}
    main = PlayerConfig(
        count=population.main_agents or 1,
        step_weight=max(counters / 2, 1.0),
        matchmaker={**meets, "pfsp_exponent": CROSS_PLAY_EXPONENT},
        gate=gate,
    )
    counter = PlayerConfig(
        role="main_exploiter",
        name="counter",
        count=max(counters, 1),
        matchmaker={"kind": "main_exploiter", "curriculum_below": 0.0, "curriculum_fraction": 0.0},
        gate=replace(gate, min_steps=steps // EARLIEST_PART),
    )
    return PresetParts(players=(main, counter) if counters else (main,))


def exploit(population: PopulationConfig) -> PresetParts:
    """A fresh player that trains against nothing but its fixed_opponents: how well it does is how exploitable they
    are."""
    steps = population.save_steps or SAVE_STEPS
    player = PlayerConfig(
        role="main_exploiter",
        count=population.main_exploiters or 1,
        matchmaker="fixed_opponents",
        gate=GateConfig(min_steps=steps, timeout_steps=steps, reset_probability=0.0),
    )
    return PresetParts(players=(player,))


def _simple(population: PopulationConfig, matchmaker: str, *, main_agents: int = 1, **options: float) -> PlayerConfig:
    """Players of one matchmaker that are frozen every `save_steps`."""
    steps = population.save_steps or SAVE_STEPS
    return PlayerConfig(
        count=population.main_agents or main_agents,
        matchmaker={"kind": matchmaker, **options},
        gate=GateConfig(min_steps=steps, timeout_steps=steps),
    )
