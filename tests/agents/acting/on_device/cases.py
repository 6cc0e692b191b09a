"""Arenas on a device for tests, beside what the host would have recorded and counted of the same games."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from league.agents.acting.network_policy import NetworkPolicy
from league.agents.acting.on_device.arena import DeviceArena
from league.agents.acting.outcome_counter import AssignmentTotals, OutcomeCounter
from league.agents.device_games.making import make_device_game
from league.agents.nets.config import NetworkConfig
from league.agents.nets.network import build_network
from league.agents.unroll.builder import UnrollBuilder
from league.agents.unroll.device_unrolls import DeviceUnrolls
from league.agents.unroll.unroll import Unrolls, UnrollSpec
from league.envs.protocol import EnvConfig

CPU = torch.device("cpu")
MLP = NetworkConfig(hidden=(16,))
LSTM = NetworkConfig(hidden=(16,), core="lstm", core_size=8)


@dataclass(frozen=True)
class Table:
    """An assignment."""

    policies: tuple[str, ...]
    records: tuple[bool, ...]
    probability: float


LEAGUE = (
    Table(("home", "home"), (True, True), 0.3),
    Table(("home", "old-1"), (True, False), 0.4),
    Table(("old-2", "home"), (False, True), 0.3),
)


class Beside:
    """Forwards to a part of an arena on a device, and keeps what it was told as numpy arrays."""

    def __init__(self, part: Any) -> None:
        self._part = part
        self.calls: list[tuple[str, list[Any], dict[str, Any]]] = []

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._part, name)
        if name not in ("observe", "act", "end", "add"):
            return found

        def noted(*args: Any, **named: Any) -> Any:
            self.calls.append(
                (name, [_array(each) for each in args], {key: _array(each) for key, each in named.items()})
            )
            return found(*args, **named)

        return noted


def _array(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _array(each) for name, each in value.items()}
    return value.detach().cpu().numpy().copy() if isinstance(value, Tensor) else value


def policies_of(env: EnvConfig, network: NetworkConfig, *, device: torch.device = CPU) -> dict[str, NetworkPolicy]:
    """Three policies with weights and versions of their own."""
    spec = make_device_game(env, num_envs=1, device=CPU, seed=0).spec
    made = {}
    for number, name in enumerate(("home", "old-1", "old-2")):
        made[name] = NetworkPolicy(build_network(spec, network, seed=number))
        made[name].network.to(device)
        made[name].version = 10 * number
    return made


def arena_of(
    env: EnvConfig, network: NetworkConfig, *, num_envs: int = 24, unroll_length: int = 5, is_noted: bool = True
) -> DeviceArena:
    """An arena on the CPU that notes what its recorder and its counter are told."""
    game = make_device_game(env, num_envs=num_envs, device=CPU, seed=1)
    spec = UnrollSpec.of(game.spec, build_network(game.spec, network, seed=0), unroll_length=unroll_length)
    arena = DeviceArena(game, spec, device=CPU, seed=2)
    if is_noted:
        arena._recorder = Beside(arena._recorder)  # type: ignore[assignment]
        arena._outcomes = Beside(arena._outcomes)  # type: ignore[assignment]
    return arena


def recorded_on_host(arena: DeviceArena) -> list[Unrolls]:
    """What the host's builder makes of the calls that the arena's recorder got."""
    recorder: Any = arena._recorder
    builder = UnrollBuilder(arena._unrolls, num_rows=arena.num_envs * arena._seats)
    done: list[Unrolls | None] = []
    for name, args, named in recorder.calls:
        if name != "end" and not args[1].any():
            continue  # an arena on the host does not call it either
        if name == "observe":
            rows, records = args
            mask, core = named["action_mask"], named["core"]
            done.append(
                builder.observe(
                    rows[records],
                    obs={key: array[records] for key, array in named["obs"].items()},
                    action_mask=None if mask is None else mask[records],
                    rewards=named["rewards"][records],
                    core=core[records] if core.shape[1] else None,
                )
            )
        elif name == "act":
            rows, records = args
            builder.act(rows[records], **{key: array[records] for key, array in named.items()})
        else:
            rows = np.flatnonzero(args[0])
            terminated = np.ones(len(rows), np.bool_)
            builder.end(rows, rewards=named["rewards"][rows], terminated=terminated, final_obs=None)
    return [unrolls for unrolls in done if unrolls is not None]


def counted_on_host(arena: DeviceArena, tables: Sequence[Table]) -> tuple[AssignmentTotals, ...]:
    """What the host's counter makes of the calls that the arena's counter got."""
    outcomes: Any = arena._outcomes
    counter = OutcomeCounter(arena._game.spec.teams)
    for _, (assignment_of,), named in outcomes.calls:
        ended = named["ended"]
        of = np.array([counter.index_of(tables[index].policies) for index in assignment_of[ended]], np.int64)
        if len(of):
            truncated = np.zeros(len(of), np.bool_)
            counter.add(of, returns=named["returns"][ended], decisions=named["decisions"][ended], truncated=truncated)
    return counter.take()


def row_bytes(parts: Sequence[Unrolls] | Sequence[DeviceUnrolls]) -> list[bytes]:
    """Every row as bytes, sorted: what was recorded, in whatever order. Actions as int64."""
    rows = []
    for part in parts:
        arrays = {name: _array(array) for name, array in part.arrays().items()}
        arrays["actions"] = arrays["actions"].astype(np.int64)
        rows += [b"".join(arrays[name][row].tobytes() for name in sorted(arrays)) for row in range(part.num_rows)]
    return sorted(rows)
