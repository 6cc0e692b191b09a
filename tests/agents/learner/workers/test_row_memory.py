"""Rows that are put into mapped memory come out the same, also larger and smaller ones after them."""

from __future__ import annotations

import dataclasses

import numpy as np

from league.agents.learner.workers.row_memory import RowMemory
from tests.agents.learner.learner_cases import BOARD_GAME, COMMANDS, ENTITIES, MLP, network_of, unrolls_of


def test_rows_come_out_as_they_were_put_in(tmp_path) -> None:
    memory = RowMemory(tmp_path / "rows")
    for spec, network, rows in ((BOARD_GAME, MLP, 3), (COMMANDS, ENTITIES, 12), (BOARD_GAME, MLP, 1)):
        given = unrolls_of(spec, network_of(spec, network), rows=rows, steps=5)
        for put in (given, dataclasses.replace(given, obs={})):
            found = memory.put(put).open().arrays()
            assert found.keys() == put.arrays().keys()
            for name, array in put.arrays().items():
                assert found[name].dtype == array.dtype and found[name].flags.writeable
                np.testing.assert_array_equal(found[name], array)
    memory.close()
    memory.close()
