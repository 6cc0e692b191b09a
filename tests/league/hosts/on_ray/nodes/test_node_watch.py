"""Machines as they come and go, and the ones that run something else."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Iterable
from dataclasses import replace

import pytest

from league.hosts.on_ray.nodes.host_version import HostVersion, differences, this_version
from league.hosts.on_ray.nodes.node_watch import Node, NodeWatch, agree, node_of, versions_there
from tests.league.hosts.on_ray.nodes.machines import machine

ONE, TWO = machine("one"), machine("two")


def watch_of(nodes: list[Node], answers: dict[str, HostVersion | str], asked: list[str]) -> NodeWatch:
    def ask(unknown: Iterable[Node], ended: threading.Event) -> dict[str, HostVersion | str]:
        names = [node.node_id for node in unknown]
        asked.extend(names)
        return {name: answers[name] for name in names if name in answers}

    return NodeWatch(read=lambda: list(nodes), ask=ask)


def test_a_machine_is_asked_once_and_used_when_it_has_the_same_versions() -> None:
    asked: list[str] = []
    watch = watch_of([ONE, TWO], {"one": this_version(), "two": this_version()}, asked)
    watch.look()
    watch.look()
    assert (watch.nodes, watch.usable, asked) == ((ONE, TWO), (ONE, TWO), ["one", "two"])
    assert watch.take_remarks() == []


def test_a_machine_of_another_version_is_named_once_and_not_used() -> None:
    other = replace(this_version(), torch="1.9", code="0123")
    watch = watch_of([ONE, TWO], {"one": this_version(), "two": other}, [])
    watch.look()
    assert watch.usable == (ONE,)
    (remark,) = watch.take_remarks()
    assert remark.startswith("Machine two (10.0.0.3) is not used: it has code 0123 (here ")
    assert "torch 1.9 (here " in remark
    assert (watch.refusal("two"), watch.refusal("one"), watch.take_remarks()) == (remark, "", [])


def test_a_machine_without_this_project_is_named_with_its_own_words() -> None:
    watch = watch_of([ONE], {"one": "ModuleNotFoundError: No module named 'league'"}, [])
    watch.look()
    assert "No module named 'league'" in watch.take_remarks()[0]


def test_a_machine_that_did_not_answer_is_asked_again_and_not_used_till_then() -> None:
    answers: dict[str, HostVersion | str] = {}
    watch, asked = None, list[str]()
    watch = watch_of([ONE], answers, asked)
    watch.look()
    assert (watch.usable, watch.nodes) == ((), (ONE,))
    answers["one"] = this_version()
    watch.look()
    assert (watch.usable, asked) == ((ONE,), ["one", "one"])


def test_a_machine_that_is_gone_is_neither_there_nor_usable() -> None:
    nodes = [ONE, TWO]
    watch = watch_of(nodes, {"one": this_version(), "two": this_version()}, [])
    watch.look()
    nodes.remove(ONE)
    watch.look()
    assert (watch.nodes, watch.usable) == ((TWO,), (TWO,))
    assert list(watch._verdicts) == ["two"], "of a fleet that comes and goes for weeks, only what is there is kept"


def test_a_cluster_that_does_not_answer_leaves_what_was_seen_last() -> None:
    def read() -> list[Node]:
        if looked.is_set():
            again.set()
            raise ConnectionError("the head is gone")
        looked.set()
        return [ONE]

    looked, again = threading.Event(), threading.Event()
    watch = NodeWatch(read=read, ask=agree)
    watch.start()
    assert again.wait(20.0)
    watch.close()
    watch.close()
    assert watch.nodes == (ONE,)


@pytest.mark.parametrize("field", ["league", "code", "python", "ray", "torch", "numpy"])
def test_every_version_counts(field: str) -> None:
    here = this_version()
    assert differences(here, here) == ""
    assert differences(here, replace(here, **{field: "other"})) == f"it has {field} other (here {getattr(here, field)})"


def test_versions_can_be_asked_of_another_machine() -> None:
    assert inspect.isfunction(versions_there), "Ray takes no other callables"
    assert versions_there() == this_version()


def test_a_machine_is_read_from_rays_words() -> None:
    entry = {
        "NodeID": "ab",
        "NodeManagerAddress": "10.0.0.7",
        "NodeManagerHostname": "box",
        "Resources": {"CPU": 4.0, "GPU": 1.0, "memory": 1e9},
    }
    assert node_of(entry) == Node("ab", "box", "10.0.0.7", 4.0, 1.0)
    assert str(node_of(entry)) == "box (10.0.0.7)"
    assert node_of({**entry, "Resources": {}}).cpus == 0.0
