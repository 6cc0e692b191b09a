"""Makes an env from its id: a built-in game, a PettingZoo or Gymnasium id, or a user's own factory."""

from __future__ import annotations

import contextlib
import difflib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from league.envs.closing import closed_on_error
from league.envs.guard.foreign_code import foreign_code
from league.envs.guard.settings import current_folder
from league.envs.guard.stand_ins import EndOfProcess
from league.envs.own_code.places import absolute
from league.envs.plugins import (
    MissingModuleError,
    PluginError,
    install_extra,
    load,
    missing_package,
    name_given,
)
from league.envs.protocol import BatchedEnv, EnvConfig, EnvError, EnvSpec
from league.envs.seat_plan import SeatPlan

T = TypeVar("T")

BUILT_IN: Mapping[str, str] = {
    "connect_four": "league.envs.games.connect_four:ConnectFour",
    "tic_tac_toe": "league.envs.games.tic_tac_toe:TicTacToe",
    "othello": "league.envs.games.othello:Othello",
    "matrix_game": "league.envs.games.matrix:MatrixGame",
    "rock_paper_scissors": "league.envs.games.matrix:RockPaperScissors",
    "repeated_rock_paper_scissors": "league.envs.games.matrix:RepeatedRockPaperScissors",
    "cyclic_game": "league.envs.games.cyclic:CyclicGame",
    "disc_game": "league.envs.games.cyclic:DiscGame",
    "three_seat_rock_paper_scissors": "league.envs.games.normal_form:ThreeSeatRockPaperScissors",
    "team_rock_paper_scissors": "league.envs.games.normal_form:TeamRockPaperScissors",
    "team_matrix": "league.envs.games.team_matrix:TeamMatrix",
    "pursuit": "league.envs.games.pursuit:Pursuit",
    "kuhn_poker": "league.envs.games.kuhn:KuhnPoker",
    "leduc_poker": "league.envs.games.leduc:LeducPoker",
    "phantom_tic_tac_toe": "league.envs.games.phantom:PhantomTicTacToe",
    "dark_hex": "league.envs.games.phantom:DarkHex",
}
ADAPTERS: Mapping[str, str] = {
    "pettingzoo": "league.envs.adapters.pettingzoo:make_registered",
    "gymnasium": "league.envs.adapters.gymnasium:make_registered",
    "openspiel": "league.envs.adapters.openspiel:make_registered",
}
GYMNASIUM = "league.envs.adapters.gymnasium:GymnasiumEnv.of"
SEVERAL_AGENTS = "league.envs.adapters.several_agents"
FORMS = "a built-in id, pettingzoo:ID, gymnasium:ID, openspiel:NAME, module:function or path/file.py:function"


def make(config: EnvConfig, *, num_envs: int) -> BatchedEnv:
    """Make `num_envs` games of the env that `config` names. Call `reset` before the first `step`.

    Raises:
      EnvError: the id is unknown (the message names the nearest); its kwargs do not fit; a package is missing; or the
        factory returned something that is not an env.
    """
    if num_envs < 1:
        raise EnvError(f"{config.id}: num_envs is {num_envs}; it must be at least 1")
    if config.workers not in ("auto", 0):
        in_children: BatchedEnv = load("league.envs.workers.worker_env:make_workers")(config, num_envs=num_envs)
        return in_children
    if ":" not in config.id:
        if config.id not in BUILT_IN:
            raise EnvError(unknown_env(config.id))
        SeatPlan.of(config).refuse(config.id, "a built-in game")
        built: BatchedEnv = _call(load(BUILT_IN[config.id]), config, {"num_envs": num_envs})
        return built
    try:
        with foreign_code(config.id, "the making of it"):
            return _make_foreign(config, num_envs=num_envs)
    except EndOfProcess as error:
        raise EnvError(f"{config.id}: making it raised EndOfProcess: {error}") from error


def _make_foreign(config: EnvConfig, *, num_envs: int) -> BatchedEnv:
    """Make the games of an adapter, or of a user's own factory."""
    prefix, _, rest = config.id.partition(":")
    if prefix in ADAPTERS:
        seat_plan = {"seat_plan": SeatPlan.of(config)} if prefix != "openspiel" else {}
        if not seat_plan:
            SeatPlan.of(config).refuse(config.id, f"a game of {prefix}")
        made: BatchedEnv = _adapter(prefix, config.id)(rest, kwargs=config.kwargs, num_envs=num_envs, **seat_plan)
        return made
    return _make_own(config, num_envs=num_envs)


