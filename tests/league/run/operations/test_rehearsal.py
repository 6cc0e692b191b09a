"""A plan refuses what the deed would refuse, in the same words, and changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from league.core.state.state import to_plain
from league.run.operations.catalogue import OPERATIONS, plan_of
from league.run.operations.plans import OperationRefused
from tests.league.run.fake_runtime import Bench

FIRST = "main-0-s0"
CALM = {"players": [{"role": "main_agent", "gate": {"min_steps": 10**8, "timeout_steps": 10**9}}]}
"""One player, whose gate opens no directive of its own meanwhile."""
ASKED: tuple[tuple[str, Mapping[str, object]], ...] = (
    ("set", {"key": "learner.learning_rate", "value": 0.001}),
    ("set", {"key": "players.main-0.step_weight", "value": -1.0}),
    ("set", {"key": "tags.first", "value": "nobody-s7"}),
    ("set", {"key": "pins.nobody-s7", "value": True}),
    ("extend", {"limit": "seconds", "amount": -1e9}),
    ("pause", {"what": "main-0"}),
    ("unpause", {"what": "main-0"}),
    ("snapshot", {}),
    ("reset", {"player": "main-0"}),
    ("freeze", {"player": "main-0"}),
    ("retire", {"player": "main-0"}),
    ("add", {"role": "main_exploiter", "parent": "nobody-s7"}),
    ("add", {"role": "main_agent", "parent": FIRST}),
    ("admit", {"source": "/nowhere", "name": "friend"}),
    ("tag", {"snapshot": FIRST, "name": "taken"}),
    ("tag", {"snapshot": "main-0", "name": "taken"}),
    ("tag", {"snapshot": FIRST, "name": "best"}),
    ("tag", {"snapshot": FIRST, "name": "main-0"}),
    ("tag", {"snapshot": FIRST, "name": "free"}),
    ("untag", {"name": "taken"}),
    ("pin", {"snapshot": FIRST}),
    ("unpin", {"snapshot": FIRST}),
    ("actor_hosts", {"number": 0}),
    ("park", {"host": "actor-0"}),
    ("unpark", {"host": "actor-0"}),
    ("drain", {"host": "actor-7"}),
    ("gc", {}),
    ("gc", {"keep": 1}),
    ("undo", {"event": 1}),
)


def test_every_operation_is_among_those_that_are_tried() -> None:
    assert {name for name, _ in ASKED} == set(OPERATIONS)


@pytest.mark.parametrize(
    ("name", "arguments"), ASKED, ids=[f"{name}-{number}" for number, (name, _) in enumerate(ASKED)]
)
def test_a_plan_refuses_what_the_deed_refuses(name: str, arguments: Mapping[str, object], tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run", league=CALM)
    found: dict[str, object] = {}

    def ask(number: int) -> None:
        if number == 20:
            found["tag"] = bench.operator.submit("tag", {"snapshot": FIRST, "name": "taken"}, by="me", reason="")
        if number == 30:
            before = to_plain(bench.league.state)
            try:
                found["planned"] = plan_of(name, arguments, bench.operator.plan_inputs(by="me", reason="")).words
            except OperationRefused as error:
                found["refused"] = str(error)
            assert to_plain(bench.league.state) == before
            found["deed"] = bench.operator.submit(name, arguments, by="me", reason="")

    bench.runtime.on_poll = ask
    with pytest.MonkeyPatch.context() as patch:
        bench.run(env_steps=6_000)
        del patch
    deed = found["deed"]
    try:
        words = deed.result(timeout=0).words  # type: ignore[attr-defined]
    except Exception as error:
        assert found.get("refused") == str(error)
    else:
        assert found.get("planned") == words


def test_a_tag_that_is_taken_is_refused_before_it_is_done(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run", league=CALM)
    said: list[str] = []

    def ask(number: int) -> None:
        if number == 20:
            bench.operator.submit("tag", {"snapshot": FIRST, "name": "taken"}, by="me", reason="")
            bench.operator.submit("snapshot", {}, by="me", reason="")
        if number == 30:
            newest = list(bench.league.state.snapshots)[-1]
            assert newest != FIRST
            with pytest.raises(OperationRefused) as refused:
                bench.operator.plan("tag", {"snapshot": newest, "name": "taken"}, by="me")
            said.append(str(refused.value))

    bench.runtime.on_poll = ask
    bench.run(env_steps=6_000)
    assert said == [f"taken is {FIRST} already; remove that tag first"]
