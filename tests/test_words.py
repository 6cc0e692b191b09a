"""The words of the project, each in one sense: private words that went do not come back, and prose is plain."""

from __future__ import annotations

import ast
import functools
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.source_trees import ROOT, each_of, forget, name_of, nodes_of, sources

pytestmark = pytest.mark.xdist_group("architecture")  # they share the parsed files


def teardown_module() -> None:
    forget()


GONE = {
    "Book": "JournaledLeague",
    "Order": "Directive",
    "OrderIssued": "DirectiveIssued",
    "UpdateOrder": "UpdateInputs",
    "Seating": "Assignment",
    "SeatingOutcome": "AssignmentOutcome",
    "Workload": "FairShare",
    "furthest_behind": "next_player",
    "Column": "GrowableArray",
    "guest": "fixed opponent",
    "guests": "fixed_opponents",
    "outsider": "imported policy",
    "outsiders": "imported",
    "tuner": "selection",
    "tuning": "pbt",
    "SeatPolicy": "Policy",
    "Choice": "ActOutputs",
    "rival": "opponent",
    "rivals": "gate_opponents",
    "doubt": "p_value",
    "Meal": "OpponentGames",
    "diet": "opponent_mix",
    "Descent": "LineageNode",
    "Tally": "OutcomeCounter",
    "Tail": "FlatOptimizer",
    "LossSums": "LossStats",
    "Passes": "ForwardPasses",
    "Coefficients": "LossWeights",
    "disorder": "entropy_loss",
    "crew": "worker_group",
    "Launcher": "WorkerGroupLauncher",
    "let_pass": "passthrough",
    "LocalPipeBackend": "ThreadedPipelineBackend",
    "DistPipeBackend": "TorchPipelineBackend",
    "StreamingLearnerHost": "AsyncLearnerHost",
    "ExactRuntime": "DeterministicRuntime",
    "TunedConfig": "HyperparameterConfig",
}
"""A name that no code may have -> the word of the field."""

GONE_PREFIXES = re.compile(r"_?(?:MOST|LEAST)_[A-Z]|\w+Settings$")
"""Constants are MAX_ and MIN_; records of settings end in Config."""

OF_OTHERS = {"BaseSettings"}


@functools.cache
def tokens(path: Path) -> list[tokenize.TokenInfo]:
    """The tokens of a file."""
    return list(tokenize.generate_tokens(io.StringIO(path.read_text()).readline))


def is_gone(word: str) -> bool:
    return word not in OF_OTHERS and (word in GONE or GONE_PREFIXES.match(word) is not None)


@each_of(sources())
def test_no_private_word_is_left(path: Path) -> None:
    if not any(map(is_gone, set(re.findall(r"\w+", path.read_text())))):  # in prose it may stand
        return
    for token in tokens(path):
        if token.type != tokenize.NAME or token.string in OF_OTHERS:
            continue
        where = f"{name_of(path)}:{token.start[0]}"
        assert token.string not in GONE, f"{where}: {token.string} is called {GONE.get(token.string)}"
        assert not GONE_PREFIXES.match(token.string), f"{where}: {token.string}"


MAX_WORDS = 25
"""Longest sentence of a docstring; what stands between semicolons or colons counts by itself."""

HEAD = re.compile(r"(?:What|How|Whether|Who|Which|Why)\b")
"""Words that open a clause; a summary says what the thing is or does."""

NOT_IN_PROSE = re.compile(
    r"\b(anew|of late|surely|by heart|(?:is|are|was|were|be|unless|otherwise) told|go(?:es)? on|went on"
    r"|disorder|slow cop(?:y|ies)|crews?|guests?|outsiders?|seatings?|tuners?|booked)\b",
    re.IGNORECASE,
)
"""Idioms, and private words that went."""


@functools.cache
def docstrings(path: Path) -> list[tuple[int, str]]:
    """(line, text) of every string that stands as a statement: of modules, classes, functions and constants."""
    return [
        (node.lineno, node.value.value)
        for node in nodes_of(path)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    ]


def records(path: Path) -> Iterator[tuple[ast.ClassDef, str]]:
    """Every dataclass or named tuple of a file, with its docstring."""
    for node in nodes_of(path):
        if isinstance(node, ast.ClassDef) and (text := ast.get_docstring(node)):
            marks = {ast.unparse(mark).partition("(")[0].rpartition(".")[2] for mark in node.decorator_list}
            if "dataclass" in marks or "NamedTuple" in map(ast.unparse, node.bases):
                yield node, text


