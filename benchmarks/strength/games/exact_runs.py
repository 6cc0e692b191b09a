"""Exports of a run of a game with exact exploitability: last, second half, Nash, mixture.

Shape letter: M snapshots.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.strength.games import repeated_games
from benchmarks.strength.runs import core_budget
from league.core.matchmaking.roles import MAIN_ROLE
from league.core.metagame.solvers import regret_matching
from league.core.state.records import SnapshotInfo
from league.envs.protocol import EnvConfig
from league.policies.exact import exploitability
from league.policies.exact.behaviours import Mixture, PolicyFunction, members_of
from league.policies.loading import OpenRun, load_from_run, load_selection, open_run
from league.policies.select import Selection

MAX_MEMBERS = 60
"""Snapshots that the Nash mixture is solved over; of more, evenly spaced ones are taken."""
TOLERANCE = 2e-4
"""Of the Nash mixture, as a share of the payoffs' range."""


@dataclass(frozen=True)
class Exports:
    """NashConv of what a run exports.

    Fields:
      last: the main agent's newest snapshot; second_half: the second half of its snapshots, uniformly.
      nash: the Nash mixture over all snapshots, from exact payoffs.
      mixture: what `load_policy(..., "mixture")` gives, from the games of the run itself.
      env_steps: decisions taken in all games, a whole number.
    """

    last: float
    second_half: float
    nash: float
    mixture: float
    env_steps: float

    @property
    def best(self) -> float:
        """Of last, second half and nash, which every population can be given alike."""
        return min(self.last, self.second_half, self.nash)

    def nash_convs(self) -> dict[str, float]:
        """By export."""
        return {
            "last": self.last,
            "second half": self.second_half,
            "nash, exact payoffs": self.nash,
            "mixture, own payoffs": self.mixture,
        }


def run_settings(
    *, seed: int, core_seconds: float, league: str | None, settings: Sequence[str] = ()
) -> tuple[str, ...]:
    """The "key=value" settings of one run.

    Args:
      league: YAML that takes the place of the configuration's `league` section; None leaves it.
      settings: further ones.
    """
    section = [] if league is None else [f"league={league}"]
    return (f"seed={seed}", core_budget(core_seconds), "evaluation.bots=[]", *settings, *section)


def exports_of(run_dir: Path) -> Exports:
    """NashConv of everything that a finished run exports."""
    run = open_run(run_dir)
    snapshots = [snapshot for snapshot in run.state.snapshots.values() if snapshot.player]
    mains = [snapshot for snapshot in snapshots if snapshot.role == MAIN_ROLE]
    tail = _policies(run, mains[len(mains) // 2 :])
    every = _policies(run, _spread(snapshots))
    return Exports(
        last=nash_conv(run.env, tail[-1]),
        second_half=nash_conv(run.env, [(1.0, policy) for policy in tail]),
        nash=nash_conv(run.env, exact_nash(run, every)),
        mixture=nash_conv(run.env, members_of(load_from_run(run, "mixture"))),
        env_steps=run.state.totals.env_steps,
    )


def nash_conv(env: EnvConfig, policy: PolicyFunction | Mixture) -> float:
    """NashConv in the rewards of a whole game."""
    exact = repeated_games.nash_conv if repeated_games.is_repeated(env) else exploitability.nash_conv
    return exact(env, policy)


def payoff_range(env: EnvConfig) -> float:
    """Highest minus lowest payoff of a whole game: what an exploitability can be a share of."""
    whole = repeated_games.whole_range if repeated_games.is_repeated(env) else exploitability.payoff_range
    return whole(env)


def exact_nash(run: OpenRun, policies: Sequence[PolicyFunction]) -> Mixture:
    """The mixture over `policies` that loses least against the best of them, from exact payoffs over both seats."""
    pairwise = repeated_games.pairwise_values if repeated_games.is_repeated(run.env) else exploitability.pairwise_values
    values = pairwise(run.env, policies)
    margins = 0.5 * (values - values.T)
    scale = max(float(np.abs(margins).max()), 1e-9)
    weights = regret_matching(0.5 + 0.5 * margins / scale, tolerance=TOLERANCE)
    return [(weight, policy) for weight, policy in zip(weights.tolist(), policies, strict=True) if weight > 0]


def _spread(snapshots: Sequence[SnapshotInfo]) -> list[SnapshotInfo]:
    """At most `MAX_MEMBERS` of them, evenly spaced, the last one included."""
    places = np.linspace(0, len(snapshots) - 1, min(len(snapshots), MAX_MEMBERS)).round().astype(int)
    return [snapshots[place] for place in places]


def _policies(run: OpenRun, snapshots: Sequence[SnapshotInfo]) -> list[PolicyFunction]:
    chosen = [Selection(snapshot.snapshot_id, ((1.0, snapshot),), "") for snapshot in snapshots]
    return [members_of(load_selection(run, selection))[0][1] for selection in chosen]
