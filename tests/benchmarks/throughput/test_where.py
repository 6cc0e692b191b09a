"""The profile of a run: stacks belong to parts, and processes are looked at, those that are forked among them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.throughput.where import OTHER, SAMPLES, Watch, part_of


@pytest.mark.parametrize(
    ("frames", "part"),
    [
        (["/x/agents/nets/mlp.py:forward", "/x/agents/acting/network_policy.py:act"], "act"),
        (["/x/agents/nets/mlp.py:forward", "/x/agents/learner/update.py:step"], "learn"),
        (["/x/torch/functional.py:f", "/x/envs/games/othello.py:step", "/x/agents/acting/arena.py:run"], "env"),
        (["/x/site-packages/ray/worker.py:get", "/x/league/hosts/on_ray/runtime.py:poll"], "Ray"),
        (["/usr/lib/threading.py:wait"], OTHER),
    ],
)
def test_a_stack_belongs_to_the_innermost_part(frames: list[str], part: str) -> None:
    assert part_of("\n".join(frames))[0] == part


def test_every_process_is_looked_at_and_a_window_is_a_difference(tmp_path: Path) -> None:
    program = tmp_path / "envs" / "busy.py"
    program.parent.mkdir()
    program.write_text("""
import os, time

def burn(seconds):
    while time.process_time() < seconds:
        pass

child = os.fork()
burn(0.7)
time.sleep(0.6)
if child:
    os.waitpid(child, 0)
""")
    (samples := tmp_path / "samples").mkdir()
    environment = {**os.environ, "PYTHONPATH": str(SAMPLES), "LEAGUE_STACK_SAMPLES": str(samples)}
    watch = Watch(samples)
    watch.look()
    subprocess.run([sys.executable, str(program)], env=environment, check=True, timeout=60)
    watch.look()
    assert len([*samples.glob("*.json")]) == 2 and all(json.loads(one.read_text()) for one in samples.glob("*.json"))
    profile = watch.profile()
    assert 1.0 < profile.functions["env: envs/busy.py:burn"] < 1.6
    watch.look()
    assert profile.seconds > 1.0
