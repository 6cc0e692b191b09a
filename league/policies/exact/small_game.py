"""Small games: every history known, from the game itself, from a table, or by copies of its games.

Shape letters: A actions, M policies, S seats, Q sequences (`league.policies.exact.sequence_form`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass

from league.envs.decision_tree import InformationStates
from league.envs.games.phantom import PhantomBoard, PhantomRules
from league.envs.protocol import BatchedEnv, EnvConfig, EnvError
from league.envs.registry import make
from league.envs.search.known_tree import KnownTree, known_tree
from league.envs.search.tree_walk import Progress, no_progress
from league.envs.workers.tree_visit import tree_in_child
from league.errors import LeagueError
from league.policies.exact.behaviours import Array, Mixture, PolicyFunction, tables_of, weighed
from league.policies.exact.phantom_form import PhantomForm
from league.policies.exact.phantom_game import MAX_CELLS, PhantomGame
from league.policies.exact.sequence_form import SequenceForm

VISIT_S = 60.0
"""Seconds of a visit by copies or of one pass over a phantom game, where nothing else is said."""


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
        weights, members = weighed(policy)
        return self.form.nash_conv(weights @ self.plans(members))


def small_game(
    env: EnvConfig | str, *, limit_s: float = VISIT_S, progress: Progress = no_progress
) -> SmallGame | PhantomGame:
    """Every history of a game. Games in child processes are visited in one: they are slow, or may crash.

    Args:
      limit_s: of a visit by copies, or of one pass over a phantom game; a longer one is not begun.
      progress: of a visit by copies, see `league.envs.search.tree_walk.visit`.
    Raises:
      NoExactValue: the game is too large, can be neither asked nor copied, or failed.
      EnvError: it cannot be made.
    """
    config = EnvConfig(env) if isinstance(env, str) else env
    if config.workers in ("auto", 0):
        with closing(make(config, num_envs=1)) as game:
            return small_game_of(game, config, limit_s=limit_s, progress=progress)
    return _remembered(config, limit_s, lambda: _small(tree_in_child(config, limit_s=limit_s, progress=progress)))


def small_game_of(
    game: BatchedEnv, config: EnvConfig, *, limit_s: float = VISIT_S, progress: Progress = no_progress
) -> SmallGame | PhantomGame:
    """As `small_game`, of a game that was made of `config` and has not begun."""
    if isinstance(game, PhantomBoard):
        rules = game.rules
        return _remembered(config, limit_s, lambda: _phantom_game(rules, limit_s))
    return _remembered(config, limit_s, lambda: _small(known_tree(game, limit_s=limit_s, progress=progress)))


def _phantom_game(rules: PhantomRules, limit_s: float) -> PhantomGame:
    """Raises EnvError: its board is too large, or one pass takes too long."""
    if rules.num_cells > MAX_CELLS:
        raise EnvError(f"its board has {rules.num_cells} cells, at most {MAX_CELLS} here")
    game = PhantomGame(rules, PhantomForm(rules))
    if game.pass_s > limit_s:
        raise EnvError(
            f"one pass over its endings takes about {game.pass_s:.0f} s, more than the {limit_s:.0f} s given"
        )
    return game


def _small(known: KnownTree) -> SmallGame:
    states = known.tree.info_states
    return SmallGame(states, SequenceForm(states, known.tree.endings), known.deals)


_LAST: dict[str, SmallGame | PhantomGame | str] = {}
"""The last game, or why it has no exact value; for one policy after the other."""


def _remembered(
    config: EnvConfig, limit_s: float, find: Callable[[], SmallGame | PhantomGame]
) -> SmallGame | PhantomGame:
    key = json.dumps([asdict(config), limit_s], default=str)
    if key not in _LAST:
        _LAST.clear()
        try:
            _LAST[key] = find()
        except EnvError as error:
            _LAST[key] = str(error).removeprefix(f"{config.id} ").rstrip(".")
    found = _LAST[key]
    if isinstance(found, str):
        raise NoExactValue(f"{config.id} has no exact value here: {found}.")
    return found
