"""Update modes on problems whose answers are known, in float64: rest points, contraction of averages, one learner."""

from __future__ import annotations

import math

import pytest
import torch

from league.agents.learner.algorithms.algorithms import COMPRESSORS, TOPOLOGIES
from league.agents.learner.replicas.compressors import make_compressor
from league.agents.learner.replicas.gossip import PeerCopies
from league.agents.learner.replicas.topologies import make_topology
from tests.agents.learner.replicas.replica_cases import Quadratic, group_of, learn

SLOPES, GOALS, RATE = (1.0, 3.0, 0.2), (1.0, -1.0, 4.0), 0.25
LOCKSTEP = ["all_reduce", "local_sgd", "gossip"]
DILOCO = {"learning_rate": 0.7, "momentum": 0.9}
COMPRESSIONS = [
    "none",
    "bf16",
    "int8",
    "sign",
    {"kind": "top_k", "fraction": 0.1},
    {"kind": "random_k", "fraction": 0.1},
]


def quadratics(size: int = 1) -> list[Quadratic]:
    return [
        Quadratic(torch.zeros(size, dtype=torch.float64), slope, goal)
        for slope, goal in zip(SLOPES, GOALS, strict=True)
    ]


@pytest.mark.parametrize(("outer", "rounds"), [({}, 40), (DILOCO, 330)], ids=["parameter averaging", "diloco"])
def test_local_sgd_rests_where_the_ways_of_the_replicas_add_up_to_nothing(outer, rounds) -> None:
    period = 3
    members = group_of({"kind": "local_sgd", "period": period, "outer": outer}, quadratics())
    values = learn(members, rounds * period, learning_rate=RATE)
    weights = [1.0 - (1.0 - RATE * slope) ** period for slope in SLOPES]
    rest = math.fsum(w * goal for w, goal in zip(weights, GOALS, strict=True)) / math.fsum(weights)
    best = math.fsum(a * goal for a, goal in zip(SLOPES, GOALS, strict=True)) / math.fsum(SLOPES)
    assert values.flatten().tolist() == pytest.approx([rest] * 3, abs=1e-7 if outer else 1e-12)
    assert abs(rest - best) > 0.1  # the drift of the replicas is real


def test_outer_step_has_nesterovs_momentum() -> None:
    members = group_of({"kind": "local_sgd", "period": 1, "outer": DILOCO}, quadratics())
    point, velocity = 0.0, 0.0
    for _ in range(6):
        way = math.fsum(RATE * a * (point - goal) for a, goal in zip(SLOPES, GOALS, strict=True)) / 3
        velocity = 0.9 * velocity + way
        point -= 0.7 * (way + 0.9 * velocity)  # Sutskever et al. 2013, as in torch.optim.SGD
        assert learn(members, 1, learning_rate=RATE).flatten().tolist() == pytest.approx([point] * 3, rel=1e-13)


def spread_after(choice, size: int, rounds: int, *, start: torch.Tensor) -> torch.Tensor:
    """Root of the summed squared distances from the mean, per round, without any gradient."""
    members = group_of(choice, [Quadratic(row.clone()) for row in start])
    for member in members:
        member.mode.load(torch.zeros(start.shape[1], dtype=torch.float64), {})  # what all replicas know of each other
    spreads = [start]
    spreads += [learn(members, 1, learning_rate=1.0) for _ in range(rounds)]
    torch.testing.assert_close(spreads[-1].mean(dim=0), start.mean(dim=0), rtol=0.0, atol=1e-12)
    return torch.stack([(values - values.mean(dim=0)).norm() for values in spreads])


@pytest.mark.parametrize(
    ("topology", "size", "eigenvalue"),
    [
        ("ring", 8, 1 / 3 + 2 / 3 * math.cos(2 * math.pi / 8)),
        ("exponential", 8, 1 / 2),
        ("torus", 16, 0.6),
        ({"kind": "torus", "rows": 2}, 6, 1 / 2),
        ("ring", 2, 0.0),
    ],
    ids=str,
)
def test_gossip_contracts_by_the_second_eigenvalue(topology, size, eigenvalue) -> None:
    start = torch.randn(size, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(size))
    spreads = spread_after({"kind": "gossip", "topology": topology}, size, 40, start=start)
    if eigenvalue:
        assert float((spreads[40] / spreads[20]) ** (1 / 20)) == pytest.approx(eigenvalue, rel=2e-2)
        assert spreads[40] <= eigenvalue**40 * spreads[0] * (1 + 1e-9)
    else:
        assert spreads[1] < 1e-14


