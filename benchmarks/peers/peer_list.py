"""The peers: the file that trains each, the packages of its venv, and those that cannot take part with the reason."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.strength.runs import ROOT

LEAGUE, NEWEST = "league", "newest"
"""League's shipped defaults, and the same with `league.preset: self_play`."""
POPULATIONS: Mapping[str, tuple[str, ...]] = {LEAGUE: (), NEWEST: ("league.preset=self_play",)}
"""Arm of League -> its settings beside the game, the budget and the seed."""

TORCH = "torch==2.13.0"
GAMES = ("numpy==2.4.6", "gymnasium==1.4.0", "pettingzoo==1.27.0", "open-spiel==2.0.2")
"""Packages of the games, of the releases in `constraints.txt`, so that both sides play the same game."""
CLASSIC = ("pygame-ce==2.5.8", "chess==1.11.2", "rlcard==1.2.0")
"""Packages that `pettingzoo.classic` imports."""


@dataclass(frozen=True)
class Peer:
    """A peer that trains in a venv of its own. module: its file here. packages: of its venv, beside the games'."""

    module: str
    packages: tuple[str, ...] = ()

    @property
    def requirements(self) -> tuple[str, ...]:
        """All packages of its venv, each with its release."""
        return (TORCH, *self.packages, *GAMES, *CLASSIC)


PEERS: Mapping[str, Peer] = {
    "plain_ppo": Peer("benchmarks.peers.trainers.plain_ppo"),
    "sb3_ppo": Peer("benchmarks.peers.trainers.sb3_ppo", ("stable-baselines3==2.9.2", "sb3-contrib==2.9.2")),
    "tianshou_ppo": Peer("benchmarks.peers.trainers.tianshou_ppo", ("tianshou==2.0.1",)),
}
NOT_HERE: Mapping[str, str] = {
    "nash_pg": "the wheel of open-spiel 2.0.2, the newest in the index, has no python/pytorch/nash_pg.py",
    "pufferlib": "3.0.0 downloads raylib from outside of the index while it builds; with NO_OCEAN=1 its setup.py ends"
    " in a NameError (c_extension_paths); pufferlib-core 3.0.23 is for torch 2.9.0 and needs libcudart.so.12",
}
"""Peer that cannot take part -> why."""
ARMS = (*POPULATIONS, *PEERS)


def commands_of(peer: Peer, venv: Path, *, python: str = sys.executable) -> list[list[str]]:
    """The commands that make the venv of a peer, in their order."""
    pip = [str(venv / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    return [
        [python, "-m", "venv", str(venv)],
        [*pip, "--constraint", str(ROOT / "constraints.txt"), *peer.requirements],
    ]


def venv_of(name: str, folder: Path) -> Path:
    """The venv of a peer, made where it is not there; a venv is whole once it holds its list of packages.

    Raises:
      subprocess.CalledProcessError: it could not be made.
    """
    venv, peer = folder / name, PEERS[name]
    made, wanted = venv / "requirements.txt", "\n".join(peer.requirements)
    if not made.is_file() or made.read_text() != wanted:
        for command in commands_of(peer, venv):
            print(f"{name}: {' '.join(command)}", flush=True)
            subprocess.run(command, check=True)
        made.write_text(wanted)
    return venv


def chosen_arms(names: Sequence[str] | None) -> list[str]:
    """The arms that were asked for, all without.

    Raises:
      ValueError: one that is not known.
    """
    unknown = [name for name in names or () if name not in ARMS]
    if unknown:
        raise ValueError(f"unknown peers {', '.join(unknown)}; known are {', '.join(ARMS)}")
    return list(names or ARMS)
