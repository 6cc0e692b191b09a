"""The rules that keep the parts apart: imports one way, one home for each package, small files and functions."""

from __future__ import annotations

import ast
import functools
import graphlib
import importlib.util
import re
import sys
from pathlib import Path

import pytest

from tests.source_trees import (
    PACKAGES,
    ROOT,
    each_of,
    has_word,
    imports,
    module_of,
    name_of,
    nodes_of,
    package_of,
    sources,
    tree_of,
)

pytestmark = pytest.mark.xdist_group("architecture")  # they share the parsed files

MAY_IMPORT = {"envs": {"envs"}, "agents": {"agents", "envs"}, "league": {"league", "agents", "envs"}}
MAX_FILE_LINES, MAX_FUNCTION_LINES = 400, 60
MAX_FOLDER_FILES = {"agents/nets": 19}
"""Most files directly in a folder; 20 where none is given."""

WINGS = (
    ("core", "processes"),
    ("store",),
    ("http",),
    ("config",),
    ("hosts",),
    ("policies",),
    ("judge",),
    ("run", "deploy"),
    ("see", "lab"),
    ("operate",),
    ("cli",),
)
"""The wings of league/, bottom up: each imports only those on lower floors."""

MAX_FOLDERS = 14
"""Most folders directly in a folder."""

MAX_ATTRIBUTES = 18
MORE_ATTRIBUTES = {"RunFolder": 20, "AsyncLearnerHost": 20, "Learner": 19}
"""Most attributes that the methods of a class set. A run folder has that many paths."""

GROUND_FLOOR = {
    "agents/learner/config.py",
    "agents/learner/errors.py",
    "agents/learner/pipeline_config.py",
    "league/errors.py",
    "league/higher_wings.py",
    "league/hosts/protocol.py",
    "league/hosts/setup.py",
    "league/html_document.py",
    "league/json_report.py",
    "league/progress.py",
    "league/run/budget.py",
    "league/run/daemon_status.py",
    "league/run/snapshot_requests.py",
    "league/stages.py",
    "league/text_table.py",
    "league/version.py",
    "league/wording.py",
}
"""Files that the rooms above them may import although they lie in the folder around those rooms: each is a room of its
own to the test for cycles."""

HOMES = {
    "cmaes": ("agents/learner/evolution/cma_updater.py",),
    "chess": ("envs/notation/chess_moves.py", "league/judge/contenders/uci.py"),
    "gymnasium": ("envs/adapters/",),
    "lz4": ("agents/unroll/codec.py",),
    "msgspec": ("league/",),
    "numpy": ("envs/", "agents/", "league/"),
    "onnxruntime": ("league/deploy/export/onnx_graph.py",),
    "open_spiel": ("envs/adapters/", "league/deploy/engines/openspiel.py"),
    "openskill": ("league/judge/tournaments/openskill_ratings.py",),
    "optuna": ("league/lab/sweep/optuna_study.py",),
    "pettingzoo": ("envs/adapters/", "envs/notation/chess_moves.py"),
    "pydantic": ("league/config/problems.py", "league/run/control/api.py"),
    "pyspiel": ("envs/adapters/", "envs/notation/chess_moves.py", "league/deploy/engines/openspiel.py"),
    "ray": ("league/hosts/on_ray/",),
    "rich": ("league/run/monitor/",),
    "safetensors": ("league/store/weights_file.py",),
    "scipy": ("league/lab/diff/seeds.py", "league/policies/nash_lp.py"),
    "sqlite3": (
        "league/store/journal.py",
        "league/store/journal_branch.py",
        "league/store/journal_migrations.py",
        "league/store/journal_reader.py",
    ),
    "mlflow": ("league/see/trackers/mlflow_worker.py",),
    "tensorboard": ("league/see/trackers/tensorboard_sink.py",),
    "torch": ("agents/", "league/deploy/export/", "league/policies/", "league/hosts/", "league/deploy/serving/"),
    "triton": ("agents/nets/kernels/triton_kernels.py",),
    "fastapi": ("league/run/control/", "league/see/page/"),
    "httpx": (
        "league/run/alerts/webhook_sink.py",
        "league/run/control/client.py",
        "league/judge/pools/service/client.py",
        *("league/deploy/serving/client.py", "league/policies/fetched/zoo_index.py"),
    ),
    "prometheus_client": ("league/run/control/exposition.py", "league/deploy/serving/app.py"),
    "starlette": ("league/run/control/", "league/see/page/", "league/judge/pools/service/app.py"),
    "uvicorn": ("league/http/server.py",),
    "typer": ("league/cli/main.py", "league/cli/", "league/see/reports/run_summary.py"),
    "PIL": ("league/see/games/raster.py", "league/see/trackers/heatmap.py"),
    "huggingface_hub": ("league/deploy/export/hub_push.py",),
    "imageio": ("league/see/games/video.py",),
    "wandb": ("league/see/trackers/",),
    "xxhash": ("agents/replay/", "agents/unroll/codec.py"),
    "yaml": (
        "league/config/commented.py",
        "league/config/reference.py",
        "league/config/run_config.py",
        "league/config/yaml.py",
        "league/see/reports/env_check.py",
    ),
}
"""Package -> the only files (or folders) of ours that may import it. A new package gets a line here."""

