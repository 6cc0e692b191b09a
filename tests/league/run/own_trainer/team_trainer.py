"""A trainer of four seats of a team matrix by exact gradients with some noise, in a league that says whom to meet.

Shape letters: A actions of a seat.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from league.envs.games.team_matrix import TeamMatrix
from league.policies.exact.least_exploitable import least_exploitable
from league.policies.exact.team_game import TeamForm
from league.run.own_trainer.own_league import League

Plan = NDArray[np.float64]
"""[4, A], logits by seat."""

TEAMS = (0, 0, 1, 1)
STEP, ENTROPY, NOISE, GAMES = 0.5, 0.02, 0.05, 32


def probs(plan: Plan) -> Plan:
    """[4, A]."""
    weights = np.exp(plan - plan.max(axis=1, keepdims=True))
    result: Plan = weights / weights.sum(axis=1, keepdims=True)
    return result


def improved(plan: Plan, seats: tuple[int, ...], other: Plan, payoffs: Plan, rng: np.random.Generator) -> Plan:
    """A step of each of these seats alone: mirror ascent on what its actions earn, and on its entropy."""
    played = [probs(plan if seat in seats else other)[seat] for seat in range(4)]
    result = plan.copy()
    for seat in seats:
        earned = payoffs[..., seat].astype(np.float64)
        for partner in (3, 2, 1, 0):
            if partner != seat:
                earned = np.tensordot(earned, played[partner], axes=(partner, 0))
        earned = earned + NOISE * rng.normal(size=earned.shape)
        result[seat] = (1.0 - STEP * ENTROPY) * plan[seat] + STEP * (earned - earned.mean())
    return result


def sampled(policies: list[Plan], payoffs: Plan, rng: np.random.Generator) -> NDArray[np.float64]:
    """[GAMES, 4], the returns of games between these seats."""
    actions = [rng.choice(len(row), size=GAMES, p=row) for row in policies]
    result: NDArray[np.float64] = payoffs[tuple(actions)].astype(np.float64)
    return result


def train(folder: Path, settings: dict[str, object], *, matches: int, seed: int) -> dict[str, Plan]:
    """Train every player by its matches; returns the plan of each snapshot."""
    payoffs, rng, file = TeamMatrix(num_envs=1).payoffs, np.random.default_rng(seed), folder / "plan.npy"
    frozen: dict[str, Plan] = {}
    with League(folder / "run", env="team_matrix", settings=settings, seed=seed, say=lambda text: None) as own:
        live = {player: 0.05 * rng.normal(size=(4, 3)) for player in own.players}
        for _ in range(matches):
            for player in own.players:
                if own.snapshot_due(player):
                    np.save(file, live[player])
                    frozen[f"{player}-s{sum(name.rpartition('-s')[0] == player for name in frozen)}"] = live[player]
                    again = own.add_snapshot(player, file)
                    live[player] = live[player] if again is None else np.load(again)
            match = own.next_match()
            assert match.player is not None
            plans = {name: np.load(path) for name, path in match.files.items()} | live
            own.report(
                match, sampled([probs(plans[who])[seat] for seat, who in enumerate(match.policies)], payoffs, rng)
            )
            other = plans[match.opponent]
            live[match.player] = improved(live[match.player], match.seats, other, payoffs, rng)
    return frozen


def least_exploitability(frozen: dict[str, Plan]) -> float:
    """The gain of a whole team against the best mixture of snapshots, of which each team draws a member."""
    form = TeamForm(TeamMatrix(num_envs=1).payoffs, TEAMS)
    return least_exploitable(form, np.stack([form.plan(list(probs(plan))) for plan in frozen.values()])).nash_conv / 2
