"""Policies as graphs for other programs, each compared with its network before it is written.

Sampling is left to the caller: a graph gives the parameters of the distribution, the value and the next core state.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from league.agents.nets.heads import CategoricalHead
from league.agents.nets.network import Network
from league.deploy.export.inputs import random_inputs
from league.deploy.export.numpy_file import network_code, numpy_file, numpy_runner
from league.deploy.export.onnx_graph import OPSET, onnx_bytes, onnx_runner
from league.deploy.export.step_module import StepModule, run_steps, traced
from league.deploy.export.web_page import web_page
from league.envs.protocol import EnvSpec
from league.errors import LeagueError
from league.policies.package import Graph, Parity

ONNX, TORCH_EXPORT, NUMPY, WEB = "onnx", "torch_export", "numpy", "web"
ENDINGS = {ONNX: "onnx", TORCH_EXPORT: "pt2", NUMPY: "py", WEB: "html"}
TOLERANCE = 1e-5
PARITY_ROWS, PARITY_STEPS = (1, 8), 4

Run = Callable[..., tuple[Tensor, ...]]


class GraphDiffers(LeagueError):  # noqa: N818
    """An exported graph does not compute what its network computes, or cannot be made."""


def make_graphs(
    kinds: Sequence[str], network: Network, spec: EnvSpec, *, member: str, stem: str
) -> list[tuple[Graph, bytes]]:
    """A network as graphs, each with the proof that it computes the same, and the contents of their files.

    Args:
      kinds: keys of `ENDINGS`. member, stem: name and files for the manifest.
    Raises:
      GraphDiffers: one differs by more than `TOLERANCE`, or the network cannot be traced.
      LeagueError: a package that is needed is not installed.
    """
    module, made = StepModule(network, spec).eval(), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of tracers about their own inner workings
        try:
            program = traced(module, spec)
            for kind in kinds:
                payload, run = _made(kind, program, module, spec, member=member)
                made.append((kind, payload, run))
        except LeagueError:
            raise
        except Exception as error:  # code of others: a tracer may raise anything on a network of the user's own
            first = next(iter(str(error).strip().splitlines()), type(error).__name__)
            raise GraphDiffers(f"{member} cannot be made into a graph: {first}") from error
    return [
        (
            _checked(kind, module, StepModule(network, spec), run, spec, member=member, file=file_of(kind, stem)),
            content,
        )
        for kind, content, run in made
    ]


def file_of(kind: str, stem: str) -> str:
    """The name of a graph's file; a page has the one that web servers look for."""
    return f"{stem.replace('model', 'index') if kind == WEB else stem}.{ENDINGS[kind]}"


def _checked(
    kind: str, module: StepModule, reference: Run, run: Run, spec: EnvSpec, *, member: str, file: str
) -> Graph:
    parity = compared(module, reference, run, spec)
    if not parity.max_difference <= TOLERANCE:
        raise GraphDiffers(
            f"The {kind} graph of {member} differs from its network by {parity.max_difference:.3g}, more than "
            f"{TOLERANCE:g}: it was not exported."
        )
    torch_version = f"torch {torch.__version__.partition('+')[0]}"
    version = {ONNX: f"opset {OPSET}", NUMPY: "numpy", WEB: "JavaScript"}.get(kind, torch_version)
    return Graph(kind, member, file, module.inputs, module.outputs, version, parity)


@torch.inference_mode()
def compared(module: StepModule, reference: Run, run: Run, spec: EnvSpec) -> Parity:
    """The largest difference between two runs over random legal inputs, each with the memory of its own."""
    worst = 0.0
    for rows in PARITY_ROWS:
        inputs = random_inputs(spec, rows=rows, steps=PARITY_STEPS, seed=rows)
        wanted, given = run_steps(module, reference, inputs, rows), run_steps(module, run, inputs, rows)
        worst = max(worst, _difference(wanted, given))
    return Parity(sum(PARITY_ROWS), PARITY_STEPS, worst, TOLERANCE)


def _difference(wanted: Sequence[tuple[Tensor, ...]], given: Sequence[tuple[Tensor, ...]]) -> float:
    """Largest |given - wanted| / max(1, |wanted|); infinite where a shape differs, or a number is not finite."""
    worst = 0.0
    for one, other in zip(wanted, given, strict=True):
        for want, have in zip(one, other, strict=True):
            if want.shape != have.shape or not (torch.isfinite(have).all() and torch.isfinite(want).all()):
                return float("inf")
            if want.numel():
                worst = max(worst, float(((have - want).abs() / want.abs().clamp(min=1.0)).max()))
    return worst


def _made(
    kind: str, program: torch.export.ExportedProgram, module: StepModule, spec: EnvSpec, *, member: str
) -> tuple[bytes, Run]:
    if kind == ONNX:
        return _onnx(program, module)
    if kind == TORCH_EXPORT:
        return _torch_export(program)
    numbered = type(module.network.head) is CategoricalHead  # what is derived from it acts otherwise
    code, core_size = network_code(program), module.network.core_size
    text = numpy_file(code, module, member=member, game=spec.env_id, core_size=core_size, numbered=numbered)
    run = numpy_runner(text)
    if kind == WEB:  # no engine of JavaScript is here: the same code is checked here, and the page checks itself
        text = web_page(code, module, spec, member=member, numbered=numbered)
    return text.encode(), run


def _onnx(program: torch.export.ExportedProgram, module: StepModule) -> tuple[bytes, Run]:
    payload = onnx_bytes(program, inputs=module.inputs, outputs=module.outputs)
    return payload, onnx_runner(payload, inputs=module.inputs, outputs=module.outputs)


def _torch_export(program: torch.export.ExportedProgram) -> tuple[bytes, Run]:
    """The file, and the graph as read from it again."""
    buffer = io.BytesIO()
    torch.export.save(program, buffer)
    payload = buffer.getvalue()
    return payload, torch.export.load(io.BytesIO(payload)).module()