def parts(text: str) -> Iterator[str]:
    """The sentences of a docstring, cut at semicolons and colons, and at the entries of its lists."""
    for paragraph in re.split(r"\n\s*\n|\n\s*(?=- |\w[\w, ]*: )|(?<=:)\n", text):
        if not paragraph.lstrip().startswith(("Shape letter", "<run>")):
            yield from re.split(r"(?<=[.!?;:])\s+", " ".join(paragraph.split()))


every_file = each_of([*sources(), *sorted((ROOT / "benchmarks").rglob("*.py"))])


@every_file
def test_sentences_are_short(path: Path) -> None:
    for line, text in docstrings(path):
        for part in parts(text):
            words = [word for word in part.split() if re.search("[A-Za-z]{2}", word)]
            assert len(words) <= MAX_WORDS, f"{name_of(path)}:{line}: {len(words)} words: {part}"


@every_file
def test_the_fields_of_a_docstring_are_those_of_the_record(path: Path) -> None:
    for node, text in records(path):
        fields = re.search(r"^Fields:\n(.*?)(?=^\S|\Z)", text, re.MULTILINE | re.DOTALL)
        if fields is None:
            continue
        own = {
            item.target.id
            for item in node.body
            if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
        }
        for names in re.findall(r"^ {2}(?=\S)((?:\w+, )*\w+): ", fields[1], re.MULTILINE):
            strange = {*names.split(", ")} - own
            assert not strange or node.bases, (
                f"{name_of(path)}:{node.lineno}: {node.name} has no field {sorted(strange)}"
            )


@every_file
def test_the_arguments_of_a_docstring_are_those_of_the_function(path: Path) -> None:
    """The docstring of a class speaks of the arguments of its `__init__`."""
    for node in nodes_of(path):
        function = node
        if isinstance(node, ast.ClassDef):
            made = [item for item in node.body if isinstance(item, ast.FunctionDef) and item.name == "__init__"]
            function = made[0] if made else node
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        text = ast.get_docstring(node) if isinstance(node, ast.ClassDef) else ast.get_docstring(function)
        section = re.search(r"^Args:\n(.*?)(?=^\S|\Z)", text or "", re.MULTILINE | re.DOTALL)
        own = {argument.arg for argument in ast.walk(function.args) if isinstance(argument, ast.arg)}
        for names in re.findall(r"^ {2}(?=\S)((?:\w+, )*\w+): ", section[1] if section else "", re.MULTILINE):
            strange = {*names.split(", ")} - own
            assert not strange, f"{name_of(path)}:{node.lineno}: {node.name} has no argument {sorted(strange)}"


@every_file
def test_messages_are_plain(path: Path) -> None:
    prose = {text for _, text in docstrings(path)}
    for node in nodes_of(path):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value not in prose:
            found = NOT_IN_PROSE.search(" ".join(node.value.split()))
            assert found is None, f"{name_of(path)}:{node.lineno}: {found and found[0]!r} in a message"


@every_file
def test_prose_is_plain(path: Path) -> None:
    for line, text in docstrings(path):
        assert not HEAD.match(text), f"{name_of(path)}:{line} opens with a clause: {text.splitlines()[0]}"
        found = NOT_IN_PROSE.search(" ".join(text.split()))
        assert found is None, f"{name_of(path)}:{line}: {found and found[0]!r} in {text.splitlines()[0]}"
    for token in tokens(path) if NOT_IN_PROSE.search(path.read_text()) else ():
        found = NOT_IN_PROSE.search(token.string) if token.type == tokenize.COMMENT else None
        assert found is None, f"{name_of(path)}:{token.start[0]}: {found and found[0]!r} in a comment"


NOT_IN_NAMES = re.compile(rf"{NOT_IN_PROSE.pattern}|\b(?:rivals?|doubts?)\b")
"""Of tests: also the private words that a sentence may use in their plain sense."""


def test_names_of_tests_are_plain() -> None:
    for path in sorted((ROOT / "tests").rglob("*.py")):
        for name in re.findall(r"(?m)^(?:async )?def (test_\w+)", path.read_text()):
            found = NOT_IN_NAMES.search(name.replace("_", " "))
            assert found is None, f"{name_of(path)}: {name} has {found and found.group()!r}"