PURE = (
    "league.envs.component_choice",
    "league.envs.text.number_text",
    "league.envs.placements",
    "league.higher_wings",
    "league.wording",
)
"""Rules outside of the core that it shares with the packages below; they import as little as it does."""

CORE_MAY_NOT = {"datetime", "io", "os", "pathlib", "random", "shutil", "socket", "subprocess", "tempfile", "threading"}
CATCH_ALL = re.compile(r"(utils?|helpers?|common|misc|tools?|[a-z_]+\d+)\.py")
UNSAFE = re.compile(
    r"\b(?:pickle|cPickle|dill|cloudpickle)\b|weights_only=False|yaml\.(?:unsafe_)?load\(|\beval\(|\bexec\("
)


every_file = each_of(sources())


@every_file
def test_imports_point_one_way(path: Path) -> None:
    package = name_of(path).partition("/")[0]
    for name in imports(path):
        top = package_of(name)
        assert top not in PACKAGES or top in MAY_IMPORT[package], f"{name_of(path)} imports {name}"
        assert name.partition(".")[0] not in ("agents", "envs"), f"{name_of(path)} imports {name}, a name of the user's"


@each_of(sources("league"))
def test_a_wing_imports_lower_floors_alone(path: Path) -> None:
    floors = {wing: floor for floor, wings in enumerate(WINGS) for wing in wings}
    wing, inside, _ = name_of(path).removeprefix("league/").partition("/")
    if not inside:
        return
    for name in imports(path):
        other = name.split(".")[1] if name.startswith("league.") else wing
        above = other in floors and other != wing and floors[other] >= floors[wing]
        assert not above, f"{name_of(path)} imports {name}, which is not below {wing}"


@each_of(sources("league"))
def test_a_wing_names_lower_floors_alone(path: Path) -> None:
    """Also by a string: what lies above is named in `league/higher_wings.py`."""
    floors = {wing: floor for floor, wings in enumerate(WINGS) for wing in wings}
    wing, inside, _ = name_of(path).removeprefix("league/").partition("/")
    if not inside:
        return
    prose = {id(node.value) for node in nodes_of(path) if isinstance(node, ast.Expr)}
    for node in nodes_of(path):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            for other in re.findall(r"\bleague\.(\w+)\.\w+", node.value):
                above = other in floors and other != wing and floors[other] >= floors[wing]
                assert not above, f"{name_of(path)}:{node.lineno} names {node.value!r}, which is not below {wing}"


