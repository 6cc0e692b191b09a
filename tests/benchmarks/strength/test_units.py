"""Games in other units play as before, and show and pay what their units say."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.strength.units.__main__ import MODULE, VARIANTS
from benchmarks.strength.units.odd_units import kuhn, one_seat
from league.envs.facts.random_play import RandomPlay
from league.envs.protocol import EnvConfig
from league.policies.exact.behaviours import uniform
from league.policies.exact.exploitability import nash_conv


def test_observed_numbers_and_rewards_are_moved_and_nothing_else() -> None:
    plain, moved = one_seat("CartPole-v1"), one_seat("CartPole-v1", factor=0.01, offset=100.0, reward_factor=5.0)
    seen, other = plain.reset(seed=3)[0], moved.reset(seed=3)[0]
    for _ in range(5):
        np.testing.assert_allclose(other, 0.01 * seen + 100.0, rtol=1e-6)
        seen, reward, ended, *_ = plain.step(1)
        other, other_reward, other_ended, *_ = moved.step(1)
        assert (other_reward, other_ended) == (5.0 * float(reward), ended)


@pytest.mark.parametrize(("factor", "offset"), [(0.001, 0.0), (1000.0, 0.0), (1.0, 100.0)])
def test_returns_are_moved_for_every_seat(factor: float, offset: float) -> None:
    plain, moved = kuhn(), kuhn(factor, offset)
    for game in (plain, moved):
        game.reset(seed=1)
    won: list[dict[str, float]] = [{}, {}]
    while plain.agents:
        for game, found in zip((plain, moved), won, strict=True):
            seen, reward, ended, _, _ = game.last()
            found[game.agent_selection] = reward
            game.step(None if ended else int(np.flatnonzero(seen["action_mask"])[-1]))
    assert len(won[0]) == 2
    for seat, reward in won[0].items():
        assert won[1][seat] == pytest.approx(factor * reward + offset)


def test_the_exploitability_is_that_of_the_game_times_the_factor() -> None:
    found = {name: VARIANTS[name] for name in ("kuhn", "kuhn, returns in thousands", "kuhn, returns plus 100")}
    for variant in found.values():
        value = nash_conv(EnvConfig(f"{MODULE}:kuhn", dict(variant.kwargs)), uniform)
        assert value / variant.figure_factor == pytest.approx(11 / 12, rel=1e-6)


def test_random_play_finds_no_other_kind_of_game() -> None:
    facts = []
    for name in ("kuhn", "kuhn, returns in thousandths", "kuhn, returns plus 100"):
        play = RandomPlay(EnvConfig(f"{MODULE}:kuhn", dict(VARIANTS[name].kwargs)), seconds=None)
        play.run()
        found = play.facts()
        assert found is not None
        facts.append((found.play, found.hides, found.final_only, found.zero_sum))
    assert facts == [("turn_based", True, True, True)] * 3
