"""Settings of a search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from league.envs.protocol import EnvSpec

MAX_SIMULATIONS = 100_000


@dataclass(frozen=True)
class SearchConfig:
    """Options of `search`.

    Fields:
      simulations: visits of the root after which it moves; those that a tree keeps from the last move count.
      method: "puct" (AlphaGo Zero, AlphaZero), or "gumbel" (sequential halving and completed values), which improves
        the policy with few simulations too.
      leaves: walks of one wave in each tree; 0 for as many as pay: 1 for many games, up to 12 for a single one.
      reuse: keep the part of the tree below the moves that were made; for "puct" alone.
      noise: fraction of Dirichlet noise in the prior of the root while it explores; for "puct" alone.
      sampled_plies: plies of a game in which an exploring search draws its move in proportion to visits; later it plays
        the most visited one (published: 30, for Connect Four 10).
      resign_below: value of the root, in units in which a loss is -1 and a win 1, at which a seat gives up: the rest of
        the game is played without search. None for never.
      played_on: fraction of games that are searched to their end all the same; they tell how often that was wrong.
      time_limit_s: seconds for the moves of one turn of all games, after which it answers with what it has; None for no
        limit.
    """

    simulations: int = 50
    method: Literal["puct", "gumbel"] = "puct"
    leaves: int = 0
    reuse: bool = True
    noise: float = 0.25
    sampled_plies: int = 30
    resign_below: float | None = None
    played_on: float = 0.1
    time_limit_s: float | None = None

    def problems(self) -> list[str]:
        found = []
        if not 1 <= self.simulations <= MAX_SIMULATIONS:
            found.append(f"simulations: {self.simulations} is not in [1, {MAX_SIMULATIONS}]")
        if not 0 <= self.leaves <= self.simulations:
            found.append(f"leaves: {self.leaves} is not in [0, simulations] = [0, {self.simulations}]")
        for name in ("noise", "played_on"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                found.append(f"{name}: {getattr(self, name)} is not in [0, 1]")
        if self.sampled_plies < 0:
            found.append(f"sampled_plies: {self.sampled_plies} must be at least 0")
        if self.resign_below is not None and not -1.0 <= self.resign_below < 1.0:
            found.append(f"resign_below: {self.resign_below} is not in [-1, 1); null for never")
        if self.time_limit_s is not None and self.time_limit_s <= 0.0:
            found.append(f"time_limit_s: {self.time_limit_s} must be greater than 0, or null for no limit")
        return found


def game_problems(spec: EnvSpec, *, can_copy: bool, turns_alternate: bool = True) -> list[str]:
    """Reasons for which a game cannot be searched, one sentence each.

    Args:
      can_copy: its env is a `ForkableEnv`.
      turns_alternate: one seat acts at a time.
    """
    found = []
    if spec.hidden_information:
        known = "" if spec.information_known else " as far as it says"
        found.append(f"search tries moves out on copies, which would show a seat what {spec.env_id} hides{known}")
    if not can_copy:
        found.append(
            f"search tries moves out on copies, and games of {spec.env_id} cannot be copied; give the env the "
            "methods of league.envs.protocol.ForkableEnv (fork, save, load), and set env.workers: 0 to keep it out of "
            "child processes"
        )
    if spec.actions.kind != "categorical":
        found.append(f"search needs numbered actions, those of {spec.env_id} are {spec.actions.kind}")
    if not turns_alternate:
        found.append(f"search needs one seat to act at a time, in {spec.env_id} several do")
    return found


def walks_per_wave(config: SearchConfig, num_trees: int) -> int:
    """Leaves that each of so many trees looks for in one wave."""
    if config.leaves:
        return config.leaves
    return max(1, min(MAX_LEAVES, MAX_ROWS // num_trees, config.simulations // WAVES))


MAX_LEAVES, MAX_ROWS = 12, 64
"""Most leaves of a tree in one wave, and of all trees where a tree has several: a pass over so few rows costs about as
much as one over a single row."""

WAVES = 8
"""Waves that a search has at least; fewer see too little of what earlier ones found."""
