"""One table of fields: a line added to it reaches builder, chunk, ring and batch; no other file lists the fields."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from league.agents.unroll.builder import OUTCOMES, UnrollBuilder
from league.agents.unroll.codec import ChunkHeader, Lz4Codec
from league.agents.unroll.unroll import ASKED, FIELDS, UnrollSpec
from league.envs.protocol import ActionSpec, ArraySpec, EnvSpec, multi_categorical

ROOT = Path(__file__).parents[3]
TABLE = "agents/unroll/unroll.py"
LAST_LINE = re.compile(r"^    core: Array = .*\n", re.M)
MADE_UP = '    surprise: Array = field(metadata=table_line("R T", "float32"))\n'

PASSES_ON = """
import numpy as np
import torch
from league.agents.learner.data.batch import batch_from, join
from league.agents.unroll.builder import UnrollBuilder
from league.agents.unroll.codec import ChunkHeader, Lz4Codec
from league.agents.unroll.ring import UnrollRing
from league.agents.unroll.synthetic import synthetic_unrolls
from league.agents.unroll.unroll import UnrollSpec, concatenate
from league.envs.protocol import ActionSpec, ArraySpec, EnvSpec

actions = ActionSpec("categorical", num_actions=3)
game = EnvSpec("g", 1, {"x": ArraySpec((2,), "float32")}, actions, (0,), has_mask=False)
spec = UnrollSpec(game, unroll_length=4)
builder, rows, done = UnrollBuilder(spec, num_rows=2), np.arange(2), []
for step in range(9):
    seen = {"x": np.full((2, 2), step, np.float32)}
    made = builder.observe(rows, obs=seen, action_mask=None, rewards=np.zeros(2, np.float32), core=None)
    done.extend([] if made is None else [made])
    number = np.full(2, step, np.float32)
    builder.act(rows, actions=rows, log_probs=-number, versions=rows, surprise=10 * number)
    if step == 5:  # the marker after a truncation holds 0
        builder.end(rows, rewards=number, terminated=rows > 1, final_obs=seen)
codec = Lz4Codec()
_, back = codec.decode(codec.encode(concatenate(done), ChunkHeader("r", "p", 0, 1)))
ring = UnrollRing(spec, capacity=4, pinned=False)
ring.check(back)
ring.write(back, at=0)
batch = batch_from(ring.read(at=0, count=4), oldest_version=0, device=torch.device("cpu"))
surprise = join(batch.microbatches(2)).surprise
assert surprise.tolist() == [[0, 10, 20, 30]] * 2 + [[40, 50, 0, 60]] * 2, surprise
assert synthetic_unrolls(spec, rows=3, seed=0).surprise.shape == (3, 4)
print("passed on")
"""


def test_one_line_in_the_table_takes_a_new_field_from_the_builder_into_the_batch(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "league", tmp_path / "league", ignore=shutil.ignore_patterns("__pycache__"))
    text = (tmp_path / "league" / TABLE).read_text()
    (last,) = LAST_LINE.findall(text)
    (tmp_path / "league" / TABLE).write_text(text.replace(last, last + MADE_UP))
    program = tmp_path / "program.py"  # the folder of the program is looked in first
    program.write_text(PASSES_ON)
    ran = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=120, check=False)
    assert ran.stdout == "passed on\n", ran.stderr


def test_no_other_file_lists_the_fields() -> None:
    for path in sorted((ROOT / "agents").rglob("*.py")):
        if path.relative_to(ROOT).as_posix() == TABLE:
            continue
        named = {name for name in ("log_probs", "discounts", "versions", "resets") if f'"{name}"' in path.read_text()}
        assert len(named) < 3 or path.name == "synthetic.py", f"{path.relative_to(ROOT)} names {sorted(named)}"


def test_the_order_of_the_table_is_that_of_chunks() -> None:
    assert [line.name for line in FIELDS] == [
        "action_mask",
        "sub_action_log_probs",
        *ASKED,
        "weights",
        "resets",
        "actions",
        "log_probs",
        "rewards",
        "discounts",
        "valid",
        "versions",
        "core",
    ]


@pytest.mark.parametrize(
    ("actions", "has_mask", "num_sub_actions", "absent"),
    [
        (ActionSpec("categorical", num_actions=3), True, 0, {"sub_action_log_probs"}),
        (ActionSpec("categorical", num_actions=3), False, 0, {"action_mask", "sub_action_log_probs"}),
        (ActionSpec("box", shape=(2,)), False, 0, {"action_mask", "sub_action_log_probs"}),
        (multi_categorical((3, 4)), True, 2, set()),
    ],
)
def test_shapes_follow_the_letters_of_the_table(
    actions: ActionSpec, has_mask: bool, num_sub_actions: int, absent: set[str]
) -> None:
    game = EnvSpec("g", 1, {"x": ArraySpec((5,), "uint8")}, actions, (0,), has_mask=has_mask)
    spec = UnrollSpec(game, unroll_length=6, core_size=7, num_sub_actions=num_sub_actions)
    rows = spec.allocate(2)
    own = {line.name for line in FIELDS if not line.is_added}
    assert own - {line.name for line in spec.fields} - set(ASKED) == absent
    assert rows.obs["x"].shape == (2, 7, 5) and rows.obs["x"].dtype == np.uint8
    assert rows.resets.shape == (2, 7) and rows.core.shape == (2, 7)
    assert rows.actions.shape == (2, 6, *actions.shape) and rows.actions.dtype == spec.action_dtype
    assert (
        rows.action_mask is None if "action_mask" in absent else rows.action_mask.shape == (2, 7, actions.num_actions)
    )
    by_sub_action = rows.sub_action_log_probs
    assert by_sub_action is None if "sub_action_log_probs" in absent else by_sub_action.shape == (2, 6, 2)


def test_a_field_that_is_asked_for_travels_and_is_zero_where_nothing_was_recorded() -> None:
    actions = ActionSpec("categorical", num_actions=3)
    game = EnvSpec("g", 1, {"x": ArraySpec((2,), "float32")}, actions, (0,), has_mask=False)
    spec = UnrollSpec(game, unroll_length=2, recorded=ASKED)
    builder, rows, done = UnrollBuilder(spec, num_rows=2), np.arange(2), []
    for step in range(3):
        seen = {"x": np.zeros((2, 2), np.float32)}
        made = builder.observe(rows, obs=seen, action_mask=None, rewards=np.zeros(2, np.float32), core=None)
        done.extend([] if made is None else [made])
        decided = {"values": np.full(2, step + 1.0, np.float32), "search_policy": np.full((2, 3), 1 / 3, np.float32)}
        builder.act(rows, actions=rows, log_probs=np.zeros(2, np.float32), versions=rows, **decided)
    codec = Lz4Codec()
    _, back = codec.decode(codec.encode(done[0], ChunkHeader("r", "p", 0, 1)))
    assert back.values.tolist() == [[1.0, 2.0]] * 2 and back.search_value.tolist() == [[0.0, 0.0]] * 2
    assert back.search_policy.shape == (2, 2, 3)
    assert UnrollSpec(game, unroll_length=2).allocate(1).values is None
    with pytest.raises(ValueError, match=r"an unroll has no field 'visits' to record; there are values, search_policy"):
        UnrollSpec(game, unroll_length=2, recorded=("visits",))


def test_the_builder_fills_fields_of_the_table_alone() -> None:
    assert set(OUTCOMES) <= {line.name for line in FIELDS if line.per_decision}
