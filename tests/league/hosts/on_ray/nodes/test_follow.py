"""Where actor hosts are placed, and what happens to them as machines come and go."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as some

from league.hosts.on_ray.nodes.follow import Change, follow
from league.hosts.on_ray.nodes.node_watch import Node
from tests.league.hosts.on_ray.nodes.machines import machine

HEAD, GPU, PLAIN = machine("head", cpus=2), machine("gpu", cpus=8, gpus=2), machine("plain", cpus=3)


def test_each_free_cpu_has_a_host_and_those_of_learner_hosts_are_not_free() -> None:
    nodes = [HEAD, PLAIN]
    assert Counter(follow(nodes, nodes, held={}, taken={"head": 1.0}).add) == {"head": 1, "plain": 3}


def test_machines_with_gpus_are_left_to_learners_where_there_are_others() -> None:
    both = [GPU, PLAIN]
    assert set(follow(both, both, held={}, taken={}).add) == {"plain"}
    assert Counter(follow([GPU], [GPU], held={}, taken={"gpu": 1.0}).add) == {"gpu": 7}
    full = follow(both, both, held={}, taken={"plain": 3.0})
    assert set(full.add) == {"gpu"}, "a machine without a free CPU is no other one"


def test_a_machine_that_leaves_takes_its_hosts_along_and_no_others() -> None:
    held = {"actor-0": "head", "actor-1": "gone", "actor-2": "gone"}
    assert follow([HEAD], [HEAD], held=held, taken={"head": 1.0}) == Change(remove=("actor-1", "actor-2"))


def test_a_host_stays_where_it_is_when_a_better_machine_joins() -> None:
    held = {f"actor-{number}": "gpu" for number in range(7)}
    change = follow([GPU, PLAIN], [GPU, PLAIN], held=held, taken={"gpu": 1.0})
    assert (Counter(change.add), change.remove) == ({"plain": 3}, ())


def test_a_machine_that_may_not_be_used_has_no_new_host_and_keeps_none_from_others() -> None:
    assert set(follow([HEAD, PLAIN], [HEAD], held={}, taken={}).add) == {"head"}


POOL = [machine(f"m{place}", cpus=place / 2, gpus=place % 2) for place in range(8)]
MACHINES = some.lists(some.sampled_from(POOL), unique=True)


@settings(max_examples=50, deadline=None)
@given(MACHINES, MACHINES)
def test_following_settles_at_once_and_never_asks_more_of_a_machine_than_it_has(
    before: list[Node], after: list[Node]
) -> None:
    held: dict[str, str] = {}
    for nodes in (before, after):
        change = follow(nodes, nodes, held=held, taken={})
        for host in change.remove:
            del held[host]
        held.update({f"{node_id}/{len(held)}/{place}": node_id for place, node_id in enumerate(change.add)})
        rooms = {node.node_id: int(node.cpus + 1e-6) for node in nodes}
        assert all(number <= rooms[node_id] for node_id, number in Counter(held.values()).items())
        assert held or not any(rooms.values())
        assert follow(nodes, nodes, held=held, taken={}) == Change()
