"""A network as one HTML file that plays it: for static sites, without a network, a server of ours or WebAssembly.

The straight-line code of `numpy_file` is written again in JavaScript, expression by expression, over the part of numpy
in web/numpy.js: the table of operations stands once.
"""

from __future__ import annotations

import ast
import base64
import html
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from league.deploy.export.inputs import random_inputs
from league.deploy.export.numpy_file import NetworkCode
from league.deploy.export.step_module import MASK, StepModule
from league.envs.protocol import EnvSpec
from league.errors import LeagueError
from league.html_document import SCRIPTS, html_document, json_element
from league.version import __version__

FOLDER = Path(__file__).parent / "web"
OPERATORS: Mapping[type[ast.AST], str] = {
    ast.Add: "add",
    ast.Sub: "subtract",
    ast.Mult: "multiply",
    ast.Div: "divide",
    ast.FloorDiv: "floor_divide",
    ast.Pow: "power",
    ast.MatMult: "matmul",
    ast.BitAnd: "bitwise_and",
    ast.Eq: "equal",
    ast.NotEq: "not_equal",
    ast.Gt: "greater",
    ast.GtE: "greater_equal",
    ast.Lt: "less",
    ast.LtE: "less_equal",
    ast.USub: "negative",
}
"""Operator -> its function in numpy, which web/numpy.js has by the same name."""


def web_page(code: NetworkCode, module: StepModule, spec: EnvSpec, *, member: str, numbered: bool) -> str:
    """The text of the file.

    Args:
      code: of the network. module: that it was made of. member: for people.
      numbered: whether dist_params are logits of numbered actions.
    Raises:
      LeagueError: an operation is not in web/numpy.js, or a weight is no float32.
    """
    facts = {
        "game": spec.env_id,
        "member": member,
        "version": __version__,
        "seats": list(spec.seat_names),
        "fields": [[name, list(spec.observations[name].shape)] for name in module.fields],
        "actions": spec.actions.num_actions if MASK in module.inputs else 0,
        "core": module.network.core_size,
        "numbered": numbered,
        "layout": [[name, list(value.shape)] for name, value in code.weights.items()],
        "check": _check(module, spec),
    }
    title, scripts = f"{spec.env_id}: {member}", "".join(map(_asset, ("numpy.js", "rules.js")))
    body = f"""<main><h1>{html.escape(title)}</h1><noscript>The policy is computed by this page, which needs JavaScript.
</noscript></main>
{json_element("facts", json.dumps(facts, allow_nan=False))}
<script type="text/plain" id="weights">{_packed(code.weights)}</script>
<script>
"use strict";
{scripts}
{javascript(code)}
{_asset("page.js")}</script>"""
    return html_document(title, body, style=_asset("page.css"), allows=(SCRIPTS,))


def _asset(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def javascript(code: NetworkCode) -> str:
    """The function `step(weights, inputs)` of a network, which gives the list of its outputs.

    Raises:
      LeagueError: an operation is not in web/numpy.js.
    """
    names = [f"const {{{', '.join(code.weights)}}} = weights;"] if code.weights else []
    lines = [_statement(ast.parse(line).body[0]) for line in code.lines[:-1]]
    returned = ast.parse(code.lines[-1].removeprefix("return "), mode="eval").body
    values = returned.elts if isinstance(returned, ast.Tuple) else [returned]
    body = [f"const [{', '.join(code.inputs)}] = inputs;", *names, *lines, f"return {_list(values)};"]
    known = _known()
    for name in dict.fromkeys(re.findall(r"\bnp\.(\w+)\(", "\n".join(body))):
        if name not in known:
            raise LeagueError(f"the network has an operation that is not written in JavaScript here: {name}.")
    return "\n".join(["function step(weights, inputs) {", *(f"  {line}" for line in body), "}"])


def _known() -> set[str]:
    """The names that web/numpy.js gives."""
    found = re.search(r"\n  return \{\n(.*?)\n  \};\n\}\)\(\);", _asset("numpy.js"), re.DOTALL)
    assert found is not None
    return {name.strip() for name in found[1].split(",")}


def _statement(line: ast.stmt) -> str:
    assert isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name)
    return f"const {line.targets[0].id} = {_written(line.value)};"


