"""Both learner hosts do what their protocol says."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch

from league.agents.learner.config import LearnerConfig
from league.agents.learner.evolution.noise_table import noise_table
from league.agents.restart_state import ema_in
from league.agents.unroll.codec import ChunkError, ChunkHeader, Lz4Codec
from league.agents.unroll.episodes import SeatEpisodes
from league.core.state.records import Hyperparameter
from league.hosts.learners.async_learner_host import AsyncLearnerHost
from league.hosts.learners.learner_host import LearnerHost, UnknownPlayer
from league.hosts.learners.sync_learner_host import SyncLearnerHost
from league.hosts.protocol import InstallPlayer
from league.hosts.setup import HostSetup
from tests.league.hosts.host_cases import chunk_of, setup_of, weights_of

DEADLINE_S = 20.0
PLAYER = "main-0"
SETUP = setup_of()
Make = Callable[[HostSetup], LearnerHost]


def synchronous(setup: HostSetup) -> LearnerHost:
    return SyncLearnerHost(setup, dtype=torch.float32)


def asynchronous(setup: HostSetup) -> LearnerHost:
    made = AsyncLearnerHost(setup, dtype=torch.float32, patience_s=DEADLINE_S)
    made.start()
    return made


@pytest.fixture(params=[synchronous, asynchronous])
def make(request: pytest.FixtureRequest) -> Iterator[Make]:
    made: list[LearnerHost] = []

    def start(setup: HostSetup) -> LearnerHost:
        made.append(request.param(setup))
        return made[-1]

    yield start
    for host in made:
        host.close()
        host.close()


@pytest.fixture
def host(make: Make) -> LearnerHost:
    """With one new player."""
    made = make(SETUP)
    made.install(InstallPlayer(PLAYER))
    return made


def reached(host: LearnerHost, version: int, player: str = PLAYER) -> None:
    """Wait for a version; one that is passed is a failure."""
    end = time.monotonic() + DEADLINE_S
    while host.newest(player).progress.version < version:
        assert time.monotonic() < end, f"version {version} did not come"
        time.sleep(0.001)
    assert host.newest(player).progress.version == version


def test_every_whole_batch_makes_a_version_and_a_rest_waits(host: LearnerHost) -> None:
    assert host.newest(PLAYER).update is None
    for seed in range(5):
        host.push(PLAYER, chunk_of(6, seed=seed))
    reached(host, 3)
    (report,) = host.progress()
    assert (report.progress, report.skipped, report.refused) == (host.newest(PLAYER).progress, 0, 0)
    assert report.update is not None and report.update == host.newest(PLAYER).update
    assert report.progress.trained_steps > 0


def test_weights_are_the_same_object_until_the_version_changes(host: LearnerHost) -> None:
    first = host.newest(PLAYER).weights
    assert host.push(PLAYER, chunk_of(6)) is first is host.newest(PLAYER).weights
    host.push(PLAYER, chunk_of(2, seed=1))
    reached(host, 1)
    second = host.newest(PLAYER).weights
    assert second is host.newest(PLAYER).weights and (second.version, first.version) == (1, 0)


@pytest.mark.parametrize("fraction", [0.0, 0.25, 1.0])
def test_schedules_read_the_newest_budget_fraction(host: LearnerHost, fraction: float) -> None:
    host.budget_fraction = 0.75
    host.push(PLAYER, chunk_of())
    reached(host, 1)
    host.budget_fraction = fraction
    host.push(PLAYER, chunk_of(seed=1))
    reached(host, 2)
    update = host.newest(PLAYER).update
    assert update is not None
    assert update.learning_rate == SETUP.learner.learning_rate_at(fraction)
    assert update.entropy_cost == SETUP.learner.entropy_cost_at(fraction)


def test_a_reset_takes_a_new_version_and_drops_the_rows_of_the_past_self(host: LearnerHost) -> None:
    host.push(PLAYER, chunk_of())
    reached(host, 1)
    host.push(PLAYER, chunk_of(6, seed=1, version=1))
    steps, fresh = host.newest(PLAYER).progress.trained_steps, weights_of(SETUP, seed=41)
    host.reset(PLAYER, fresh)
    after = host.newest(PLAYER)
    assert (after.weights.version, after.progress.version, after.progress.trained_steps) == (2, 2, steps)
    assert after.weights.digest() == fresh.digest()
    for seed in range(3):
        assert host.push(PLAYER, chunk_of(seed=seed, version=1)).version == 2, "of the past self: dropped"
    host.push(PLAYER, chunk_of(version=2))
    reached(host, 3)


def test_the_average_of_a_players_weights_follows_its_updates(host: LearnerHost) -> None:
    host.push(PLAYER, chunk_of())
    reached(host, 1)
    average, newest = ema_in(host.checkpoint(PLAYER).saved), host.newest(PLAYER).weights
    assert average is not None
    assert np.array_equal(average, newest.vector), "the first weights are replaced whole"


def test_a_player_installed_from_its_checkpoint_learns_on_exactly(make: Make, host: LearnerHost) -> None:
    host.push(PLAYER, chunk_of())
    reached(host, 1)
    taken = host.checkpoint(PLAYER)
    assert taken.progress == host.newest(PLAYER).progress and taken.progress.trained_steps > 0
    again = make(SETUP)
    again.install(InstallPlayer(PLAYER, saved=taken.saved))
    assert again.newest(PLAYER).progress == taken.progress
    for each in (host, again):
        each.push(PLAYER, chunk_of(seed=1, version=1))
        reached(each, 2)
    assert again.newest(PLAYER).weights.digest() == host.newest(PLAYER).weights.digest()
    assert again.newest(PLAYER).progress == host.newest(PLAYER).progress


def test_a_player_installed_from_weights_starts_with_them_their_version_and_its_steps(make: Make) -> None:
    host, weights = make(SETUP), weights_of(SETUP, seed=8, version=12)
    host.install(InstallPlayer(PLAYER, weights=weights, trained_steps=900))
    newest = host.newest(PLAYER)
    assert newest.weights.digest() == weights.digest()
    assert (newest.weights.version, newest.progress.version, newest.progress.trained_steps) == (12, 12, 900)


def test_a_player_is_installed_in_the_place_of_its_old_self(host: LearnerHost) -> None:
    host.push(PLAYER, chunk_of())
    reached(host, 1)
    host.push(PLAYER, chunk_of(6, seed=1))
    host.install(InstallPlayer(PLAYER))
    host.push(PLAYER, chunk_of(6))
    assert [report.progress.version for report in host.progress()] == [0], "six rows are no batch"


def test_two_players_learn_apart(host: LearnerHost) -> None:
    host.install(InstallPlayer("other"))
    for seed in range(4):
        for player in (PLAYER, "other"):
            host.push(player, chunk_of(seed=seed, player=player))
    for player in (PLAYER, "other"):
        reached(host, 4, player)
    assert [report.progress.player for report in host.progress()] == [PLAYER, "other"]
    assert host.newest(PLAYER).weights.digest() != host.newest("other").weights.digest()


def test_tuned_hyperparameters_reach_the_learner(host: LearnerHost) -> None:
    host.install(InstallPlayer("tuned", hyperparameters=(Hyperparameter("learning_rate", 0.5),)))
    for player in (PLAYER, "tuned"):
        host.push(player, chunk_of(player=player))
        reached(host, 1, player)
    plain, tuned = (host.newest(player).update for player in (PLAYER, "tuned"))
    assert plain is not None and tuned is not None
    assert tuned.learning_rate == pytest.approx(0.5 * plain.learning_rate)


def test_chunks_of_another_run_or_player_and_damaged_ones_are_refused(make: Make, host: LearnerHost) -> None:
    with pytest.raises(ChunkError, match="a chunk of tests/other came to tests/main-0"):
        host.push(PLAYER, chunk_of(player="other"))
    with pytest.raises(ChunkError, match="checksum"):
        host.push(PLAYER, chunk_of()[:-1] + b"?")
    elsewhere = make(dataclasses.replace(SETUP, run="elsewhere"))
    elsewhere.install(InstallPlayer(PLAYER))
    with pytest.raises(ChunkError, match="came to elsewhere/main-0"):
        elsewhere.push(PLAYER, chunk_of())


def test_episodes_of_a_host_with_another_table_of_noise_are_refused_before_the_first_step() -> None:
    learner = LearnerConfig(algorithm={"kind": "es", "evaluations": 4}, max_policy_lag=0, batch_rows=4)
    host = synchronous(dataclasses.replace(SETUP, learner=learner))
    host.install(InstallPlayer(PLAYER))
    ones, own = np.ones(4, np.int32), noise_table(SETUP.seed).checksum
    episodes = SeatEpisodes(
        perturbations=np.array([1, -1, 2, -2], np.int32),
        returns=np.arange(4, dtype=np.float32),
        decisions=ones,
        versions=0 * ones,
    )
    header = ChunkHeader(run="tests", player=PLAYER, version_min=0, version_max=0, noise=own ^ 1)
    with pytest.raises(ChunkError, match=f"checksum {own ^ 1:x}, the learner's {own:x}"):
        host.push(PLAYER, Lz4Codec().encode(episodes, header))
    assert host.newest(PLAYER).weights.version == 0
    host.push(PLAYER, Lz4Codec().encode(episodes, dataclasses.replace(header, noise=own)))
    assert host.newest(PLAYER).weights.version == 1
    host.close()


def test_a_player_that_is_not_held_is_named(host: LearnerHost) -> None:
    calls: list[Callable[[], object]] = [
        lambda: host.push("nobody", chunk_of(player="nobody")),
        lambda: host.newest("nobody"),
        lambda: host.reset("nobody", weights_of(SETUP, seed=1)),
        lambda: host.checkpoint("nobody"),
    ]
    for call in calls:
        with pytest.raises(UnknownPlayer, match="nobody"):
            call()