def test_one_peer_after_another_gives_the_exact_mean() -> None:
    start = torch.randn(8, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    spreads = spread_after({"kind": "gossip", "topology": "one_peer"}, 8, 3, start=start)
    assert spreads[2] > 0.1 and spreads[3] < 1e-14


@pytest.mark.parametrize("name", list(TOPOLOGIES))
@pytest.mark.parametrize("size", [2, 4, 6, 9, 12])
def test_weights_of_a_topology_add_up_to_one_for_givers_and_takers(name, size) -> None:
    if name == "torus" and size == 2:
        return
    topology = make_topology(name, place="here")
    for number in range(5):
        weights = torch.zeros(size, size, dtype=torch.float64)
        for rank in range(size):
            for peer, weight in topology(rank, size, number).items():
                weights[rank, peer] = weight
        ones = torch.ones(size, dtype=torch.float64)
        torch.testing.assert_close(weights.sum(dim=0), ones)
        torch.testing.assert_close(weights.sum(dim=1), ones)
        assert (weights.diagonal() > 0).all() and (weights >= 0).all()


CONSENSUS = [
    ("bf16", 60, 1e-6),
    ("int8", 60, 1e-6),
    ("sign", 500, 0.5),
    ({"kind": "top_k", "fraction": 0.1}, 600, 1e-6),
    ({"kind": "top_k", "fraction": 0.01}, 1500, 0.02),
    ({"kind": "random_k", "fraction": 0.1}, 600, 0.02),
]


@pytest.mark.parametrize(("compression", "rounds", "left"), CONSENSUS, ids=str)
def test_compressed_gossip_keeps_the_mean_and_reaches_consensus(compression, rounds, left) -> None:
    """As each replica does it, without the way between them, which takes long in a test."""
    size, topology = 4, make_topology("exponential", place="here")
    compressor = make_compressor(compression, place="here")
    values = torch.randn(size, 100, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    mean, spread = values.mean(dim=0), float((values - values.mean(dim=0)).norm())
    copies = [PeerCopies(compressor, step=None) for _ in range(size)]
    for own in copies:
        own.start(torch.zeros(100, dtype=torch.float64))
    for number in range(rounds):
        messages = [own.message(row, number=number) for own, row in zip(copies, values, strict=True)]
        for rank, own in enumerate(copies):
            weights = topology(rank, size, number)
            peers = [rank, *(peer for peer in weights if peer != rank)]
            own.average(values[rank], [(weights[peer], messages[peer]) for peer in peers], number=number)
    torch.testing.assert_close(values.mean(dim=0), mean, rtol=0.0, atol=1e-12)
    assert float((values - mean).norm()) < left * spread


def test_compressed_gossip_between_replicas_is_the_same() -> None:
    start = torch.randn(4, 100, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    choice = {"kind": "gossip", "topology": "ring", "compression": {"kind": "top_k", "fraction": 0.2}}
    spreads = spread_after(choice, 4, 60, start=start)
    assert spreads[-1] < 0.05 * spreads[0]


@pytest.mark.parametrize("compression", [*COMPRESSIONS], ids=str)
def test_what_a_message_leaves_out_is_made_up_for(compression) -> None:
    """The sum of all steps is the sum of all gradients, but for what is still owed."""
    size, steps = 64, 60
    members = group_of({"kind": "all_reduce", "compression": compression}, quadratics(size)[:2])
    for member in members:
        member.vector.slope = 0.0
    gradient = torch.randn(2, size, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    for rank, member in enumerate(members):
        member.vector.goal, member.vector.slope = torch.zeros(size, dtype=torch.float64), 1.0
        member.vector.compute = lambda member=member, rank=rank: _constant(member.vector, gradient[rank])  # type: ignore[method-assign]
    values = learn(members, steps, learning_rate=1.0)
    assert torch.equal(values[0], values[1])
    left_out = [member.mode.save().get("residual", torch.zeros(size)) for member in members]
    sent = -2.0 * values[0] + left_out[0] + left_out[1]  # a step is the sum over 2 decisions
    torch.testing.assert_close(sent, steps * gradient.sum(dim=0), rtol=1e-9, atol=1e-9)
    assert max(float(residual.abs().max()) for residual in left_out) < 0.7 * steps * float(gradient.abs().max())


def _constant(vector: Quadratic, gradient: torch.Tensor) -> torch.Tensor:
    sums = Quadratic.compute(vector)
    vector.gradients = gradient.clone()
    return sums


EXACT = [
    "all_reduce",
    {"kind": "local_sgd", "period": 1},
    {"kind": "gossip", "topology": "ring"},
    {"kind": "gossip", "topology": "exponential"},
    {"kind": "gossip", "topology": "one_peer"},
]


@pytest.mark.parametrize("choice", EXACT, ids=str)
def test_two_replicas_that_agree_after_every_step_are_one_learner(choice) -> None:
    slopes, goals, counts = (1.0, 2.0), (3.0, -1.0), (2.0, 6.0)
    vectors = [
        Quadratic(torch.zeros(2, dtype=torch.float64), slope, goal, count)
        for slope, goal, count in zip(slopes, goals, counts, strict=True)
    ]
    members = group_of(choice, vectors)
    single = torch.zeros(2, dtype=torch.float64)
    for _ in range(7):
        gradient = sum(n * a * (single - goal) for a, goal, n in zip(slopes, goals, counts, strict=True))
        single = single - RATE * gradient / sum(counts)
        values = learn(members, 1, learning_rate=RATE)
        torch.testing.assert_close(values, single.expand(2, 2), rtol=1e-12, atol=1e-14)
    assert members[0].results[-1].stats.steps == members[1].results[-1].stats.steps == 8.0


@pytest.mark.parametrize("name", LOCKSTEP)
def test_a_replica_that_is_not_finite_is_left_out_and_counted(name) -> None:
    choice = {"kind": name, "compression": "bf16"} if name == "all_reduce" else name
    members = group_of(choice, quadratics())
    learn(members, 2, learning_rate=RATE)
    members[1].vector.goal = math.nan
    values = learn(members, 9, learning_rate=RATE)
    assert bool(torch.isfinite(values).all())
    assert [member.results[-1].skipped for member in members] == [1, 1, 1]
    assert [member.results[-1].stats.steps for member in members] == [2.0, 2.0, 2.0]
    assert all(math.isfinite(member.results[-1].norm) for member in members)
    for member in members:
        member.vector.goal = math.nan
    before = torch.stack([member.mode.publish(member.vector.values).clone() for member in members])
    kept = learn(members, 1, learning_rate=RATE)
    assert [math.isnan(member.results[-1].norm) for member in members] == [True] * 3
    assert torch.equal(values, kept)
    after = torch.stack([member.mode.publish(member.vector.values) for member in members])
    assert torch.equal(before, after)


def test_outer_point_and_momentum_continue_from_where_they_were_saved() -> None:
    choice = {"kind": "local_sgd", "period": 3, "outer": DILOCO, "compression": {"kind": "top_k", "fraction": 0.5}}
    through = group_of(choice, quadratics(4))
    learn(through, 6, learning_rate=RATE)
    saved = [member.mode.save() for member in through]
    resumed = group_of(choice, quadratics(4))
    for member, source, entries in zip(resumed, through, saved, strict=True):
        member.vector.values.copy_(source.vector.values)
        member.mode.load(member.vector.values, entries)
    assert {"outer_point", "outer_momentum", "inner_steps", "residual", "messages"} == set(saved[0])
    assert torch.equal(saved[0]["outer_point"], through[1].vector.values)  # all agree just then
    assert torch.equal(learn(resumed, 7, learning_rate=RATE), learn(through, 7, learning_rate=RATE))


def test_gradient_is_clipped_by_the_norm_of_what_is_stepped() -> None:
    vectors = [Quadratic(torch.zeros(1, dtype=torch.float64), 1.0, goal, max_norm=1.0) for goal in (100.0, 0.5)]
    values = learn(group_of({"kind": "local_sgd", "period": 9}, vectors), 1, learning_rate=0.1)
    assert values.flatten().tolist() == pytest.approx([0.1, 0.05])  # the second is not clipped by the first


@pytest.mark.parametrize("name", list(COMPRESSORS))
def test_a_message_is_smaller_and_says_what_the_formula_says(name) -> None:
    size = 1000
    vector = torch.randn(size, generator=torch.Generator().manual_seed(2))
    compressor = make_compressor(name, place="here")
    message = compressor.encode(vector, number=4)
    decoded = compressor.decode(message, number=4, like=vector)
    num_bytes = {
        "bf16": 2 * size,
        "int8": size + 4 * 4,
        "sign": 125 + 4,
        "top_k": 8 * 10,
        "random_k": 4 * 10,
    }[name]
    assert message.nbytes == num_bytes and message.dtype == torch.uint8
    assert decoded.shape == vector.shape and decoded.dtype == vector.dtype
    assert (vector - decoded).norm() < vector.norm()
    assert torch.equal(
        compressor.decode(compressor.encode(decoded, number=4), number=4, like=vector) != 0, decoded != 0
    )