def _written(node: ast.expr) -> str:
    """A Python expression of `numpy_operations` in JavaScript."""
    match node:
        case ast.Constant(value):
            return json.dumps(value)
        case ast.Name(name):
            return name
        case ast.Attribute(ast.Name("np"), "inf"):
            return "Infinity"
        case ast.Attribute(ast.Name("np"), "nan"):
            return "NaN"
        case ast.Attribute(ast.Name("np"), dtype):
            return json.dumps(dtype)
        case ast.Attribute(value, "shape"):
            return f"{_written(value)}.shape"
        case ast.List(values) | ast.Tuple(values):
            return _list(values)
        case ast.UnaryOp(operator, value):
            return f"np.{OPERATORS[type(operator)]}({_written(value)})"
        case ast.BinOp(one, operator, other):
            return f"np.{OPERATORS[type(operator)]}({_written(one)}, {_written(other)})"
        case ast.Compare(one, [ast.Is()], [other]):
            return f"{_written(one)} === {_written(other)}"
        case ast.Compare(one, [operator], [other]):
            return f"np.{OPERATORS[type(operator)]}({_written(one)}, {_written(other)})"
        case ast.IfExp(test, one, other):
            return f"({_written(test)} ? {_written(one)} : {_written(other)})"
        case ast.Subscript(value, index):
            return _subscript(value, index)
        case ast.Call(ast.Name("tuple"), [ast.GeneratorExp(value, [loop])]):
            found = f"{_written(loop.iter)}" + "".join(f".filter((each) => {_written(test)})" for test in loop.ifs)
            return found if isinstance(value, ast.Name) else f"{found}.map((each) => {_written(value)})"
        case ast.Call(ast.Name("tuple"), [value]):
            return _written(value)
        case ast.Call(function, given, named):
            name = function.attr if isinstance(function, ast.Attribute) else ast.unparse(function)
            options = [f"{one.arg}: {_written(one.value)}" for one in named]
            texts = [*map(_written, given), *([f"{{{', '.join(options)}}}"] if options else [])]
            return f"np.{name}({', '.join(texts)})"
    raise LeagueError(f"the network has an expression that is not written in JavaScript here: {ast.unparse(node)}.")


def _subscript(value: ast.expr, index: ast.expr) -> str:
    match index:
        case ast.Slice(None, ast.expr() as end, None):
            return f"{_written(value)}.slice(0, {ast.unparse(end)})"
        case ast.Call(ast.Name("tuple"), [ast.GeneratorExp(_, [ast.comprehension(iter=ast.List(places))])]):
            chosen = [(axis, place) for axis, place in enumerate(places) if not isinstance(place, ast.Constant)]
            if len(chosen) == 1:
                ((axis, place),) = chosen
                return f"np.take({_written(value)}, {_written(place)}, {{axis: {axis}}})"
            raise LeagueError("the network has an index of several tensors, which is not written in JavaScript here.")
    if isinstance(value, ast.Attribute):
        return f"{_written(value)}.at({_written(index)})"
    return f"np.item({_written(value)}, {_written(index)})"


def _list(values: list[ast.expr]) -> str:
    return f"[{', '.join(map(_written, values))}]"


def _packed(weights: Mapping[str, NDArray[Any]]) -> str:
    """All weights as base64 of float32, one after the other."""
    data = b""
    for name, value in weights.items():
        cast = np.ascontiguousarray(value, "<f4")
        if not np.array_equal(cast, value):
            raise LeagueError(f"{name} holds numbers that float32 does not, as a page has them.")
        data += cast.tobytes()
    return base64.b64encode(data).decode()


@torch.inference_mode()
def _check(module: StepModule, spec: EnvSpec) -> dict[str, object]:
    """Inputs, and what the network makes of them, by which a page checks itself in every browser."""
    ((obs, mask),) = random_inputs(spec, rows=1, steps=1, seed=0)
    given = module.tensors((obs, mask), module.initial_core(1))
    return {
        "inputs": [[list(one.shape), one.double().flatten().tolist()] for one in given],
        "outputs": [one.double().flatten().tolist() for one in module(*given)],
    }
