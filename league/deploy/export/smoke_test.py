"""Plays a policy as its package will be played, on what its game really shows, before the package is written."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from typing import Any

import numpy as np

from league.envs.adapters.bare import Chooser, Loop, loop_over
from league.envs.adapters.external import ExternalEnv
from league.envs.plugins import first_line
from league.envs.protocol import BatchedEnv, EnvConfig, EnvSpec
from league.envs.registry import make
from league.errors import LeagueError
from league.policies.loaded_policy import LoadedPolicy
from league.policies.observation import ObservationMismatch
from league.policies.package import PackageManifest

MIN_STEPS, MAX_STEPS, MAX_S = 20, 1000, 5.0
"""Steps that are played at least, and at most until every seat has acted; seconds after which no other begins."""


def try_on_game(manifest: PackageManifest, policies: Sequence[LoadedPolicy], env: EnvConfig) -> None:
    """Play some turns of the game with `act` alone, by the facts of the manifest and not by the game's own code.

    Args:
      policies: the members; they take the episodes in turn.
    Raises:
      LeagueError: what the game shows cannot be played, or the game refuses the answer; one sentence.
      EnvError: the game cannot be made.
    """
    spec = manifest.game.spec()
    players = [policy.for_game(spec) for policy in policies]
    acted: set[str] = set()
    episodes = 0

    def choose(seat: Any, observation: Any, mask: Any) -> Any:
        acted.add(str(seat))
        return players[episodes % len(players)].act(observation, mask, seat=str(seat))

    with ExitStack() as opened:
        game = opened.enter_context(closing(make(replace(env, workers=0), num_envs=1)))
        loop = _loop(game, choose, opened)
        try:
            begun = time.monotonic()
            for step in range(MAX_STEPS):
                enough = len(acted) == spec.num_seats and step >= MIN_STEPS and episodes >= len(players)
                if enough or (step and time.monotonic() - begun > MAX_S):
                    break
                actions, _ = loop.choose() if step else (None, 0)
                if actions is None:
                    episodes += step > 0
                    players[episodes % len(players)].reset(seed=step)
                    loop.reset(step)
                else:
                    loop.step(actions)
        except Exception as error:  # boundary: the game may be code of the user's own, and is driven by our actions
            what = error if isinstance(error, ObservationMismatch) else f"{type(error).__name__}: {first_line(error)}"
            raise LeagueError(
                f"Nothing was exported: the policy was tried on {env.id} itself, and that ended in: {what}"
            ) from error


def _loop(game: BatchedEnv, choose: Chooser, opened: ExitStack) -> Loop:
    if isinstance(game, ExternalEnv) and game.make_bare is not None:
        return loop_over(game, opened.enter_context(closing(game.make_bare())), choose)
    return TurnLoop(game, choose)


class TurnLoop:
    """One game of an env that keeps the contract of `league.envs.protocol`, so that it shows the fields of its spec."""

    def __init__(self, game: BatchedEnv, choose: Chooser) -> None:
        self._game = game
        self._choose = choose
        self._names = seat_names(game.spec)
        self._over = False

    def reset(self, seed: int) -> None:
        self._turn, self._over = self._game.reset(seed), False

    def choose(self) -> tuple[Any, int]:
        if self._over:
            return None, 0
        turn, spec = self._turn, self._game.spec
        actions = []
        for row, seat in enumerate(turn.seat.tolist()):
            shown = {name: turn.obs[name][row] for name in spec.observations if name not in spec.value_fields}
            mask = None if turn.action_mask is None else turn.action_mask[row]
            actions.append(self._choose(self._names[seat], shown, mask))
        return np.array(actions, np.float32 if spec.actions.kind == "box" else np.int64), len(actions)

    def step(self, actions: Any) -> None:
        self._turn = self._game.step(actions)
        self._over = bool(self._turn.ended[0])


def seat_names(spec: EnvSpec) -> tuple[str, ...]:
    """[S] the names of the seats; their numbers where they have none."""
    return spec.seat_names or tuple(str(number) for number in range(spec.num_seats))
