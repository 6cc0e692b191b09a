"""One step of a network as a module with plain tensors in and out, which graphs are made of.

Shape letters: K rows, A actions, P dist_params, C floats of core state.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from league.agents.nets.network import Network
from league.deploy.export.inputs import StepInputs, random_inputs
from league.envs.protocol import EnvSpec

MASK, CORE, NEXT_CORE, VALUE, DIST_PARAMS = "action_mask", "core", "next_core", "value", "dist_params"
FIELD_PREFIX = "obs."
EXAMPLE_ROWS = 3
"""Rows of the inputs that a graph is traced with; not 0 or 1, which a tracer takes for constants."""


class StepModule(nn.Module):
    """`Network.step` over a list of tensors.

    Attributes:
      inputs: names in order: the fields as obs.NAME [K, ...], action_mask bool [K, A] where the game has masks, and
        core float32 [K, C] where there is memory.
      outputs: names in order: dist_params float32 [K, P], value float32 [K], and next_core [K, C] with memory.
    """

    def __init__(self, network: Network, spec: EnvSpec) -> None:
        super().__init__()
        self.network = copy.deepcopy(network)  # a tracer puts tensors of its own into some modules
        self.fields = tuple(name for name in spec.observations if name not in spec.value_fields)
        self.has_mask = spec.has_mask
        inputs = [f"{FIELD_PREFIX}{name}" for name in self.fields]
        self.inputs = (*inputs, *([MASK] if spec.has_mask else []), *([CORE] if network.core_size else []))
        self.outputs = (DIST_PARAMS, VALUE, *([NEXT_CORE] if network.core_size else []))

    def forward(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        """The outputs for inputs in the order of `inputs`."""
        given = dict(zip(self.inputs, tensors, strict=True))
        obs = {name: given[f"{FIELD_PREFIX}{name}"] for name in self.fields}
        output = self.network.step(obs, core=given.get(CORE), action_mask=given.get(MASK))
        results = {DIST_PARAMS: output.logits, VALUE: output.values, NEXT_CORE: output.core}
        return tuple(results[name] for name in self.outputs)

    def tensors(self, step: StepInputs, core: Tensor | None) -> tuple[Tensor, ...]:
        """The inputs of a step in order. core: None without memory."""
        obs, mask = step
        given = {**{f"{FIELD_PREFIX}{name}": field for name, field in obs.items()}, MASK: mask, CORE: core}
        found = [given[name] for name in self.inputs]
        assert all(tensor is not None for tensor in found), "a game without masks, or a network without memory"
        return tuple(tensor for tensor in found if tensor is not None)

    def initial_core(self, rows: int) -> Tensor | None:
        """Zeros [rows, C]; None without memory."""
        return self.network.initial_core(rows) if self.network.core_size else None


def traced(module: StepModule, spec: EnvSpec) -> torch.export.ExportedProgram:
    """The module as a graph of tensor operations for any number of rows."""
    (step,) = random_inputs(spec, rows=EXAMPLE_ROWS, steps=1, seed=0)
    example = module.tensors(step, module.initial_core(EXAMPLE_ROWS))
    rows = torch.export.Dim("rows", min=1)
    with torch.no_grad():
        return torch.export.export(
            module, example, dynamic_shapes={"tensors": tuple({0: rows} for _ in example)}, strict=False
        )


def run_steps(module: StepModule, run: object, inputs: Sequence[StepInputs], rows: int) -> list[tuple[Tensor, ...]]:
    """The outputs of `run`, which takes tensors in order, over steps that hand their core state on."""
    assert callable(run)
    core, results = module.initial_core(rows), []
    for step in inputs:
        outputs = run(*module.tensors(step, core))
        if core is not None:
            core = outputs[-1]
        results.append(outputs)
    return results