GivenGame = EnvConfig | str | Mapping[str, Any] | Callable[..., Any]
"""A game as a Python user gives it: by its id, the function or class that makes it, or what is in `env:`."""


def config_of(game: GivenGame) -> EnvConfig:
    """The configuration of a given game; a file that its id names is taken from the current folder.

    Raises:
      EnvError: it is none of these, or a mapping has other keys.
    """
    forms = "an id (path/file.py:function), a function or class that makes the game, or EnvConfig(id, kwargs)"
    if isinstance(game, Mapping):
        known = EnvConfig.__dataclass_fields__
        strange = [str(key) for key in game if key not in known]
        if strange or "id" not in game:
            what = f"the unknown key {strange[0]!r}{nearest(strange[0], known)}" if strange else "no id"
            raise EnvError(f"env= has {what}; give {forms}")
        game = EnvConfig(**game)
    elif isinstance(game, str):
        game = EnvConfig(game)
    elif callable(game):
        return EnvConfig(name_given(game))
    if not isinstance(game, EnvConfig):
        raise EnvError(f"env= is {type(game).__name__}; give {forms}")
    is_adapted = game.id.partition(":")[0] in ADAPTERS
    return game if is_adapted else replace(game, id=absolute(game.id, (Path(current_folder()),)))


def _adapter(prefix: str, env_id: str) -> Callable[..., Any]:
    try:
        adapter: Callable[..., Any] = load(ADAPTERS[prefix])
    except PluginError as error:
        raise EnvError(f"{env_id}: a package is missing ({error}); {install_extra(prefix)}") from error
    return adapter


def spec_of(config: EnvConfig) -> EnvSpec:
    """The spec of a game, read from one that is made and closed again.

    Raises:
      EnvError: it cannot be made.
    """
    with contextlib.closing(make(config, num_envs=1)) as env:
        return env.spec


def unknown_env(env_id: str) -> str:
    """The error message for an unknown id, with the nearest built-in one."""
    if env_id.endswith(".py"):
        return f"unknown env {env_id!r}; did you mean {env_id}:make, with the name of the function that makes the game?"
    return f"unknown env {env_id!r}{nearest(env_id, BUILT_IN)} (an id is {FORMS})"


def nearest(name: str, known: Mapping[str, object]) -> str:
    """The text "; did you mean ...?" with the nearest registered names, or all names if none is near."""
    close = difflib.get_close_matches(name, list(known), n=3, cutoff=0.5)
    return f"; did you mean {' or '.join(close)}?" if close else f"; known are {', '.join(sorted(known))}"


def _make_own(config: EnvConfig, *, num_envs: int) -> BatchedEnv:
    """Call a user's factory: once if it takes num_envs, for a `BatchedEnv` or a vector env, else once per game."""
    factory = _load_own(config.id)
    if "num_envs" in _parameters(factory, config.id):
        SeatPlan.of(config).refuse(config.id, "a BatchedEnv")
        made: Any = _call_own(factory, config, {"num_envs": num_envs})
        if getattr(made, "num_envs", None) == num_envs and hasattr(made, "single_observation_space"):
            vector: BatchedEnv = load("league.envs.adapters.gymnasium_arrays:vector_env")(
                made, lambda count: _call_own(factory, config, {"num_envs": count}), env_id=config.id
            )
            return vector
        if not isinstance(getattr(made, "spec", None), EnvSpec) or made.num_envs != num_envs:
            with closed_on_error([made]):
                raise EnvError(
                    f"{config.id} takes num_envs and returned a {type(made).__name__}; return a BatchedEnv or a"
                    " VectorEnv of that many games, or drop the parameter and return one PettingZoo or Gymnasium env a"
                    " call"
                )
        behind_guard: BatchedEnv = load("league.envs.adapters.user_env:guarded")(made)
        return behind_guard
    first = _call_own(factory, config, {})
    return adapted(
        first,
        lambda: _call_own(factory, config, {}),
        env_id=config.id,
        num_envs=num_envs,
        seat_plan=SeatPlan.of(config),
    )


