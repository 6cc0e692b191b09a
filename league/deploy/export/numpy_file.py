"""A network as one Python file that needs numpy alone: for competitions, browsers and small devices.

The traced graph becomes straight-line code, one line for each operation; weights are text within the file.
"""

from __future__ import annotations

import base64
import inspect
import operator
import re
import runpy
import tempfile
import textwrap
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.export.graph_signature import InputKind

from league.deploy.export.numpy_operations import EXPRESSIONS, FUNCTIONS
from league.deploy.export.step_module import MASK, StepModule
from league.errors import LeagueError
from league.version import __version__

WIDTH = 100
"""Characters of a line of weights."""
SILENT = ("_assert_tensor_metadata", "_assert_scalar", "sym_constrain_range_for_size", "sym_constrain_range")
"""Operations that only check."""
NOT_HERE = {"device", "layout", "pin_memory", "non_blocking", "memory_format", "implicit"}
ARITHMETIC: Mapping[Callable[..., Any], str] = {
    operator.mul: "{0} * {1}",
    operator.add: "{0} + {1}",
    operator.sub: "{0} - {1}",
    operator.floordiv: "{0} // {1}",
    operator.getitem: "{0}[{1}]",
}

HEAD = '''"""Policy {member} of {game}, written by League {version}. It needs numpy alone.

    policy = Policy()
    policy.reset()                       # at the start of every game
    action = policy.act(observation, mask)

An observation is a mapping of the fields {fields}; a mask holds true for legal actions.
`step` is the network itself: rows of inputs in, ({outputs}) out.
"""

import base64
import zlib

import numpy as np


class Policy:
    """Plays one seat of one game at a time. greedy: take the likeliest action instead of drawing one."""

    def __init__(self, seed=None, greedy=False):
        self._rng, self._greedy = np.random.default_rng(seed), greedy
        self.reset()

    def reset(self):
        """Begin a game."""
        self._core = np.zeros((1, CORE_SIZE), np.float32)

    def act(self, observation, mask=None):
        """The action for what the seat sees now{action}."""
        given = [np.asarray(observation[name])[None] for name in FIELDS]
        if HAS_MASK:
            given.append(np.asarray(mask, np.bool_)[None])
        if CORE_SIZE:
            given.append(self._core)
        outputs = step(*given)
        if CORE_SIZE:
            self._core = outputs[2]
        return self._chosen(outputs[0][0])

{chosen}

'''
CHOSEN = """    def _chosen(self, logits):
        if self._greedy:
            return int(np.argmax(logits))
        weights = np.exp(logits.astype(np.float64) - np.max(logits))
        return int(self._rng.choice(len(weights), p=weights / np.sum(weights)))"""
PARAMETERS = """    def _chosen(self, dist_params):
        return dist_params"""


@dataclass(frozen=True)
class NetworkCode:
    """A traced network as straight-line code over numpy.

    Fields:
      inputs: names of its arguments. lines: of its body, the last one a return. weights: by name.
    """

    inputs: tuple[str, ...]
    lines: tuple[str, ...]
    weights: dict[str, NDArray[Any]]


def network_code(program: torch.export.ExportedProgram) -> NetworkCode:
    """The code of a program of `traced`.

    Raises:
      LeagueError: an operation has no form in numpy here.
    """
    plain = program.run_decompositions()
    lines, weights, inputs = [], {}, []
    for spec in plain.graph_signature.input_specs:
        if spec.kind is InputKind.USER_INPUT:
            inputs.append(_variable(spec.arg.name))
        else:
            held = plain.constants if spec.kind is InputKind.CONSTANT_TENSOR else plain.state_dict
            found = held.get(spec.target, plain.constants.get(spec.target))
            assert isinstance(found, Tensor) and spec.target is not None
            weights[_variable(spec.arg.name)] = found.detach().numpy()
    for node in plain.graph.nodes:
        if node.op == "call_function" and (line := _line(node)):
            lines.append(line)
        elif node.op == "output":
            lines.append(f"return {', '.join(_text(value) for value in node.args[0])}")
    return NetworkCode(tuple(inputs), tuple(lines), weights)


