"""Evolution strategies on problems whose answers are known: the published update, a sphere, hosts that agree."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from league.agents.learner.algorithms.algorithms import UPDATERS
from league.agents.learner.algorithms.evolution_config import ESConfig
from league.agents.learner.algorithms.objective import LossWeights
from league.agents.learner.config import EVOLUTION, LearnerConfig
from league.agents.learner.evolution import noise_table as tables
from league.agents.learner.evolution.es_updater import ESUpdater, centred_ranks
from league.agents.learner.evolution.evolution_updater import Evolving, make_evolving
from league.agents.learner.evolution.noise_table import NoiseTable
from league.agents.learner.evolution.published import CandidateWeights, EvolvedWeights, WeightsFollower, WeightSteps
from league.agents.learner.learner import Learner
from league.agents.learner.step.updater import UpdateInputs
from league.agents.unroll.episodes import SeatEpisodes
from league.agents.weights import Layout, Weights
from tests.oracles.evolution_strategies import Adam, compute_centered_ranks, es_update

SIZE = 40
SIGMA = 0.1
TABLE = NoiseTable(3, size=4096)


@pytest.fixture(autouse=True)
def _small_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("league.agents.learner.evolution.es_updater.noise_table", lambda seed: TABLE)


def es_config(kind: str = "es", **options: Any) -> LearnerConfig:
    rates = {"learning_rate": 0.03, "learning_rate_end": 5e-4}
    return LearnerConfig(algorithm={"kind": kind, **options}, max_policy_lag=0, batch_rows=4, **rates)


def es_updater(values: NDArray[np.float32], **options: Any) -> ESUpdater:
    return ESUpdater(values, es_config(), seed=3, options=ESConfig(**options))


def inputs_of(version: int, *, learning_rate: float = 0.05) -> UpdateInputs:
    return UpdateInputs(learning_rate, LossWeights(0.0, 1.0), version, 1)


def episodes_of(numbers: Any, returns: Any, *, version: int, decisions: int = 2) -> SeatEpisodes:
    count = len(numbers)
    return SeatEpisodes(
        perturbations=np.array(numbers, np.int32),
        returns=np.array(returns, np.float32),
        decisions=np.full(count, decisions, np.int32),
        versions=np.full(count, version, np.int32),
    )


def mirrored(indices: NDArray[np.int64], returns: NDArray[np.float64], *, version: int) -> SeatEpisodes:
    """Episodes of pairs [n] with returns [n, 2]: first all perturbations, then their opposites, last ones first."""
    numbers = np.concatenate([indices + 1, -(indices + 1)[::-1]])
    return episodes_of(numbers, np.concatenate([returns[:, 0], returns[::-1, 1]]), version=version)


def test_three_updates_equal_the_published_ones() -> None:
    rng = np.random.default_rng(0)
    values = rng.standard_normal(SIZE).astype(np.float32)
    updater, published = es_updater(values, evaluations=12), Adam(values.tolist(), 0.05)
    for version in range(3):
        indices = np.sort(TABLE.draw(rng, 6, size=SIZE))
        returns = rng.standard_normal((6, 2))
        result = updater.update([mirrored(indices, returns, version=version)], inputs_of(version))
        assert result.optimizer_steps == 1 and result.stats.steps == 24
        noise = [TABLE.get(int(index), SIZE).tolist() for index in indices]
        es_update(published, noise, [(a, b) for a, b in returns.tolist()], l2coeff=0.005)
        np.testing.assert_allclose(updater.weights(), published.theta, rtol=2e-5, atol=2e-6)
    assert np.abs(updater.weights() - values).max() > 0.05


def test_ranks_are_those_published_and_equal_returns_share_theirs() -> None:
    returns = np.random.default_rng(1).standard_normal(9)
    np.testing.assert_allclose(centred_ranks(returns), compute_centered_ranks(returns.tolist()), atol=1e-7)
    tied = centred_ranks(np.array([[1.0, 0.0], [1.0, 1.0]]))
    np.testing.assert_allclose(tied, [[1 / 6, -0.5], [1 / 6, 1 / 6]], atol=1e-7)
    assert not centred_ranks(np.ones(6)).any()


def solve_sphere(kind: str, *, updates: int, **options: Any) -> float:
    """Distance from the best point after some updates, of weights that start at a distance of 1."""
    rng = np.random.default_rng(5)
    best = rng.standard_normal(SIZE)
    values = (best - np.ones(SIZE) / np.sqrt(SIZE)).astype(np.float32)
    layout = Layout(("w",), ((SIZE,),))
    config = es_config(kind, **options)
    learner = Learner(make_evolving(values, config, seed=3), layout, config)
    for update in range(updates):
        weights = learner.publish()
        if isinstance(weights, CandidateWeights):
            played, numbers = weights.candidates, np.arange(1, len(weights.candidates) + 1)
        else:
            indices = rng.choice(4096 - SIZE, size=20, replace=False)
            numbers = np.concatenate([indices + 1, -(indices + 1)])
            noise = np.stack([np.sign(n) * TABLE.get(abs(int(n)) - 1, SIZE) for n in numbers])
            played = weights.vector + SIGMA * noise
        returns = -np.square(played - best).sum(axis=1)
        learner.update(episodes_of(numbers, returns, version=weights.version), budget_fraction=update / updates)
    assert learner.version == updates and learner.trained_steps == updates * 2 * len(numbers)
    return float(np.linalg.norm(learner.publish().vector - best))


def test_a_sphere_is_solved() -> None:
    assert solve_sphere("es", updates=250, evaluations=40, weight_decay=0.0) < 0.1


def test_cmaes_solves_a_sphere() -> None:
    pytest.importorskip("cmaes")
    assert solve_sphere("cmaes", updates=300, sigma=0.1) < 0.01


def test_hosts_that_follow_the_steps_have_the_same_bits() -> None:
    rng = np.random.default_rng(2)
    values = rng.standard_normal(SIZE).astype(np.float32)
    layout, config = Layout(("w",), ((SIZE,),)), es_config(evaluations=4)
    learner = Learner(make_evolving(values, config, seed=3), layout, config)
    follower, late = WeightsFollower(TABLE), WeightsFollower(TABLE)
    for version in range(12):
        published = learner.publish()
        assert isinstance(published, EvolvedWeights) and published.version == version
        sent = pickle.loads(pickle.dumps(published.since(version - 1)))  # to another process
        assert isinstance(sent, WeightSteps) == (version > 0)
        assert follower.follow(sent).vector.tobytes() == published.vector.tobytes()
        if version % 3 == 0:  # a host that missed two versions
            assert late.follow(published.since(version - 3)).vector.tobytes() == published.vector.tobytes()
        indices, returns = TABLE.draw(rng, 2, size=SIZE), rng.standard_normal((2, 2))
        learner.update(mirrored(indices, returns, version=version), budget_fraction=0.0)
    ahead = learner.publish()
    assert isinstance(ahead, EvolvedWeights) and isinstance(ahead.since(0), EvolvedWeights)  # too far behind


def test_steps_longer_than_the_weights_are_not_sent() -> None:
    updater = es_updater(np.zeros(SIZE, np.float32), evaluations=100)
    indices = np.arange(50)
    updater.update([mirrored(indices, np.random.default_rng(0).random((50, 2)), version=0)], inputs_of(0))
    published = updater.published(Weights(updater.weights(), Layout(("w",), ((SIZE,),)), 1))
    assert SIZE * 4 < 50 * 8 and isinstance(published.since(0), EvolvedWeights)


def test_late_episodes_copies_and_lone_ones_are_not_learnt_from() -> None:
    updater = es_updater(np.zeros(SIZE, np.float32), evaluations=4)
    half = episodes_of([5, 5, -9], [1.0, 7.0, 2.0], version=0)  # a copy of one, and one of another pair
    assert updater.update([half], inputs_of(0)).optimizer_steps == 0
    assert updater.update([episodes_of([-5], [0.0], version=0)], inputs_of(0)).optimizer_steps == 0
    assert updater.update([episodes_of([-5, 5], [9.0, 9.0], version=0)], inputs_of(0)).optimizer_steps == 0
    result = updater.update([episodes_of([3, -3, 20], [0.0, 1.0, 0.0], version=0)], inputs_of(0))
    assert result.optimizer_steps == 1 and result.stats.steps == 8 and updater.late_episodes == 0
    late = episodes_of([9, 4], [1.0, 1.0], version=0)
    assert updater.update([late], inputs_of(1)).optimizer_steps == 0
    assert updater.late_episodes == 4  # two late ones, and two whose opposite never came


def test_the_settings_know_every_registered_updater() -> None:
    assert set(UPDATERS) == set(EVOLUTION) and all(es_config(kind).evolves for kind in UPDATERS)


@pytest.mark.parametrize("kind", list(UPDATERS))
def test_a_registered_updater_conforms(kind: str) -> None:
    if kind == "cmaes":
        pytest.importorskip("cmaes")
    values = np.random.default_rng(0).standard_normal(SIZE).astype(np.float32)
    updater = make_evolving(values, es_config(kind), seed=3)
    assert isinstance(updater, Evolving)
    np.testing.assert_allclose(updater.weights(), values)
    again = make_evolving(np.zeros_like(values), es_config(kind), seed=3)
    again.load(updater.save())
    layout = Layout(("w",), ((SIZE,),))
    one, other = (each.published(Weights(each.weights(), layout, 0)) for each in (updater, again))
    assert one.vector.tobytes() == other.vector.tobytes() and type(one) is type(other)
    if isinstance(one, CandidateWeights) and isinstance(other, CandidateWeights):
        assert np.array_equal(one.candidates, other.candidates)
    with pytest.raises(ValueError, match="saved for 3 parameters"):
        updater.load({"values": np.zeros(3, np.float32)})
    updater.close()


def test_a_resumed_learner_takes_the_same_steps() -> None:
    rng, values = np.random.default_rng(4), np.ones(SIZE, np.float32)
    whole, first = (es_updater(values, evaluations=4) for _ in range(2))
    for version in range(4):
        if version == 2:
            saved = first.save()
            first = es_updater(np.zeros(SIZE, np.float32), evaluations=4)
            first.load(saved)
        rows = mirrored(TABLE.draw(rng, 2, size=SIZE), rng.random((2, 2)), version=version)
        for updater in (whole, first):
            assert updater.update([rows], inputs_of(version)).optimizer_steps == 1
    assert whole.weights().tobytes() == first.weights().tobytes()


def test_tables_of_one_seed_are_equal_and_their_checksum_tells() -> None:
    assert NoiseTable(3, size=4096).checksum == TABLE.checksum != NoiseTable(4, size=4096).checksum
    numbers = NoiseTable(3, size=1 << 16).get(0, 1 << 16)
    assert abs(numbers.mean()) < 0.02 and abs(numbers.std() - 1) < 0.02
    with pytest.raises(ValueError, match="the network has 5000 weights and the table of noise 4096 numbers"):
        TABLE.draw(np.random.default_rng(0), 1, size=5000)
    assert tables.noise_table(1) is tables.noise_table(1)


def test_the_cap_follows_the_mean_to_hosts_and_through_a_checkpoint() -> None:
    values, layout = np.zeros(SIZE, np.float32), Layout(("w",), ((SIZE,),))
    updater, follower = es_updater(values, evaluations=4, episode_cap=1.5), WeightsFollower(TABLE)
    assert updater.published(Weights(values, layout, 0)).cap == 0, "nothing is known before the first update"
    follower.follow(updater.published(Weights(values, layout, 0)))
    updater.update([episodes_of([1, -1, 2, -2], [1, 2, 3, 4], version=0, decisions=7)], inputs_of(0))
    published = updater.published(Weights(updater.weights(), layout, 1))
    assert published.cap == 11, "ceil(1.5 * 7)"
    assert follower.follow(WeightSteps(0, published.steps)).cap == 11
    again = es_updater(values, evaluations=4, episode_cap=1.5)
    again.load(updater.save())
    assert again.published(Weights(again.weights(), layout, 1)).cap == 11
