"""A one-shot game over a payoff table between teams, each of which chooses for all of its seats together.

Teams are the players and their joint actions the choices: what no seat alone can leave, its whole team can. A member
of a mixture is drawn for each team.

Shape letters: J joint actions of a team, M members of a mixture, Q joint actions of all teams, S seats.
Source: Celli and Gatti 2018 (teams that agree before the game); Xu et al. 2023, Fictitious Cross-Play.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from league.envs.decision_tree import TableGame
from league.envs.protocol import BatchedEnv, EnvConfig
from league.envs.registry import make
from league.policies.exact.behaviours import Array, Mixture, PolicyFunction, probs_of, weighed
from league.policies.exact.small_game import NoExactValue


class TeamForm:
    """The table with one axis for each team; a plan holds the probabilities of every team's joint actions.

    Args:
      payoffs: [A_0, ..., A_(S-1), S]; what a team gains is counted once, as the mean over its seats. teams: [S].
    """

    def __init__(self, payoffs: NDArray[np.floating], teams: Sequence[int]) -> None:
        self._seats = [[seat for seat, team in enumerate(teams) if team == side] for side in sorted(set(teams))]
        order = [seat for own in self._seats for seat in own]
        sizes = [math.prod(payoffs.shape[seat] for seat in own) for own in self._seats]
        table = payoffs.astype(np.float64).transpose(*order, len(order)).reshape(*sizes, len(order))
        self._earned = [table[..., own].mean(axis=-1) for own in self._seats]
        self._ends = np.cumsum([0, *sizes])

    @property
    def num_seats(self) -> int:
        """Teams, which are the players here."""
        return len(self._seats)

    @property
    def is_zero_sum(self) -> bool:
        """True if the teams earn nothing together, apart from rounding."""
        together, most = sum(self._earned), max(float(np.abs(earned).max()) for earned in self._earned)
        return bool(np.abs(together).max() <= 1e-9 * max(most, 1e-300))

    def plan(self, probs: Sequence[Array]) -> Array:
        """[Q], of the action probabilities [A_s] of each seat."""
        joint = [functools.reduce(np.multiply.outer, [probs[seat] for seat in own]).ravel() for own in self._seats]
        return np.concatenate(joint)

    def best_reply(self, plan: Array, seat: int) -> tuple[float, Array]:
        """The earnings of a team's best reply to the plan [Q] of all others, and its plan [Q], 0 for the others."""
        worth, reply = self._worth(plan, seat), np.zeros(len(plan))
        reply[self._ends[seat] + worth.argmax()] = 1.0
        return float(worth.max()), reply

    def against_each(self, reply: Array, seat: int, plans: Array) -> Array:
        """[M], what a team earns with `reply`, [Q], while all other teams play one member's plan of [M, Q]."""
        own = self._part(reply, seat)
        return np.array([float(own @ self._worth(plan, seat)) for plan in plans])

    def nash_conv(self, plan: Array) -> float:
        """Sum over the teams of the gain by a best reply, when all play `plan`, [Q]."""
        gains = []
        for seat in range(self.num_seats):
            worth = self._worth(plan, seat)
            gains.append(float(worth.max() - self._part(plan, seat) @ worth))
        return sum(gains)

    def _part(self, plan: Array, seat: int) -> Array:
        return plan[self._ends[seat] : self._ends[seat + 1]]

    def _worth(self, plan: Array, seat: int) -> Array:
        """[J], what each joint action of a team earns on average while the others play the plan."""
        worth: Array = self._earned[seat]
        for other in reversed(range(self.num_seats)):  # from the last axis on, so that earlier ones keep their index
            if other != seat:
                worth = np.tensordot(worth, self._part(plan, other), axes=(other, 0))
        return worth


@dataclass(frozen=True)
class TeamGame:
    """A one-shot game of teams with several seats.

    Fields:
      env: of the game. form: its table. deals: None, as nothing of it is drawn.
    """

    env: EnvConfig
    form: TeamForm
    deals: None = None

    def plans(self, policies: Sequence[PolicyFunction]) -> Array:
        """[M, Q], the plans of policies."""
        with closing(make(self.env, num_envs=1)) as game:
            return np.stack([self.form.plan(seat_probs(game, policy)) for policy in policies])

    def nash_conv(self, policy: PolicyFunction | Mixture) -> float:
        """NashConv of whole teams, of which each draws a member of the mixture."""
        weights, members = weighed(policy)
        return self.form.nash_conv(weights @ self.plans(members))


def team_exploitability(env: EnvConfig | str, policy: PolicyFunction | Mixture) -> float:
    """The mean gain of a team that changes all of its seats together against the other teams of a one-shot game.

    A member of a mixture is drawn for each team and game, and plays all seats of the team.

    Raises:
      NoExactValue: the game has no payoff table.
      ValueError: what a policy returned are no probabilities of legal actions.
    """
    config = EnvConfig(env) if isinstance(env, str) else env
    with closing(make(config, num_envs=1)) as game:
        if not isinstance(game, TableGame) or game.rounds != 1:
            raise NoExactValue(f"{game.spec.env_id} is no one-shot game over a payoff table.")
        form = TeamForm(game.payoffs, game.spec.teams)
    return TeamGame(config, form).nash_conv(policy) / form.num_seats


def team_game(env: EnvConfig) -> TeamGame | None:
    """A game as one of teams; None where no team has several seats, or it is not one-shot over a payoff table."""
    if env.workers not in ("auto", 0):
        return None
    with closing(make(env, num_envs=1)) as game:
        teams = game.spec.teams
        if not isinstance(game, TableGame) or game.rounds != 1 or len(set(teams)) in (1, len(teams)):
            return None
        return TeamGame(env, TeamForm(game.payoffs, teams))


def seat_probs(game: BatchedEnv, policy: PolicyFunction) -> list[Array]:
    """Action probabilities [A_s] of each seat in a one-shot game."""
    turn = game.reset(0)
    assert isinstance(game, TableGame) and turn.seat.tolist() == list(range(game.spec.num_seats))
    legal = turn.action_mask
    if legal is None:
        legal = np.ones((turn.seat.size, game.spec.actions.num_actions), np.bool_)
    probs = probs_of(policy, turn.obs, legal)
    return [probs[seat, :count] for seat, count in enumerate(game.payoffs.shape[:-1])]
