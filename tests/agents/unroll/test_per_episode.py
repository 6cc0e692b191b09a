"""Rows of whole episodes against a slow oracle: padded at the end, cut where an episode is longer than a row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from league.agents.unroll.builder import UnrollBuilder
from league.agents.unroll.unroll import Unrolls, UnrollSpec, concatenate
from tests.agents.unroll.test_unroll import SPEC

LENGTH = 4
TRUNCATED = (False, True, False, True, False, True, False, True)


def played(builder: UnrollBuilder, episodes: list[tuple[int, bool]]) -> Iterator[Unrolls]:
    """Rows of one slot; observation, log-probability and reward of a decision are its number since the start."""
    row, number = np.array([0]), 0
    for length, is_truncated in episodes:
        for _ in range(length):
            number += 1
            seen = {"n": np.array([number])}
            earned = np.array([number - 1], np.float32)
            done = builder.observe(row, obs=seen, action_mask=None, rewards=earned, core=None)
            yield from [] if done is None else [done]
            builder.act(
                row, actions=row, log_probs=np.array([-number], np.float32), versions=np.array([number], np.int32)
            )
        done = builder.end(
            row,
            rewards=np.array([100 + number], np.float32),
            terminated=np.array([not is_truncated]),
            final_obs={"n": np.array([1000 + number])} if is_truncated else None,
        )
        yield from [] if done is None else [done]


def expected(episodes: list[tuple[int, bool]]) -> Iterator[dict[str, list[Any]]]:
    """The same rows, decision by decision: (observation, its start), and (reward, discount, valid, version)."""
    number = 0
    for length, is_truncated in episodes:
        seen = [(number + 1 + step, step == 0) for step in range(length)]
        decided = [(number + 1.0 + step, 1.0, True, number + 1 + step) for step in range(length)]
        number += length
        decided[-1] = (100.0 + number, 1.0 if is_truncated else 0.0, True, number)
        if is_truncated:
            seen.append((1000 + number, False))
        for start in range(0, length, LENGTH):
            own = decided[start : start + LENGTH]
            shown = seen[start : start + LENGTH + 1]
            last = own[-1][3]
            own += [(0.0, 0.0, False, last)] * (LENGTH - len(own))
            shown += [(0, True)] * (LENGTH + 1 - len(shown))
            yield {
                "n": [n for n, _ in shown],
                "resets": [is_start for _, is_start in shown],
                "rewards": [item[0] for item in own],
                "discounts": [item[1] for item in own],
                "valid": [item[2] for item in own],
                "versions": [item[3] for item in own],
            }


def test_rows_are_those_of_whole_episodes() -> None:
    lengths = (3, 1, LENGTH, LENGTH, LENGTH - 1, 9, 2 * LENGTH, 2 * LENGTH)
    episodes = list(zip(lengths, TRUNCATED, strict=True))
    rows = concatenate(list(played(UnrollBuilder(UnrollSpec(SPEC, LENGTH, per_episode=True), num_rows=1), episodes)))
    wanted = list(expected(episodes))
    assert rows.num_rows == len(wanted)
    for index, row in enumerate(wanted):
        found = {name: getattr(rows, name)[index].tolist() for name in row if name != "n"}
        assert {"n": rows.obs["n"][index].tolist(), **found} == row, index
    assert rows.action_mask is not None and rows.action_mask[~rows.valid.repeat(2, axis=1)[:, : LENGTH + 1]].all()


def test_without_the_setting_a_row_continues_into_the_next_episode() -> None:
    rows = concatenate(list(played(UnrollBuilder(UnrollSpec(SPEC, LENGTH), num_rows=1), [(3, False)] * 4)))
    assert rows.valid.all() and rows.resets[:, 1:].any()


@pytest.mark.parametrize("decisions", [1, 3])
def test_a_row_of_a_failed_game_is_dropped(decisions: int) -> None:
    builder = UnrollBuilder(UnrollSpec(SPEC, LENGTH, per_episode=True), num_rows=1)
    row = np.array([0])
    for number in range(decisions):
        seen, nothing = {"n": np.array([77])}, np.zeros(1, np.float32)
        assert builder.observe(row, obs=seen, action_mask=None, rewards=nothing, core=None) is None
        builder.act(row, actions=row, log_probs=nothing, versions=np.array([number], np.int32))
    builder.abandon(row)
    (rows,) = played(builder, [(2, False)])
    assert (
        rows.num_rows == 1
        and rows.obs["n"][0].tolist() == [1, 2, 0, 0, 0]
        and rows.resets[0].tolist()[:2] == [True, False]
    )
