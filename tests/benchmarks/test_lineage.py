"""Parts of the lineage's benchmark with known answers: simulated actor hosts, and the games that judge peers."""

from __future__ import annotations

import time

import numpy as np
import pytest

from benchmarks.lineage.actor_hosts import SIMULATED_CHUNKS, Costs, simulated_in
from benchmarks.lineage.judged_games import JudgedGames


def test_hosts_wait_for_each_other_as_queues_do() -> None:
    costs = Costs(actor_s=4.0, learner_s=1.0, replay_s=0.5, decisions=10.0)
    near = pytest.approx
    assert simulated_in(costs, 1) == near(10.0 / 5.5, rel=10 / SIMULATED_CHUNKS), "one after the other"
    assert simulated_in(costs, 2) == near(2 * 10.0 / 5.5, rel=10 / SIMULATED_CHUNKS), "both find the others idle"
    assert simulated_in(costs, 50) == near(10.0, rel=10 / SIMULATED_CHUNKS), "the learner takes one a second"


def test_the_clock_of_a_peer_stands_still_while_it_is_judged() -> None:
    games = JudgedGames("CartPole-v1", core_s=0.0)
    looked = []

    def push_left(seen: np.ndarray) -> np.ndarray:
        looked.append(len(seen))
        began = time.process_time()
        while time.process_time() - began < 0.01:
            pass
        return np.zeros(len(seen), np.int64)

    assert games.is_over(push_left)
    used_s = games.used_s
    assert set(looked) == {20} and 8.0 <= games.score <= 11.0 and games.reached_s is None
    assert JudgedGames("CartPole-v1", core_s=1e9).is_over(push_left) is False
    games.is_over(push_left)
    assert games.used_s - used_s < 0.05, "the judgement itself is not counted"