def adapted(
    first: object, factory: Callable[[], object], *, env_id: str, num_envs: int, seat_plan: SeatPlan
) -> BatchedEnv:
    """Games of PettingZoo or Gymnasium that are made one by one, by the adapter for the kind of the first.

    Args:
      first: already made. factory: makes the others.
    Raises:
      EnvError: it is of no such kind, or the adapter refuses it.
    """
    kind = _kind(first)
    with closed_on_error([first]):
        if kind is None:
            raise EnvError(
                f"{env_id} returned a {type(first).__name__}; return a PettingZoo AEC or parallel env, a Gymnasium"
                " env, or take num_envs and return a BatchedEnv"
            )
        if kind == GYMNASIUM:
            seat_plan.refuse(env_id, "a Gymnasium env")
    plan = {} if kind == GYMNASIUM else {"seat_plan": seat_plan}
    wrapped: BatchedEnv = load(kind)(_one_by_one(first, factory), env_id=env_id, num_envs=num_envs, **plan)
    return wrapped


def _one_by_one(first: object, factory: Callable[[], object]) -> Callable[[], object]:
    """A factory that returns `first`, made to find out its kind, before any new env."""
    waiting = [first]
    return lambda: waiting.pop() if waiting else factory()


def _kind(env: object) -> str | None:
    """The adapter for an env by its attributes: agents and `last` is AEC, agents without `last` is parallel.

    One of Gymnasium with a part of its spaces for each of several agents is parallel too.
    """
    if not (callable(getattr(env, "reset", None)) and callable(getattr(env, "step", None))):
        return None
    if _has(env, "possible_agents"):
        aec = callable(getattr(env, "last", None)) and callable(getattr(env, "observe", None))
        return "league.envs.adapters.pettingzoo:AecEnv.of" if aec else "league.envs.adapters.pettingzoo:ParallelEnv.of"
    if not _has(env, "action_space"):
        return None
    has_several: Callable[[object], bool] = load(f"{SEVERAL_AGENTS}:has_several_agents")
    return f"{SEVERAL_AGENTS}:SeveralAgentsEnv.of" if has_several(env) else GYMNASIUM


def _has(env: object, name: str) -> bool:
    """True if an object has an attribute, also where reading it raises: its adapter then says what."""
    try:
        getattr(env, name)
    except AttributeError:
        return any(name in vars(kind) for kind in type(env).__mro__)
    except Exception:  # code of others: the adapter reads it again, and says what it raised
        return True
    return True


def _load_own(env_id: str) -> Callable[..., Any]:
    try:
        factory = load(env_id)
    except MissingModuleError as error:
        choices = {**BUILT_IN, **{f"{prefix}:": "" for prefix in ADAPTERS}}
        near = nearest(env_id.partition(":")[0], choices)
        raise EnvError(f"{env_id}: {error}{near} (an id is {FORMS})") from error
    except PluginError as error:
        raise EnvError(f"{env_id}: {error}") from error
    if not callable(factory):
        raise EnvError(f"{env_id} is a {type(factory).__name__}; name a function that makes the game")
    found: Callable[..., Any] = factory
    return found


def _missing(env_id: str, error: ModuleNotFoundError) -> EnvError:
    return EnvError(f"{env_id}: {missing_package(error)}")


def _call(factory: Callable[..., T], config: EnvConfig, extra: Mapping[str, object]) -> T:
    """Call a factory with the config's kwargs, after checking them against its signature."""
    parameters = _parameters(factory, config.id)
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    own = {name: 0 for name in parameters if name not in extra and name != "env_id"}
    for name in config.kwargs:
        if name not in own and not takes_any:
            raise EnvError(f"{config.id}: unknown kwarg {name!r}{nearest(name, own) if own else '; it takes none'}")
    required = [name for name in own if parameters[name].default is inspect.Parameter.empty]
    missing = [name for name in required if name not in config.kwargs and parameters[name].kind not in (2, 4)]
    if missing:
        raise EnvError(f"{config.id}: the kwargs {', '.join(missing)} must be given")
    return factory(**config.kwargs, **extra)


def _call_own(factory: Callable[..., T], config: EnvConfig, extra: Mapping[str, object]) -> T:
    """`_call` for a user's factory."""
    try:
        return _call(factory, config, extra)
    except EnvError:
        raise
    except ModuleNotFoundError as error:
        raise _missing(config.id, error) from error
    except Exception as error:  # code of others: whatever it raises is their env's error, not ours
        raise EnvError(f"{config.id}: making it raised {type(error).__name__}: {error}") from error


def _parameters(factory: Callable[..., object], env_id: str) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(factory).parameters
    except (TypeError, ValueError) as error:
        raise EnvError(f"{env_id}: its parameters cannot be read ({error}); wrap it in a plain function") from error
