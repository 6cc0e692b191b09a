"""Small games: every history known, from the game itself, from a table, or by copies of its games.

Shape letters: A actions, M policies, S seats, Q sequences (`league.exact.sequence_form`).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass

import msgspec
import numpy as np

from envs.decision_tree import DecisionTree, Endings, InformationStates, TableGame, TreeGame
from envs.protocol import BatchedEnv, EnvConfig, EnvError
from envs.registry import make
from envs.search.tree_walk import VisitedTree, visit
from league.errors import LeagueError
from league.exact.behaviours import Array, Mixture, PolicyFunction, tables_of, weighed
from league.exact.sequence_form import SequenceForm

VISIT_S = 60.0
"""Seconds of a visit by copies, where nothing else is said."""


class NoExactValue(LeagueError):  # noqa: N818
    """A game or a policy of which no exact exploitability can be computed here."""


@dataclass(frozen=True)
class SmallGame:
    """A game of which every history is known.

    Fields:
      states: its information states. form: its sequence form.
      deals: different draws of chance that were met, where some may be missing; None where none is.
    """

    states: InformationStates
    form: SequenceForm
    deals: int | None = None

    def plans(self, policies: Sequence[PolicyFunction]) -> Array:
        """[M, Q], the plans of policies."""
        return self.form.plans(tables_of(self.states, policies))

    def nash_conv(self, policy: PolicyFunction | Mixture) -> float:
        """See `nash_conv`."""
        weights, members = weighed(policy)
        return self.form.nash_conv(weights @ self.plans(members))


def small_game(env: EnvConfig | str, *, limit_s: float = VISIT_S) -> SmallGame:
    """Every history of a game.

    Args:
      limit_s: seconds of a visit by copies, for games that do not name their information states.
    Raises:
      NoExactValue: the game is too large, or can be neither asked nor copied.
    """
    config = EnvConfig(env) if isinstance(env, str) else env
    with closing(make(config, num_envs=1)) as game:
        try:
            if isinstance(game, TreeGame):
                return _small(game.decision_tree())
            if isinstance(game, TableGame) and game.rounds == 1 and game.spec.num_teams == game.spec.num_seats:
                return _small(_table_tree(game))
        except EnvError as error:
            raise NoExactValue(f"{error}.") from error
        if game.spec.num_seats == 1 or game.spec.num_teams != game.spec.num_seats:
            raise NoExactValue(f"{config.id} has no exact value here: that needs opponents, each seat for itself.")
    visited = _visited(msgspec.json.encode(config), limit_s)
    if isinstance(visited, str):
        raise NoExactValue(f"{config.id} has no exact value here: {visited}.")
    return _small(visited.tree, deals=None if visited.is_whole else visited.deals)


def _small(tree: DecisionTree, *, deals: int | None = None) -> SmallGame:
    return SmallGame(tree.info_states, SequenceForm(tree.info_states, tree.endings), deals)


@functools.lru_cache(maxsize=1)
def _visited(config: bytes, limit_s: float) -> VisitedTree | str:
    """The tree of a game, or why there is none; the last one is kept, for one policy after the other."""
    try:
        return visit(msgspec.json.decode(config, type=EnvConfig), limit_s=limit_s)
    except EnvError as error:
        return str(error)


def _table_tree(game: BatchedEnv) -> DecisionTree:
    """One information state for each seat of a one-shot game, one ending for each joint action."""
    assert isinstance(game, TableGame)
    turn, seats = game.reset(0), np.arange(game.spec.num_seats)
    legal = turn.action_mask
    if legal is None:
        legal = np.ones((seats.size, game.spec.actions.num_actions), np.bool_)
    none = np.full(seats.size, -1)
    fields = {name: np.asarray(field) for name, field in turn.obs.items()}
    returns = game.payoffs.reshape(-1, seats.size).astype(np.float64)
    action = np.indices(game.payoffs.shape[:-1]).reshape(seats.size, -1).T
    return DecisionTree(
        InformationStates(seat=seats, fields=fields, legal=legal, parent=none, parent_action=none),
        Endings(np.ones(len(returns)), returns, np.broadcast_to(seats, action.shape), action),
    )
