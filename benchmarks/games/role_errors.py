"""Symmetric games whose seats are taken for different roles, and games with roles in which they are found.

    python -m benchmarks.games.role_errors --seeds 20

Each game is played at random as often as settings are chosen for it, with few and with many games at once.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterable, Mapping

import numpy as np

from benchmarks.games.role_env import RoleGame
from benchmarks.games.role_games import ROLES, SYMMETRIC
from league.envs.bots import RandomBot
from league.envs.facts.game_statistics import GameStatistics

LENGTHS = ((4, 30), (4, 500), (64, 100))
"""(games at once, turns): far too short, without a clock, in a second or two."""


def main() -> int:
    """Play and print a row for each family and length, and one JSON object last."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--symmetric", type=int, default=50, help="symmetric games")
    parser.add_argument("--roles", type=int, default=21, help="games with roles")
    parser.add_argument("--seeds", type=int, default=20, help="of the play of each game")
    options = parser.parse_args()
    rows = []
    for kind, families, count in (("symmetric", SYMMETRIC, options.symmetric), ("roles", ROLES, options.roles)):
        for num_envs, turns in LENGTHS:
            found: dict[str, list[bool]] = {}
            began = time.process_time()
            for family, number in games_of(families, count):
                found.setdefault(family, []).extend(
                    sees_roles(family, number, num_envs=num_envs, turns=turns, seed=seed)
                    for seed in range(options.seeds)
                )
            told = [one for some in found.values() for one in some]
            row = {
                "kind": kind,
                "games_at_once": num_envs,
                "turns": turns,
                "plays": len(told),
                "told_apart": sum(told),
                "share": float(np.mean(told)),
                "families": {family: float(np.mean(some)) for family, some in found.items()},
                "seconds": time.process_time() - began,
            }
            rows.append(row)
            print(json.dumps(row), file=sys.stderr)
    print(json.dumps({"rows": rows}))
    return 0


def games_of(families: Mapping[str, object], count: int) -> Iterable[tuple[str, int]]:
    """The first `count` games: family and number, all families in turn."""
    names = list(families)
    return ((names[place % len(names)], place // len(names)) for place in range(count))


def sees_roles(family: str, number: int, *, num_envs: int, turns: int, seed: int) -> bool:
    """True if random play of so many turns finds two roles in a game."""
    env = RoleGame(family, number, num_envs=num_envs)
    seen, bot, turn = GameStatistics(env.spec, num_envs=num_envs), RandomBot(seed=seed), env.reset(seed)
    for _ in range(turns):
        actions = bot.act(env, turn, np.arange(turn.env_index.size))
        seen.decided(turn, actions)
        turn = env.step(actions)
        seen.stepped(turn)
    return bool(seen.facts(copyable=False, has_tree=False, shared_views=False, costs=None).roles)


if __name__ == "__main__":
    raise SystemExit(main())
