"""PettingZoo's games as `BatchedEnv`: AEC (one seat after the other) and parallel (all at once).

A seat that drops out while others keep playing has no slots; its further rewards are held until it acts again or the
episode ends. One that paused, without a flag, then continues its return; one that had terminated or was truncated
begins another. Source: PettingZoo 1.27, the AEC and parallel API.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pettingzoo
from pettingzoo.utils import conversions, wrappers

from league.envs.adapters.checks.asking import asked, unpacked
from league.envs.adapters.checks.masks import NOT_READ, MaskMethod, late_mask, mask_name
from league.envs.adapters.external import ExternalEnv, make_games
from league.envs.adapters.outline import Outline, outline_of
from league.envs.closing import closed_on_error
from league.envs.guard.foreign_code import as_failure
from league.envs.plugins import install_extra, package_folder
from league.envs.protocol import EnvError
from league.envs.seat_plan import ALONE, SeatPlan, own_teams

FirstLook = Callable[[Any, str], tuple[Mapping[Any, Any], Mapping[Any, Any]]]
"""Resets an env of an id; returns agent -> observation and agent -> infos, as far as they are there."""

RESET_PARTS = "observations, infos"
STEP_PARTS = "observations, rewards, terminations, truncations, infos"

# Wrappers that repeat our own checks (legality, bounds, order) and take 43 % of Connect Four's time.
CHECKS = (wrappers.TerminateIllegalWrapper, wrappers.AssertOutOfBoundsWrapper, wrappers.OrderEnforcingWrapper)


def make_registered(
    name: str, *, kwargs: Mapping[str, object], num_envs: int, seat_plan: SeatPlan = ALONE
) -> ExternalEnv:
    """Make the game that PettingZoo has registered as `name`, parallel if it is registered as both.

    Args:
      name: such as "classic/connect_four_v3" or "classic/connect_four-v3".
    Raises:
      EnvError: no such id (the message names the nearest), a missing package, or kwargs that do not fit.
    """
    os.environ.setdefault("SDL_VIDEODRIVER", "dummy")  # some games open a window even when nothing is drawn
    env_id = f"pettingzoo:{name}"
    if not hasattr(pettingzoo, "parallel_registry"):
        raise EnvError(f"{env_id}: PettingZoo {pettingzoo.__version__} has no registry; pip install 'pettingzoo>=1.27'")
    from pettingzoo.env_registry.exceptions import FailedToImport

    key = re.sub(r"_v(\d+)$", r"-v\1", name)
    if key not in pettingzoo.aec_registry and key not in pettingzoo.parallel_registry:
        raise EnvError(f"unknown env {env_id!r}{_instead(key)}")
    kind = "parallel" if key in pettingzoo.parallel_registry else "aec"
    family = key.partition("/")[0]
    options = {**_rom_folder(family), **kwargs}

    def make_one() -> Any:
        try:
            return pettingzoo.make(kind, key, **options)
        except (ImportError, FailedToImport) as error:
            cause = error.__cause__ or error
            raise EnvError(f"{env_id}: a package is missing ({cause}); {install_extra(family)}") from error

    parallel = EmulatorEnv.of if family == "atari" else ParallelEnv.of
    wrap = parallel if kind == "parallel" else AecEnv.of
    return wrap(make_one, env_id=env_id, num_envs=num_envs, seat_plan=seat_plan)


def _rom_folder(family: str) -> dict[str, object]:
    """The kwarg that points the Atari games at the ROMs that the package ale-py brings along, if it is there."""
    folder = package_folder("ale_py") if family == "atari" else None
    return {} if folder is None else {"auto_rom_install_path": str(folder / "roms")}


def _instead(key: str) -> str:
    """Suggests ids instead of one that PettingZoo does not have: the nearest ones, or the families."""
    family, _, name = key.partition("/")
    if family == "mpe":
        return f": MPE has moved to the package mpe2; pip install mpe2, and take mpe2.{_module_of(name)}:parallel_env"
    known = sorted({*pettingzoo.aec_registry, *pettingzoo.parallel_registry})
    near = difflib.get_close_matches(key, known, n=3, cutoff=0.5)
    if near:
        return f"; did you mean {', '.join(f'pettingzoo:{_module_of(other)}' for other in near)}?"
    families = dict.fromkeys(other.partition("/")[0] for other in known)
    return f"; there are the families {', '.join(families)}, as in pettingzoo:classic/connect_four_v3"


def _module_of(name: str) -> str:
    """The name of a game as its module has it, such as "chess_v6" of "chess-v6"."""
    return re.sub(r"-v(\d+)$", r"_v\1", name)


class AecEnv(ExternalEnv):
    """N AEC games."""

    def __init__(self, games: Sequence[Any], outline: Outline) -> None:
        super().__init__(games, outline)
        self._seat_of = {agent: seat for seat, agent in enumerate(games[0].possible_agents)}

    @classmethod
    def of(cls, make_one: Callable[[], Any], *, env_id: str, num_envs: int, seat_plan: SeatPlan = ALONE) -> AecEnv:
        """Make N games, one call of `make_one` each, without the wrappers whose checks are repeated here.

        Raises:
          EnvError: see `outline_of`; or the env lists no possible agents.
        """
        games = make_games(make_one, env_id=env_id, num_envs=num_envs)
        with closed_on_error(games):
            outline = _outline(games[0], env_id=env_id, seat_plan=seat_plan, first_look=_first_aec_look)
        checks = CHECKS if outline.spec.has_mask else CHECKS[1:]  # without a mask the env judges illegal moves
        outline = replace(outline, make_one=lambda: _peel(make_one(), checks), make_bare=make_one)
        return cls([_peel(game, checks) for game in games], outline)

    def views(self, game: int) -> tuple[bytes, ...] | None:
        env, seen = self._games[game], [b""] * self.spec.num_seats
        try:
            for agent in env.agents:
                fields = self._builder.encode(self._seat_of[agent], env.observe(agent))
                seen[self._seat_of[agent]] = b"".join(array.tobytes() for array in fields.values())
        except Exception:  # code of others: many games only show the seat to move
            return None
        return tuple(seen)

    def _begin(self, game: int, seed: int) -> None:
        env = self._games[game]
        env.reset(seed=seed)
        if not _alive(env):
            raise EnvError(
                f"{self.spec.env_id}, game {game}: nobody is alive after reset; a game needs at least one turn"
            )
        self._settle(game, env)

    def _advance(self, game: int, answers: list[tuple[int, Any]]) -> None:
        env = self._games[game]
        env.step(answers[0][1])
        for agent, reward in env.rewards.items():
            if type(reward) is np.ndarray or reward != 0:  # also true of NaN, which the builder then refuses
                self._builder.earn(game, self._seat_of[agent], reward)
        if any(env.terminations.values()) or any(env.truncations.values()):
            self._bury(game, env)
        else:
            self._settle(game, env)

    def _bury(self, game: int, env: Any) -> None:
        """Step dead agents until a living one is to move; end the episode if there is none."""
        self._note_dead(game, env)
        for _ in range(len(env.agents)):
            if not _alive(env):
                break
            agent = env.agent_selection
            if not (env.terminations[agent] or env.truncations[agent]):
                break
            env.step(None)
            self._note_dead(game, env)
        if _alive(env):
            self._settle(game, env)
        else:
            self._finish_seen(game)

    def _note_dead(self, game: int, env: Any) -> None:
        """Take agents out that have just died, with their last observations where they were cut off."""
        for agent in env.agents:
            seat = self._seat_of[agent]
            if env.terminations[agent]:
                self._leave(game, seat, None)
            elif env.truncations[agent] and seat not in self._left[game]:
                self._leave(game, seat, env.observe(agent))

    def _settle(self, game: int, env: Any) -> None:
        """Show the seat to move."""
        agent = env.agent_selection
        seat = self._seat_of.get(agent)
        if seat is None:
            raise EnvError(f"{self.spec.env_id}, game {game}: {agent!r} is to move but is not in possible_agents")
        self._show(game, seat, agent, env.observe(agent), env.infos.get(agent))


class ParallelEnv(ExternalEnv):
    """N parallel games."""

    def __init__(self, games: Sequence[Any], outline: Outline) -> None:
        super().__init__(games, outline)
        self._agents = list(games[0].possible_agents)
        self._seat_of = {agent: seat for seat, agent in enumerate(self._agents)}

    @classmethod
    def of(cls, make_one: Callable[[], Any], *, env_id: str, num_envs: int, seat_plan: SeatPlan = ALONE) -> ParallelEnv:
        """Make N games, one call of `make_one` each.

        Raises:
          EnvError: see `outline_of`; or the env lists no possible agents.
        """
        games = make_games(make_one, env_id=env_id, num_envs=num_envs)
        with closed_on_error(games):
            outline = _outline(games[0], env_id=env_id, seat_plan=seat_plan, first_look=_first_parallel_look)
        checks = CHECKS if outline.spec.has_mask else CHECKS[1:]
        outline = replace(outline, make_one=lambda: _peel_inside(make_one(), checks), make_bare=make_one)
        return cls([_peel_inside(game, checks) for game in games], outline)

    def _begin(self, game: int, seed: int) -> None:
        env = self._games[game]
        begun = env.reset(seed=self._seed_for(game, seed))
        observations, infos = unpacked(self.spec.env_id, "reset", begun, RESET_PARTS)
        if not env.agents:
            raise EnvError(
                f"{self.spec.env_id}, game {game}: nobody is alive after reset; a game needs at least one turn"
            )
        self._show_all(game, env.agents, observations, infos)

    def _advance(self, game: int, answers: list[tuple[int, Any]]) -> None:
        env = self._games[game]
        stepped = env.step({self._agents[seat]: action for seat, action in answers})
        observations, rewards, terminations, truncations, infos = unpacked(
            self.spec.env_id, "step", stepped, STEP_PARTS
        )
        for seat, _ in answers:
            agent = self._agents[seat]
            is_there = agent in env.agents or agent in terminations  # one that is gone earns nothing
            if is_there and agent not in rewards:
                raise self._omission(game, agent, "reward", "give 0.0 where it earned nothing")
        for agent, reward in rewards.items():
            if type(reward) is np.ndarray or reward != 0:  # also true of NaN, which the builder then refuses
                self._builder.earn(game, self._seat(game, agent), reward)
        dead = {agent for flags in (terminations, truncations) for agent, flag in flags.items() if flag}
        for agent in dead & self._seat_of.keys():  # there may be flags for all together beside those of agents
            is_cut = not terminations.get(agent)
            self._leave(game, self._seat_of[agent], observations.get(agent) if is_cut else None)
        alive = [agent for agent in env.agents if agent not in dead]
        if alive:
            self._show_all(game, alive, observations, infos)
        else:
            self._finish_seen(game)

    def _seed_for(self, game: int, seed: int) -> int | None:
        """The seed to reset a game with; None if its randomness is to run on."""
        return seed

    def _show_all(
        self, game: int, agents: Sequence[str], observations: Mapping[str, Any], infos: Mapping[str, Any]
    ) -> None:
        for seat, agent in sorted((self._seat(game, agent), agent) for agent in agents):
            if agent not in observations:
                raise self._omission(game, agent, "observation", "give one for everybody in `agents`")
            self._show(game, seat, agent, observations[agent], (infos or {}).get(agent))

    def _seat(self, game: int, agent: str) -> int:
        """The seat of an agent.

        Raises:
          EnvError: it is no possible agent.
        """
        seat = self._seat_of.get(agent)
        if seat is None:
            raise EnvError(f"{self.spec.env_id}, game {game}: agent {agent!r} is not in possible_agents")
        return seat

    def _omission(self, game: int, agent: str, what: str, advice: str) -> EnvError:
        """The error of an agent that the env left out."""
        return EnvError(f"{self.spec.env_id}, game {game}: agent {agent!r} is given no {what}; {advice}")


class EmulatorEnv(ParallelEnv):
    """N games of an emulator, which loads its game again when it is seeded: a second, as long as 10,000 frames.

    Only the first episode of each is seeded; the randomness of the emulator runs on through the later ones.
    """

    def __init__(self, games: Sequence[Any], outline: Outline) -> None:
        super().__init__(games, outline)
        self._seeded: dict[int, Any] = {}

    def _seed_for(self, game: int, seed: int) -> int | None:
        env = self._games[game]
        runs_on = self._seeded.get(game) is env and self._episodes[game] > 0
        self._seeded[game] = env
        return None if runs_on else seed


def _outline(env: Any, *, env_id: str, seat_plan: SeatPlan, first_look: FirstLook) -> Outline:
    """Make the outline of a PettingZoo env; resets it once to see if it gives masks, if no space has one.

    Raises:
      EnvError: see `outline_of`; or it cannot say who its agents are and what they see and do.
    """
    listed = asked(env_id, "possible_agents", lambda: env.possible_agents)
    seats = [] if listed is None else asked(env_id, "possible_agents", lambda: list(listed))
    if not seats:
        raise EnvError(f"{env_id}: it has no possible_agents; list the names of all seats there, in playing order")
    names = [str(seat) for seat in seats]
    if len(set(names)) < len(names):
        raise EnvError(f"{env_id}: possible_agents has a name twice: {', '.join(names)}")
    observed, acted = (
        [asked(env_id, f"{name}({seat!r})", partial(_space, env, name, seat)) for seat in seats]
        for name in ("observation_space", "action_space")
    )
    method = asked(env_id, "action_masks", lambda: MaskMethod.of(env, has_agents=True))
    return outline_of(
        env_id,
        names,
        observed,
        acted,
        shows_mask=lambda: f"{method.name}()" if method is not None else _first_mask(env, env_id, first_look),
        mask_method=method,
        seat_plan=seat_plan,
        teams=own_teams(asked(env_id, "teams", lambda: getattr(getattr(env, "unwrapped", env), "teams", None)), names),
    )


def _space(env: Any, name: str, seat: Any) -> Any:
    return getattr(env, name)(seat)


def _first_mask(env: Any, env_id: str, first_look: FirstLook) -> str:
    """The name of a mask that the first reset shows; empty where it shows none.

    Raises:
      EnvError: it raised, or says what is legal in another form.
    """
    try:
        observations, infos = first_look(env, env_id)
        agents = {*observations, *infos}
        names = [mask_name(observations.get(agent), infos.get(agent)) for agent in agents]
    except EnvError:
        raise
    except (Exception, SystemExit, KeyboardInterrupt) as raised:  # code of others: it is their env's error
        error = as_failure(raised)
        raise EnvError(f"{env_id}: its first reset raised {type(error).__name__}: {error} (seed 0)") from error
    for name in names:
        if any(f"'{other}'" in name for other in NOT_READ):
            raise late_mask(env_id, "", name, acts_in_box=False)
    return next(filter(None, names), "")


def _first_aec_look(env: Any, env_id: str) -> tuple[Mapping[Any, Any], Mapping[Any, Any]]:
    env.reset(seed=0)
    agent = getattr(env, "agent_selection", None)
    return {agent: env.observe(agent)} if agent in (env.agents or ()) else {}, env.infos or {}


def _first_parallel_look(env: Any, env_id: str) -> tuple[Mapping[Any, Any], Mapping[Any, Any]]:
    observations, infos = unpacked(env_id, "reset", env.reset(seed=0), RESET_PARTS)
    return observations, infos or {}


def _peel_inside(env: Any, checks: Sequence[type]) -> Any:
    """The env; if it is an AEC env in the guise of a parallel one, that is peeled."""
    if type(env) is conversions.aec_to_parallel_wrapper:
        env.aec_env = _peel(env.aec_env, checks)
    return env


def _alive(env: Any) -> bool:
    return any(not (env.terminations[agent] or env.truncations[agent]) for agent in env.agents)


def _peel(env: Any, checks: Sequence[type]) -> Any:
    """The env without its outermost wrappers of the kinds `checks`, up to the first wrapper of another kind."""
    while type(env) in checks:
        env = env.env
    return env
