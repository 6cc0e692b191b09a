"""Ids of the games by which tests see alignment, masks and ends: built-in ones wherever this is imported."""

from __future__ import annotations

from typing import cast

from league.envs.registry import BUILT_IN

PROBES = {
    "probe_turns": "tests.envs.counting_games:TurnProbe",
    "probe_simultaneous": "tests.envs.counting_games:SimultaneousProbe",
    "probe_mask": "tests.envs.counting_games:MaskProbe",
    "probe_last_move": "tests.envs.counting_games:LastMoveProbe",
    "probe_sub_actions": "tests.envs.probe_sub_actions:SubActionsProbe",
}

cast("dict[str, str]", BUILT_IN).update(PROBES)
