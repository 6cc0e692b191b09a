"""PettingZoo's games as `BatchedEnv`: AEC (one seat after the other) and parallel (all at once).

A seat that drops out while others keep playing has no slots until the next episode; its further rewards are held
until the end of the episode. Source: PettingZoo 1.27, the AEC and parallel API.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pettingzoo
from pettingzoo.utils import conversions, wrappers

from league.envs.adapters.external import ExternalEnv, make_games
from league.envs.adapters.outline import Outline, outline_of
from league.envs.adapters.spaces import MASK, mask_of
from league.envs.closing import closed_on_error
from league.envs.plugins import install_extra, package_folder
from league.envs.protocol import EnvError
from league.envs.seat_plan import ALONE, SeatPlan, own_teams

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
            outline = _outline(games[0], env_id=env_id, seat_plan=seat_plan, infos_of=_first_aec_infos)
        checks = CHECKS if outline.spec.has_mask else CHECKS[1:]  # without a mask the env judges illegal moves
        outline = replace(outline, make_one=lambda: _peel(make_one(), checks), make_bare=make_one)
        return cls([_peel(game, checks) for game in games], outline)

    def views(self, game: int) -> tuple[bytes, ...] | None:
        """As in `league.envs.facts.shared_views.ShowsEverySeat`."""
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
            if reward != 0:  # also true of NaN, which the builder then refuses
                self._builder.earn(game, self._seat_of[agent], reward)
        if any(env.terminations.values()) or any(env.truncations.values()):
            self._bury(game, env)
        else:
            self._settle(game, env)

    def _bury(self, game: int, env: Any) -> None:
        """Step dead agents until a living one is to move; end the episode if there is none."""
        for _ in range(len(env.agents)):
            if not _alive(env):
                break
            agent = env.agent_selection
            if not (env.terminations[agent] or env.truncations[agent]):
                break
            self._keep_cut(game, env, agent)
            env.step(None)
        if _alive(env):
            self._settle(game, env)
            return
        for agent in env.agents:
            self._keep_cut(game, env, agent)
        self._finish_seen(game)

    def _keep_cut(self, game: int, env: Any, agent: str) -> None:
        """Keep the last observation of an agent that was cut off: what follows for one that terminated is nothing."""
        if env.truncations[agent] and not env.terminations[agent]:
            seat = self._seat_of[agent]
            self._cut_off[game][seat] = self._builder.encode(seat, env.observe(agent))

    def _settle(self, game: int, env: Any) -> None:
        """Show the seat to move."""
        agent = env.agent_selection
        seat = self._seat_of.get(agent)
        if seat is None:
            raise EnvError(f"{self.spec.env_id}, game {game}: {agent!r} is to move but is not in possible_agents")
        observation = env.observe(agent)
        mask = mask_of(observation, env.infos.get(agent)) if self.spec.has_mask else None
        self._builder.show(game, seat, observation, mask)


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
            outline = _outline(games[0], env_id=env_id, seat_plan=seat_plan, infos_of=lambda env: env.reset(seed=0)[1])
        checks = CHECKS if outline.spec.has_mask else CHECKS[1:]
        outline = replace(outline, make_one=lambda: _peel_inside(make_one(), checks), make_bare=make_one)
        return cls([_peel_inside(game, checks) for game in games], outline)

    def _begin(self, game: int, seed: int) -> None:
        env = self._games[game]
        observations, infos = env.reset(seed=self._seed_for(game, seed))
        if not env.agents:
            raise EnvError(
                f"{self.spec.env_id}, game {game}: nobody is alive after reset; a game needs at least one turn"
            )
        self._show_all(game, env.agents, observations, infos)

    def _advance(self, game: int, answers: list[tuple[int, Any]]) -> None:
        env = self._games[game]
        observations, rewards, terminations, truncations, infos = env.step(
            {self._agents[seat]: action for seat, action in answers}
        )
        for seat, _ in answers:
            agent = self._agents[seat]
            is_there = agent in env.agents or agent in terminations  # one that is gone earns nothing
            if is_there and agent not in rewards:
                raise self._omission(game, agent, "reward", "give 0.0 where it earned nothing")
        for agent, reward in rewards.items():
            if reward != 0:  # also true of NaN, which the builder then refuses
                self._builder.earn(game, self._seat_of[agent], reward)
        dead = {agent for flags in (terminations, truncations) for agent, flag in flags.items() if flag}
        for agent in dead:
            if not terminations.get(agent) and agent in observations:  # for one that terminated nothing follows
                seat = self._seat_of[agent]
                self._cut_off[game][seat] = self._builder.encode(seat, observations[agent])
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
        for agent in sorted(agents, key=self._seat_of.__getitem__):
            if agent not in observations:
                raise self._omission(game, agent, "observation", "give one for everybody in `agents`")
            observation = observations[agent]
            mask = mask_of(observation, (infos or {}).get(agent)) if self.spec.has_mask else None
            self._builder.show(game, self._seat_of[agent], observation, mask)

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


def _outline(env: Any, *, env_id: str, seat_plan: SeatPlan, infos_of: Callable[[Any], Mapping[str, Any]]) -> Outline:
    """Make the outline of a PettingZoo env; resets it once to see if its infos carry masks."""
    seats = list(getattr(env, "possible_agents", None) or ())
    if not seats:
        raise EnvError(f"{env_id}: it has no possible_agents; list the names of all seats there, in playing order")
    observation_spaces = [env.observation_space(seat) for seat in seats]
    in_observation = any(MASK in getattr(space, "spaces", ()) for space in observation_spaces)
    try:
        in_infos = not in_observation and any(MASK in (entry or ()) for entry in (infos_of(env) or {}).values())
    except Exception as error:  # code of others: whatever it raises is their env's error, not ours
        raise EnvError(f"{env_id}: its first reset raised {type(error).__name__}: {error} (seed 0)") from error
    names = [str(seat) for seat in seats]
    return outline_of(
        env_id,
        names,
        observation_spaces,
        [env.action_space(seat) for seat in seats],
        has_mask=in_observation or in_infos,
        seat_plan=seat_plan,
        teams=own_teams(getattr(getattr(env, "unwrapped", env), "teams", None), names),
    )


def _first_aec_infos(env: Any) -> Mapping[str, Any]:
    env.reset(seed=0)
    infos: Mapping[str, Any] = env.infos
    return infos


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
