"""Weights in the object store: stored once, bounded in bytes, and given up in the order in which they were used."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import ray

from league.agents.learner.evolution.noise_table import NoiseTable
from league.agents.learner.evolution.published import EvolvedWeights, WeightsFollower, WeightSteps
from league.agents.learner.evolution.step import EvolutionState, EvolutionStep
from league.agents.weights import Layout, Weights
from league.hosts.on_ray.frozen_objects import INLINE_BYTES, FrozenObjects, NewestAnswer, NewestObjects
from league.hosts.on_ray.host_processes import LeaseUnplayable, RemoteClient, frozen_weights
from tests.league.hosts.host_cases import setup_of, weights_of


class Stored:
    """A reference, which tells that it was given up by being collected."""

    def __init__(self, weights: Weights) -> None:
        self.weights = weights


def test_weights_are_stored_once_and_no_more_of_them_are_held_than_there_is_room_for() -> None:
    setup = setup_of()
    everything = [weights_of(setup, seed=seed) for seed in range(6)]
    size = everything[0].vector.nbytes
    stored: list[int] = []

    def put(weights: Weights) -> Stored:
        stored.append(id(weights))
        return Stored(weights)

    objects = FrozenObjects(put, max_bytes=3 * size + 1)
    for seed in (0, 1, 2, 0, 3, 4):
        name = f"main-0-s{seed}"
        (found,) = objects.references(["main-0", name], {name: everything[seed]}).values()
        assert found.weights is everything[seed]
        assert objects.bytes <= 3 * size
        assert len(objects) <= 3
    assert len(stored) == 5
    assert [name for name in ("main-0-s0", "main-0-s1") if name in objects] == ["main-0-s0"]
    (held,) = objects.references(["main-0-s0"], {}).values()
    assert held.weights is everything[0]
    assert len(stored) == 5, "used last but two, and there is room for three"
    objects.references(["main-0-s1"], {"main-0-s1": everything[1]})
    assert len(stored) == 6


def test_weights_larger_than_the_room_are_held_alone() -> None:
    weights = weights_of(setup_of(), seed=0)
    objects = FrozenObjects(Stored, max_bytes=1)
    first = objects.references(["a"], {"a": weights})
    assert objects.references(["a"], {"a": weights}) == first
    both = objects.references(["b", "a"], {"b": weights})
    assert (both.keys(), both["a"]) == ({"a", "b"}, first["a"]), "a held one is not given up for a new one of its lease"
    assert len(objects) == 1


def weights_of_bytes(num_bytes: int, *, version: int) -> Weights:
    """Weights of one layer of that size."""
    return replace(weights_of(setup_of(), seed=0), vector=np.zeros(num_bytes // 4, np.float32), version=version)


def test_large_newest_weights_are_put_once_whoever_asks() -> None:
    put: list[Weights] = []

    def store(weights: Weights) -> str:
        put.append(weights)
        return f"object {len(put)}"

    newest = NewestObjects(store)
    one, two = (weights_of_bytes(INLINE_BYTES, version=version) for version in (1, 2))
    first = NewestAnswer(1, reference="object 1")
    assert [newest.answer("main-0", one, have=have) for have in (-1, 0, 1)] == [first, first, None]
    assert newest.answer("other", one, have=0) == NewestAnswer(2, reference="object 2")
    assert [newest.answer("main-0", two, have=1) for _ in range(3)] == [NewestAnswer(3, reference="object 3")] * 3
    assert put == [one, one, two]


def test_small_newest_weights_come_with_the_answer() -> None:
    newest = NewestObjects(pytest.fail)
    small = weights_of_bytes(INLINE_BYTES // 2, version=7)
    assert newest.answer("main-0", small, have=0) == NewestAnswer(1, small)
    assert newest.answer("main-0", small, have=1) is None


@pytest.mark.parametrize("num_bytes", [INLINE_BYTES // 2, INLINE_BYTES])
def test_weights_of_a_donor_that_has_made_as_many_updates_are_new_ones(num_bytes: int) -> None:
    newest = NewestObjects(lambda weights: weights)
    before, after = (weights_of_bytes(num_bytes, version=7) for _ in range(2))
    held = newest.answer("main-0", before, have=-1)
    assert held is not None
    answer = newest.answer("main-0", after, have=held.serial)
    assert answer is not None and after in (answer.weights, answer.reference)


class Learner:
    """A learner host without Ray: its calls are answered at once."""

    def __init__(self, weights: Weights) -> None:
        self.newest = weights
        self.push = self.weights = SimpleNamespace(remote=self._answer)
        self._objects = NewestObjects(lambda weights: weights)

    def _answer(self, player: str, *chunk: bytes, have: int, sender: str = "") -> NewestAnswer | None:
        return self._objects.answer(player, self.newest, have=have)


def test_an_actor_host_takes_up_a_transplant_and_nothing_older_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray, "get", lambda reference, timeout: reference)
    old, new = (weights_of_bytes(INLINE_BYTES // 2, version=7) for _ in range(2))
    learner = Learner(old)
    client = RemoteClient({"main-0": learner}, push_s=1.0)
    assert client.push("main-0", b"") is None, "it is on its way"
    learner.newest = new
    assert client.weights("main-0") is new
    assert client.push("main-0", b"") is None, "the answer to the first one was overtaken"
    assert client.weights("main-0") is new


@pytest.mark.parametrize(
    "error", [ray.exceptions.GetTimeoutError("late"), ray.exceptions.ObjectLostError("x", "y", "z")]
)
def test_weights_that_do_not_come_cost_the_lease_and_not_the_host(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def get(references: list[object], *, timeout: float) -> list[object]:
        raise error

    monkeypatch.setattr(ray, "get", get)
    with pytest.raises(LeaseUnplayable, match="weights of main-0-s3 did not come"):
        frozen_weights({"main-0-s3": object()}, timeout_s=1.0)


def test_weights_of_an_evolution_strategy_come_as_steps_to_whoever_has_the_ones_before() -> None:
    noise, layout = NoiseTable(1, size=1_000), Layout(("w",), ((100,),))
    state, steps, objects = EvolutionState.of(np.ones(100, np.float32)), list[EvolutionStep](), NewestObjects(None)  # type: ignore[arg-type]
    follower, have = WeightsFollower(noise), -1
    for version in range(4):
        moments = np.stack([state.first, state.second])
        newest = EvolvedWeights(state.values, layout, version, moments, tuple(steps))
        answer = objects.answer("p", newest, have=have)
        assert answer is not None and isinstance(answer.weights, WeightSteps) == (version > 0)
        assert follower.follow(answer.weights).vector.tobytes() == state.values.tobytes()  # type: ignore[arg-type]
        assert objects.answer("p", newest, have=answer.serial) is None
        stranger = objects.answer("p", newest, have=999)
        assert stranger is not None and isinstance(stranger.weights, EvolvedWeights)
        have = answer.serial
        indices, weights = np.array([7, 300], np.int32), np.array([0.5, -0.25], np.float32)
        steps.append(EvolutionStep(version + 1, 0.01, 0.005, indices, weights))
        state = state.after(steps[-1], noise)
