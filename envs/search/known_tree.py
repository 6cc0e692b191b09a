"""The tree of a small game: from the game itself, from its payoff table, or by a visit of its copies.

Shape letters: I information states, A actions, S seats, Z endings.
"""

from __future__ import annotations

import io
import json
import time
import zipfile
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from league.envs.decision_tree import DecisionTree, Endings, InformationStates, TableGame, TreeGame
from league.envs.protocol import BatchedEnv, EnvError
from league.envs.search.tree_walk import Progress, no_progress, visit

MIN_VISIT_S = 10.0
"""Processor seconds that the visit of a game by its own tree may take, whatever the limit is."""
NAMES = "names"
"""Entry of a file with the names of the fields, in the order of their numbers."""
FIELD = "field"
"""Beginning of the entries with fields, before their numbers."""


@dataclass(frozen=True)
class KnownTree:
    """A game whose every history is known.

    Fields:
      tree: information states and endings.
      deals: different draws of chance that were met, where some may be missing; None where none is.
    """

    tree: DecisionTree
    deals: int | None = None


def known_tree(
    env: BatchedEnv,
    *,
    limit_s: float,
    clock: Callable[[], float] = time.monotonic,
    progress: Progress = no_progress,
) -> KnownTree:
    """Every history of a game.

    Args:
      env: one game, not begun.
      limit_s: longest visit in seconds; a game that says itself what its histories are has at least `MIN_VISIT_S`.
      clock, progress: as of `visit`, for a game that does not.
    Raises:
      EnvError: it is too large, or can be neither asked nor copied.
    """
    if isinstance(env, TreeGame):
        return KnownTree(env.decision_tree(limit_s=max(limit_s, MIN_VISIT_S)))
    if env.spec.num_seats == 1 or env.spec.num_teams != env.spec.num_seats:
        raise EnvError("that needs opponents, each seat for itself")
    if isinstance(env, TableGame) and env.rounds == 1:
        return KnownTree(_table_tree(env))
    visited = visit(env, limit_s=limit_s, clock=clock, progress=progress)
    return KnownTree(visited.tree, None if visited.is_whole else visited.deals)


def tree_to_bytes(known: KnownTree) -> bytes:
    """A tree as a file of numpy arrays."""
    states, endings = known.tree.info_states, known.tree.endings
    fields = {f"{FIELD}{number}": field for number, field in enumerate(states.fields.values())}
    file = io.BytesIO()
    np.savez(
        file,
        allow_pickle=False,
        seat=states.seat,
        legal=states.legal,
        parent=states.parent,
        parent_action=states.parent_action,
        chance=endings.chance,
        returns=endings.returns,
        info_state=endings.info_state,
        action=endings.action,
        deals=np.array([] if known.deals is None else [known.deals], np.int64),
        **{NAMES: np.frombuffer(json.dumps(list(states.fields)).encode(), np.uint8)},
        **fields,
    )
    return file.getvalue()


def tree_from_bytes(payload: bytes) -> KnownTree:
    """As written by `tree_to_bytes`.

    Raises:
      ValueError: it is not.
    """
    try:
        with np.load(io.BytesIO(payload), allow_pickle=False) as file:
            names = json.loads(file[NAMES].tobytes())
            states = InformationStates(
                seat=file["seat"],
                fields={name: file[f"{FIELD}{number}"] for number, name in enumerate(names)},
                legal=file["legal"],
                parent=file["parent"],
                parent_action=file["parent_action"],
            )
            endings = Endings(file["chance"], file["returns"], file["info_state"], file["action"])
            deals = file["deals"].tolist()
    except (OSError, EOFError, KeyError, zipfile.BadZipFile) as error:
        raise ValueError(f"the file of a tree is damaged: {error}") from error
    return KnownTree(DecisionTree(states, endings), deals[0] if deals else None)


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
