"""Random legal inputs of a network over several steps: what a seat may see, and masks with a legal action.

Shape letters: K rows, A actions.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from league.agents.unroll.synthetic import synthetic_unrolls
from league.agents.unroll.unroll import UnrollSpec
from league.envs.protocol import EnvSpec

StepInputs = tuple[dict[str, Tensor], Tensor | None]
"""Fields name -> [K, ...] without those of the value alone, and the mask bool [K, A] or None."""


def random_inputs(spec: EnvSpec, *, rows: int, steps: int, seed: int) -> list[StepInputs]:
    """Inputs of `rows` seats over `steps` decisions; equal seeds give equal inputs.

    Args:
      spec: the game. rows: K.
    """
    unrolls = synthetic_unrolls(UnrollSpec(spec, steps), rows=rows, seed=seed)
    fields = {name: field for name, field in unrolls.obs.items() if name not in spec.value_fields}
    mask = unrolls.action_mask
    return [
        (
            {name: torch.from_numpy(np.ascontiguousarray(field[:, step])) for name, field in fields.items()},
            None if mask is None else torch.from_numpy(np.ascontiguousarray(mask[:, step])),
        )
        for step in range(steps)
    ]