def test_every_folder_of_league_is_a_wing() -> None:
    links = {"agents", "envs"}
    folders = {path.name for path in (ROOT / "league").iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert folders == {wing for floor in WINGS for wing in floor} | links
    assert all((ROOT / "league" / link).resolve() == ROOT / link for link in links)


def test_a_folder_holds_few_folders() -> None:
    inner: dict[Path, set[str]] = {}
    for path in sources():
        inner.setdefault(path.parent.parent, set()).add(path.parent.name)
    for folder, folders in inner.items():
        assert len(folders) <= MAX_FOLDERS or folder == ROOT, f"{folder} holds {len(folders)} folders"


@every_file
def test_each_package_is_imported_in_its_home_alone(path: Path) -> None:
    for name in imports(path):
        top = name.partition(".")[0]
        if top in PACKAGES or (top in sys.stdlib_module_names and top not in HOMES):
            continue
        assert top in HOMES, f"{name_of(path)} imports {top}, which has no line in HOMES"
        assert name_of(path).startswith(HOMES[top]), f"{name_of(path)} imports {top}, whose home is {HOMES[top]}"


@each_of([*sources("league/core"), *(ROOT / f"{name.replace('.', '/')}.py" for name in PURE)])
def test_the_core_imports_the_standard_library_and_numpy_alone(path: Path) -> None:
    for name in imports(path):
        top = name.partition(".")[0]
        allowed = top == "numpy" or name.startswith(("league.core", *PURE)) or top in sys.stdlib_module_names
        assert allowed and top not in CORE_MAY_NOT | {"time", "sqlite3"}, f"{name_of(path)} imports {name}"


@every_file
def test_no_file_and_no_function_is_too_long(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) <= MAX_FILE_LINES, f"{name_of(path)} has {len(text.splitlines())} lines"
    for node in nodes_of(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            lines = node.end_lineno - node.lineno + 1
            assert lines <= MAX_FUNCTION_LINES, f"{node.name} in {name_of(path)} has {lines} lines"


def test_tests_and_benchmarks_have_no_long_file() -> None:
    for path in sources("tests", "benchmarks", "docs"):
        lines = len(path.read_text().splitlines())
        assert lines <= MAX_FILE_LINES, f"{name_of(path)} has {lines} lines"


@every_file
def test_a_file_has_a_name_and_says_what_it_is_for(path: Path) -> None:
    assert not CATCH_ALL.fullmatch(path.name), f"{name_of(path)}: a name that holds anything says nothing"
    assert ast.get_docstring(tree_of(path)), f"{name_of(path)} does not say what it is for"


@every_file
def test_what_a_package_exports_for_users_is_not_used_inside(path: Path) -> None:
    """`from package import name` inside the project may only name a module, not what `__init__` re-exports."""
    for node in nodes_of(path):
        if not isinstance(node, ast.ImportFrom) or not node.module or node.module.split(".")[0] not in PACKAGES:
            continue
        if (ROOT / Path(*node.module.split(".")) / "__init__.py").exists():
            for alias in node.names:
                found = importlib.util.find_spec(f"{node.module}.{alias.name}")
                assert found is not None, f"{name_of(path)} takes {alias.name} from {node.module}/__init__.py"


@every_file
def test_nothing_is_swallowed(path: Path) -> None:
    """`except Exception` stands at a boundary and says which; `except BaseException` raises again; nothing is bare."""
    lines = path.read_text().splitlines()
    for node in nodes_of(path):
        if not isinstance(node, ast.ExceptHandler):
            continue
        where = f"{name_of(path)}:{node.lineno}"
        assert node.type is not None, f"{where} catches everything"
        caught = ast.unparse(node.type)
        if caught == "Exception":
            assert re.search(r"#.*(boundary|code of others)", lines[node.lineno - 1]), f"{where} says no boundary"
        if caught == "BaseException":
            assert any(isinstance(inner, ast.Raise) for inner in ast.walk(node)), f"{where} does not raise again"


@every_file
def test_nothing_from_outside_is_unpickled_or_executed(path: Path) -> None:
    if not has_word(path, "pickle|cPickle|dill|cloudpickle|weights_only|yaml|eval|exec"):
        return
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):  # words in docstrings are no code
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = ""
    bare = re.sub(r"\.eval\(\)", "", ast.unparse(tree))
    found = UNSAFE.search(bare)
    assert found is None, f"{name_of(path)} has {found and found.group()}"


@every_file
def test_randomness_is_passed_in(path: Path) -> None:
    """No call of numpy's or Python's global generators: a seed would not reach them."""
    if not has_word(path, "random"):
        return
    for node in nodes_of(path):
        if isinstance(node, ast.Call):
            text = ast.unparse(node.func)
            hidden = re.fullmatch(r"(np|numpy)\.random\.(?!default_rng|SeedSequence|PCG64|Generator)\w+", text)
            assert not hidden and not re.fullmatch(r"random\.[a-z]\w*", text), f"{name_of(path)} calls {text}"


@functools.cache
def import_graph() -> dict[str, set[str]]:
    """File -> files of ours that it imports, deferred imports and those for type checkers counted."""
    modules = {module_of(path): path for path in sources()}
    graph: dict[str, set[str]] = {name_of(path): set() for path in sources()}
    for path in sources():
        for node in nodes_of(path):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                inner = [f"{node.module}.{alias.name}" for alias in node.names]
                names = [name if name in modules else node.module for name in inner]
            else:
                continue
            graph[name_of(path)] |= {name_of(modules[name]) for name in names if name in modules} - {name_of(path)}
    return graph


def room_of(file: str) -> str:
    return file if file in GROUND_FLOOR else file.rpartition("/")[0]


def test_no_cycle_between_files() -> None:
    tuple(graphlib.TopologicalSorter(import_graph()).static_order())  # raises CycleError, which names the files


def test_no_cycle_between_folders() -> None:
    rooms: dict[str, set[str]] = {}
    for file, imported in import_graph().items():
        rooms.setdefault(room_of(file), set()).update({room_of(other) for other in imported} - {room_of(file)})
    tuple(graphlib.TopologicalSorter(rooms).static_order())  # raises CycleError, which names the folders


def test_a_folder_holds_few_files() -> None:
    folders: dict[str, int] = {}
    for path in sources():
        folder = name_of(path).rpartition("/")[0]
        folders[folder] = folders.get(folder, 0) + (path.name != "__init__.py")
    for folder, files in folders.items():
        assert files <= MAX_FOLDER_FILES.get(folder, 20), f"{folder} holds {files} files"


def test_a_class_has_a_name_of_its_own() -> None:
    places: dict[str, list[str]] = {}
    for path in sources():
        for node in tree_of(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(name_of(path))
    assert not {name: files for name, files in places.items() if len(files) > 1}


def test_an_object_holds_few_attributes() -> None:
    for path in sources():
        for node in (node for node in nodes_of(path) if isinstance(node, ast.ClassDef)):
            names = (inner for inner in ast.walk(node) if isinstance(inner, ast.Attribute))
            own = {one.attr for one in names if isinstance(one.ctx, ast.Store) and ast.unparse(one.value) == "self"}
            most = MORE_ATTRIBUTES.get(node.name, MAX_ATTRIBUTES)
            assert len(own) <= most, f"{node.name} in {name_of(path)} has {len(own)} attributes"


def test_a_file_has_the_name_of_its_content() -> None:
    """Many files report or register something: one may be called by that alone."""
    for name in ("registry.py", "report.py"):
        assert sum(path.name == name for path in sources()) <= 1, f"{name} stands more than once"


def test_every_rule_sees_the_files() -> None:
    assert len(sources()) > 100
    assert len(sources("league/core")) > 15
