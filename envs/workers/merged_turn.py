"""Joins the turns of all shares of the games into one.

Shape letters: N games, K slots.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from league.envs.protocol import FinalObservation, Turn


def merged(turns: Sequence[Turn], firsts: Sequence[int]) -> Turn:
    """One turn, in new arrays. firsts: number of the first game of each share."""
    finals = [(turn.final, first) for turn, first in zip(turns, firsts, strict=True) if turn.final is not None]
    aborted = np.concatenate([turn.aborted for turn in turns if turn.aborted is not None])
    rejoined = np.concatenate([turn.rejoined for turn in turns if turn.rejoined is not None])
    masks = [turn.action_mask for turn in turns if turn.action_mask is not None]
    return Turn(
        env_index=np.concatenate([turn.env_index + first for turn, first in zip(turns, firsts, strict=True)]),
        seat=np.concatenate([turn.seat for turn in turns]),
        obs={name: np.concatenate([turn.obs[name] for turn in turns]) for name in turns[0].obs},
        action_mask=np.concatenate(masks) if masks else None,
        rewards=np.concatenate([turn.rewards for turn in turns]),
        terminated=np.concatenate([turn.terminated for turn in turns]),
        truncated=np.concatenate([turn.truncated for turn in turns]),
        returns=np.concatenate([turn.returns for turn in turns]),
        final=_merged_final(finals) if finals else None,
        rejoined=rejoined if rejoined.any() else None,
        aborted=aborted if aborted.any() else None,
    )


def _merged_final(finals: Sequence[tuple[FinalObservation, int]]) -> FinalObservation:
    return FinalObservation(
        env_index=np.concatenate([final.env_index + first for final, first in finals]),
        seat=np.concatenate([final.seat for final, _ in finals]),
        obs={name: np.concatenate([final.obs[name] for final, _ in finals]) for name in finals[0][0].obs},
    )
