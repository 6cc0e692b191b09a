"""Seats that pause, leave and come back: a table of what their steps become, in turns and all at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from league.agents.acting.arena import Arena
from league.agents.acting.policy import BotPolicy
from league.agents.unroll.unroll import UnrollSpec, concatenate
from league.core.state.records import Assignment
from league.envs.adapters.external import ExternalEnv
from league.envs.adapters.pettingzoo import AecEnv, ParallelEnv
from league.envs.bots import RandomBot
from league.envs.conformance import check_turn
from league.envs.protocol import EnvConfig
from league.envs.registry import make
from tests.envs.oracles import raw_comings
from tests.envs.oracles.raw_comings import RawAec, RawParallel, Script, script


def env_of(kind: str, lines: Script) -> ExternalEnv:
    if kind == "aec":
        return AecEnv.of(lambda: RawAec(lines), env_id="comings", num_envs=1)
    return ParallelEnv.of(lambda: RawParallel(lines, stays=kind == "stays"), env_id="comings", num_envs=1)


End = tuple[str, list[float], dict[int, float]]

TABLE: list[tuple[str, str, str, list[tuple[int, int, float | None]], End]] = [
    # What it is, seats a and b step by step: (step, seat, last observation) of every rejoining, and the end: what it
    # is, returns, last observations.
    ("both play to the end", "iid", "iid", [], ("terminated", [3, 3], {})),
    ("both are cut off", "iic", "iic", [], ("truncated", [3, 3], {0: 103, 1: 203})),
    ("one pauses and goes on", "iiiid", "ooiid", [], ("terminated", [5, 3], {})),
    ("one dies and stays away", "iiid", "idoo", [], ("terminated", [4, 2], {})),
    ("one is cut off and stays away", "iiid", "icoo", [], ("truncated", [4, 2], {1: 202})),
    ("one dies and comes back", "iiiid", "idoid", [(4, 1, None)], ("terminated", [5, 3], {})),
    ("one is cut off and comes back", "iiiid", "icoid", [(4, 1, 202)], ("terminated", [5, 3], {})),
    ("one is cut off, comes back and is cut off", "iiiic", "icoic", [(4, 1, 202)],
     ("truncated", [5, 3], {0: 105, 1: 205})),
    ("one dies, comes back and stays away", "iiiiid", "idoido", [(4, 1, None)], ("terminated", [6, 3], {})),
    ("one dies twice", "iiiiiid", "doidoid", [(3, 1, None), (6, 1, None)], ("terminated", [7, 3], {})),
    ("one is cut off at the end, the other dead", "iic", "ido", [], ("truncated", [3, 2], {0: 103})),
]  # fmt: skip


@pytest.mark.parametrize("kind", ["parallel", "stays", "aec"])
@pytest.mark.parametrize(("what", "a", "b", "rejoinings", "end"), TABLE, ids=[row[0] for row in TABLE])
def test_steps_become_these_parts_and_this_end(
    kind: str, what: str, a: str, b: str, rejoinings: list[tuple[int, int, float | None]], end: End
) -> None:
    env = env_of(kind, script(a, b))
    turn = env.reset(0)
    for _ in range(2):  # nothing of an episode is left in the next one
        seen: list[tuple[int, int, float | None]] = []
        while True:
            turn = env.step(np.zeros(turn.env_index.size, np.int64))
            assert not list(check_turn(env.spec, turn, num_envs=1)), what
            last = {}
            if turn.final is not None:
                last = dict(zip(turn.final.seat.tolist(), turn.final.obs["observation"][:, 0].tolist(), strict=True))
            if turn.rejoined is not None:
                step = env._games[0].steps
                seen += [(step, seat, last.get(seat)) for seat in np.flatnonzero(turn.rejoined[0]).tolist()]
            if turn.ended[0]:
                break
        assert seen == rejoinings
        how = "truncated" if turn.truncated[0] else "terminated"
        assert (how, turn.returns[0].tolist(), last) == end


def recorded(lines: Script, *, steps: int, seat: int) -> list[tuple[float, float, float, bool]]:
    """(step seen, reward, discount, reset) of every recorded decision of a seat."""
    env = env_of("parallel", lines)
    arena = Arena(env, UnrollSpec(env.spec, 16), seed=0, bootstrap_time_limits=True)
    table = [Assignment(("p", "p"), (seat == 0, seat == 1), 1.0)]
    unrolls = concatenate(list(arena.run(table, {"p": BotPolicy(RandomBot(seed=0))}, steps=steps)))
    seen = unrolls.obs["observation"][0, :-1, 0] % 100
    columns = seen, unrolls.rewards[0], unrolls.discounts[0], unrolls.resets[0, :-1]
    return [tuple(row) for row, valid in zip(zip(*columns, strict=True), unrolls.valid[0], strict=True) if valid]  # type: ignore[misc]


@pytest.mark.parametrize(
    ("b", "parts"),
    [
        ("ooiid", [(0, 1, 1, True), (3, 1, 1, False), (4, 1, 0, False)]),  # a pause: one return
        ("idoid", [(0, 1, 1, True), (1, 1, 0, False), (4, 1, 0, True)]),  # a death: two returns
        ("icoid", [(0, 1, 1, True), (1, 1, 1, False), (4, 1, 0, True)]),  # a cut: the first leads to its marker
    ],
)
def test_returns_end_with_a_death_or_a_cut_and_run_on_through_a_pause(b: str, parts: list[Any]) -> None:
    assert recorded(script("iiiid", b), steps=40, seat=1)[:3] == parts


def test_games_in_child_processes_report_the_same() -> None:
    config = EnvConfig(f"{raw_comings.__name__}:cut_and_back", workers=1)
    env, alone = make(config, num_envs=1), env_of("parallel", script("iiiid", "icoid"))
    try:
        turn, other = env.reset(0), alone.reset(0)
        for _ in range(4):
            turn, other = (
                one.step(np.zeros(old.env_index.size, np.int64)) for one, old in ((env, turn), (alone, other))
            )
        assert turn.rejoined is not None and turn.rejoined.tolist() == [[False, True]]
        assert turn.final is not None and turn.final.obs["observation"].tolist() == [[202.0]]
        assert other.rejoined is not None and other.rejoined.tolist() == turn.rejoined.tolist()
    finally:
        env.close()
