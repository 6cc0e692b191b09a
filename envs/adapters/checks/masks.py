"""Finds the masks of legal actions where games of others show them, and refuses those that say something else.

A mask is read from the observation: the entry "action_mask", or another of `MASK_NAMES` with a number for each action,
at any depth. Without one it is read from the infos of the seat, else from a method of the env, such as `action_masks()`
of sb3-contrib.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from league.envs.protocol import EnvError

MASK = "action_mask"
MASK_NAMES = (MASK, "action_masks", "avail_actions", "available_actions", "legal_actions_mask", "valid_actions_mask")
MASK_METHODS = (*MASK_NAMES, "get_avail_actions")
NOT_READ = ("legal_actions", "legal_moves", "valid_actions", "valid_moves", "invalid_action_mask")
"""Names in infos that say the same in forms of which there are several, such as lists of numbers."""

KNOWN = frozenset({*MASK_NAMES, *NOT_READ})
NO_MAPPINGS = frozenset({np.ndarray, int, np.int64, tuple, type(None)})
"""Most of what an env shows; asking the abstract class takes longer than a step of a small game."""

BINARY = frozenset({0, 1})
SMALL_MASK = 100

Path = tuple[str | int, ...]


def mask_path(space: Any, num_actions: int) -> Path | None:
    """Keys to follow from an observation to its mask; None where its space has none.

    Args:
      num_actions: entries of the seat's mask; what has another number of them is an observation of that name.
    Raises:
      ValueError: two parts fit equally well.
    """
    found = sorted(
        (path for path, part in _named(space, ()) if path == (MASK,) or _size(part) == num_actions),
        key=lambda path: (path != (MASK,), len(path), MASK_NAMES.index(str(path[-1]))),
    )
    if len(found) > 1 and found[0] != (MASK,) and len(found[1]) == len(found[0]) and found[1][-1] == found[0][-1]:
        names = " and ".join(".".join(map(str, path)) for path in found[:2])
        raise ValueError(f"{names} may both be the mask of a seat's actions; rename one of them")
    return found[0] if found else None


def _named(space: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    """Paths and spaces of all parts that have the name of a mask."""
    if path and path[-1] in MASK_NAMES:
        yield path, space
    elif isinstance(space, spaces.Dict):
        for key, part in space.spaces.items():
            yield from _named(part, (*path, key))
    elif isinstance(space, spaces.Tuple):
        for place, part in enumerate(space.spaces):
            yield from _named(part, (*path, place))


def _size(space: Any) -> int:
    """Numbers in a space; -1 where it is none of numbers."""
    if isinstance(space, spaces.Dict | spaces.Tuple):
        parts = space.spaces.values() if isinstance(space, spaces.Dict) else space.spaces
        return sum(_size(part) for part in parts)
    is_flat = isinstance(space, spaces.Box | spaces.MultiBinary | spaces.MultiDiscrete)
    return math.prod(space.shape) if is_flat else -1


def mask_of(observation: Any, infos: Mapping[str, Any] | None, *, path: Path | None = None) -> Any:
    """The mask that an observation or its infos carry; None if neither does.

    Args:
      path: of the mask in the observation; None where its space has none.
    Raises:
      ValueError: the observation has nothing there.
    """
    if path is not None:
        for key in path:
            try:
                observation = observation[key]
            except (LookupError, TypeError) as error:
                raise ValueError(f"its observation has no {'.'.join(map(str, path))!r}, its space has") from error
        return observation
    if _is_mapping(observation) and MASK in observation:
        return observation[MASK]
    if infos and _is_mapping(infos) and not KNOWN.isdisjoint(infos):
        if MASK in infos:
            return infos[MASK]
        return next((infos[name] for name in MASK_NAMES if name in infos), None)
    return None


def _is_mapping(value: Any) -> bool:
    kind = type(value)
    return kind is dict or (kind not in NO_MAPPINGS and isinstance(value, Mapping))


def mask_name(observation: Any, infos: Any) -> str:
    """The place of a mask in an observation or infos that no space declares; empty where there is none."""
    if infos and _is_mapping(infos) and not KNOWN.isdisjoint(infos):
        return next(f"infos[{name!r}]" for name in (*MASK_NAMES, *NOT_READ) if name in infos)
    return f"observation[{MASK!r}]" if _is_mapping(observation) and MASK in observation else ""


@dataclass(frozen=True)
class MaskMethod:
    """A method by which envs of one kind say what is legal. takes_agent: whether it wants to know for whom."""

    name: str
    takes_agent: bool

    @classmethod
    def of(cls, env: Any, *, has_agents: bool) -> MaskMethod | None:
        """The method of an env or of one that it wraps; None where it has none.

        has_agents: whether one that must be given something can mean an agent. That of Gymnasium's Taxi means a state.
        """
        for name in MASK_METHODS:
            method = _method(env, name)
            if method is not None and (has_agents or not _takes_agent(method)):
                return cls(name, _takes_agent(method))
        return None

    def __call__(self, env: Any, *, agent: Any, seat: int) -> Any:
        """The mask of a seat, of a method that gives it, or those of all seats by name or in their order."""
        method = _method(env, self.name)
        assert method is not None, "all games of an env are of one kind"
        given = method(agent) if self.takes_agent else method()
        if isinstance(given, Mapping) and agent in given:
            return given[agent]
        return given[seat] if self.name == "get_avail_actions" else given


def _method(env: Any, name: str) -> Callable[..., Any] | None:
    while env is not None:
        method = getattr(env, name, None)
        if callable(method):
            return method  # type: ignore[no-any-return]
        env = getattr(env, "env", None)
    return None


def _takes_agent(method: Callable[..., Any]) -> bool:
    """True if a method cannot be called without an argument."""
    try:
        inspect.signature(method).bind()
    except TypeError:
        return True
    except ValueError:  # of a compiled method, which does not say
        return False
    return False


def legal_of(mask: NDArray[np.generic]) -> NDArray[np.bool_]:
    """The mask as booleans.

    Raises:
      ValueError: it holds anything but 0 and 1.
    """
    if mask.dtype == np.bool_:
        return mask  # type: ignore[return-value]
    is_small = mask.size <= SMALL_MASK  # for which calls of numpy take longer than a set
    if mask.ndim == 1 and is_small and BINARY.issuperset(mask.tolist()):
        return mask.astype(np.bool_)
    if mask.dtype.kind not in "iufO":
        mask = mask.astype(object)  # text, say, which compares with no number
    legal: NDArray[np.bool_] = np.equal(mask, 1)
    if np.count_nonzero(legal) + np.count_nonzero(np.equal(mask, 0)) != mask.size:
        other = np.argwhere(~legal & ~np.equal(mask, 0))[0]
        raise ValueError(
            f"action_mask holds {mask[tuple(other)]!s} at {other.tolist()}; it must hold 1 for every legal action and 0"
            " for every other"
        )
    return legal


def late_mask(env_id: str, where: str, name: str, *, acts_in_box: bool) -> EnvError:
    """The error of a mask that a game shows although it had none at first."""
    if acts_in_box:
        return EnvError(
            f"{env_id}{where}: it gives {name}, but its actions are a Box, of which nothing is masked; leave it out, or"
            " call it something else"
        )
    bare = name.partition("[")[2].strip("]'\"")
    if bare in NOT_READ:
        return EnvError(f"{env_id}{where}: it gives {name}, which is not read; give infos['{MASK}'], of 0 and 1")
    return EnvError(
        f"{env_id}{where}: it gives {name}, but its first reset gave no mask; give one from the first reset on, of ones"
        " where everything is legal"
    )
