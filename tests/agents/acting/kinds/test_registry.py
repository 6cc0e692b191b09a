"""Every registered kind of acting: its options are checked without torch, and its policies act in an arena."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing
from dataclasses import dataclass

import numpy as np
import pytest
import torch

from league.agents.acting.arena import Arena
from league.agents.acting.kinds.acting_kinds import ACTING, ActingPlace, make_acting
from league.agents.acting.kinds.config import ACTING_OPTIONS
from league.agents.acting.network_policy import NetworkPolicy
from league.agents.nets.config import NetworkConfig
from league.agents.nets.network import build_network
from league.agents.unroll.unroll import UnrollSpec, concatenate
from league.core.state.records import Assignment
from league.envs.plugin_options import OptionsError
from league.envs.plugins import PluginError
from league.envs.protocol import EnvConfig
from league.envs.registry import make
from tests.agents.learner.learner_cases import weights_in

GAME = {
    "sample": "tic_tac_toe",
    "epsilon_greedy": "tic_tac_toe",
    "gaussian": "gymnasium:Pendulum-v1",
    "search": "tic_tac_toe",
    "perturbed": "tic_tac_toe",
}
NETWORK = {
    "sample": NetworkConfig(hidden=(16,)),
    "epsilon_greedy": NetworkConfig(hidden=(16,), head="q_values"),
    "gaussian": NetworkConfig(hidden=(16,), head="deterministic"),
    "search": NetworkConfig(hidden=(16,)),
    "perturbed": NetworkConfig(hidden=(16,)),
}
"""Kind of acting -> a game and a network that fit it."""


def test_every_kind_has_a_record_of_options_and_none_needs_torch() -> None:
    assert ACTING.keys() == ACTING_OPTIONS.keys() == GAME.keys() == NETWORK.keys()
    program = "import sys, league.agents.acting.kinds.config; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60.0)


@pytest.mark.parametrize("name", list(ACTING))
def test_policies_of_every_kind_act_adopt_and_record_what_they_name(name: str) -> None:
    with closing(make(EnvConfig(GAME[name]), num_envs=4)) as env:
        kind = make_acting(name, env.spec, ActingPlace(1, 2, 4))
        network = build_network(env.spec, NETWORK[name], seed=0)
        policy = kind.policy(network, dtype=torch.float32)
        policy.adopt(weights_in(network, version=7))
        spec = UnrollSpec.of(env.spec, network, unroll_length=3, recorded=kind.recorded)
        arena = Arena(env, spec, seed=0)
        table = [Assignment(("home",) * env.spec.num_seats, (True,) * env.spec.num_seats, 1.0)]
        unrolls = concatenate(list(arena.run(table, {"home": policy}, steps=40)))
    assert (unrolls.versions[unrolls.valid] == 7).all()
    assert all(getattr(unrolls, field).any() for field in kind.recorded)


@dataclass(frozen=True)
class OwnConfig:
    shift: int = 1


class Own:
    """A kind of acting of one's own, in one file."""

    recorded = ("values",)

    def __init__(self, spec, place, options: OwnConfig) -> None:  # type: ignore[no-untyped-def]
        self.place, self.shift = place, options.shift

    def policy(self, network, *, dtype):  # type: ignore[no-untyped-def]
        """Samples."""
        return NetworkPolicy(network, dtype=dtype)


def test_a_kind_of_ones_own_takes_options_and_knows_its_place() -> None:
    with closing(make(EnvConfig("tic_tac_toe"), num_envs=1)) as env:
        kind = make_acting({"kind": f"{__name__}:Own", "shift": 3}, env.spec, ActingPlace(1, 4, 16))
        assert kind.shift == 3 and kind.place == ActingPlace(1, 4, 16)  # type: ignore[attr-defined]
        with pytest.raises(OptionsError, match=r"actors\.acting\.shft: unknown key"):
            make_acting({"kind": f"{__name__}:Own", "shft": 3}, env.spec, ActingPlace())
        with pytest.raises(PluginError, match=r"actors\.acting: .*sampel"):
            make_acting("sampel", env.spec, ActingPlace())


def test_games_are_counted_over_the_parts_of_a_host() -> None:
    seen: list[np.ndarray] = []

    class Looking(NetworkPolicy):
        def act(self, inputs, rng):  # type: ignore[no-untyped-def]
            seen.append(inputs.games)
            return super().act(inputs, rng)

    with closing(make(EnvConfig("tic_tac_toe"), num_envs=2)) as env:
        network = build_network(env.spec, NETWORK["sample"], seed=0)
        arena = Arena(env, UnrollSpec.of(env.spec, network, unroll_length=3), seed=0, first_game=6)
        list(arena.run([Assignment(("home", "home"), (True, True), 1.0)], {"home": Looking(network)}, steps=1))
    assert seen[0].tolist() == [6, 7]