def numpy_file(code: NetworkCode, module: StepModule, *, member: str, game: str, core_size: int, numbered: bool) -> str:
    """The text of the file.

    Args:
      module: that the code was made of. member, game: for the file's own description.
      numbered: whether dist_params are logits of numbered actions; else `act` returns dist_params.
    """
    body = textwrap.indent("\n".join(code.lines), "    ")
    head = HEAD.format(
        member=member,
        game=game,
        version=__version__,
        fields=", ".join(module.fields),
        outputs=", ".join(module.outputs),
        action=": its number" if numbered else ": dist_params, from which the caller draws",
        chosen=CHOSEN if numbered else PARAMETERS,
    )
    constants = f"FIELDS = {module.fields!r}\nHAS_MASK = {MASK in module.inputs}\nCORE_SIZE = {core_size}\n"
    unpacked, arguments = _unpacked(code.weights), ", ".join(code.inputs)
    step = f'def step({arguments}):\n    """The network, over rows."""\n{unpacked}\n{body}\n'
    return "\n\n".join([head.rstrip(), constants, *_functions(body), step, _weights(code.weights)]) + "\n"


def numpy_runner(text: str) -> Callable[..., tuple[Tensor, ...]]:
    """The `step` of a file, over tensors."""
    with tempfile.TemporaryDirectory() as folder:
        (written := Path(folder, "policy.py")).write_text(text, encoding="utf-8")
        made = runpy.run_path(str(written))

    def run(*tensors: Tensor) -> tuple[Tensor, ...]:
        outputs = made["step"](*(tensor.numpy() for tensor in tensors))
        return tuple(torch.from_numpy(np.array(output, np.float32)) for output in outputs)

    return run


def _line(node: torch.fx.Node) -> str:
    """An operation as a line; empty where it only checks."""
    target = node.target
    if callable(target) and target in ARITHMETIC:
        return f"{_variable(node.name)} = {ARITHMETIC[target].format(*map(_text, node.args))}"
    schema = getattr(target, "_schema", None)
    name = "" if schema is None else schema.name.partition("::")[2]
    if name in SILENT:
        return ""
    expression = EXPRESSIONS.get(f"{name}.{getattr(schema, 'overload_name', '')}", EXPRESSIONS.get(name))
    if schema is None or expression is None:
        raise LeagueError(f"the network has an operation that is not written in numpy here: {target}.")
    given = dict(zip((argument.name for argument in schema.arguments), node.args, strict=False)) | dict(node.kwargs)
    every = {argument.name: argument.default_value for argument in schema.arguments} | given
    texts = {key: _text(value) for key, value in every.items() if key not in NOT_HERE}
    return f"{_variable(node.name)} = {expression.format_map(texts)}"


def _variable(name: str) -> str:
    """A name of a graph, which may be that of a function."""
    return f"t_{name}"


def _text(value: Any) -> str:
    """A value of a graph as Python writes it."""
    if isinstance(value, torch.fx.Node):
        return _variable(value.name)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_text, value))}]"
    if isinstance(value, torch.dtype):
        name = str(value).removeprefix("torch.")
        return "np.bool_" if name == "bool" else f"np.{name}"
    if isinstance(value, float) and not np.isfinite(value):
        return "np.nan" if np.isnan(value) else ("np.inf" if value > 0 else "-np.inf")
    return repr(value)


def _functions(body: str) -> list[str]:
    """The text of the functions that a body uses, and of those that they use."""
    wanted: list[str] = []
    text = body
    for name in reversed([*FUNCTIONS]):
        if re.search(rf"\b{name}\(", text):
            source = re.sub(
                r": (Any|int|float|Sequence\[int\])( \| None)?(?=[,)\n=])", "", inspect.getsource(FUNCTIONS[name])
            )
            wanted.append(source.replace(" -> Any", "").rstrip())
            text += wanted[-1]
    return wanted[::-1]


def _unpacked(weights: Mapping[str, Any]) -> str:
    return "\n".join(f"    {name} = WEIGHTS[{name!r}]" for name in weights)


def _weights(weights: Mapping[str, Any]) -> str:
    """The weights as text, and how they are read."""
    layout = [(name, str(value.dtype), list(value.shape)) for name, value in weights.items()]
    data = b"".join(np.ascontiguousarray(value).tobytes() for value in weights.values())
    packed = base64.b85encode(zlib.compress(data, 9)).decode()
    text = "\n".join(packed[at : at + WIDTH] for at in range(0, len(packed), WIDTH))
    rows = "\n".join(f"    {row!r}," for row in layout)
    return f'''LAYOUT = (
{rows}
)
DATA = """
{text}
"""


def _read():
    data, at, read = zlib.decompress(base64.b85decode(DATA.replace("\\n", ""))), 0, {{}}
    for name, dtype, shape in LAYOUT:
        size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
        read[name] = np.frombuffer(data[at : at + size], dtype).reshape(shape)
        at += size
    return read


WEIGHTS = _read()'''
