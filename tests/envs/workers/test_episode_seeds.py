"""Seeds of episodes: against SplitMix64 step by step, and without repeats."""

from __future__ import annotations

import numpy as np

from league.envs.workers.episode_seeds import GOLDEN, episode_seed


def splitmix64(state: int) -> int:
    """The output of the published generator at a state, in numpy's words of 64 bits."""
    with np.errstate(over="ignore"):
        z = np.uint64(state)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return int(z ^ (z >> np.uint64(31)))


def test_a_seed_is_splitmix64_of_its_game_and_episode() -> None:
    start = int(np.random.SeedSequence((5, 1)).generate_state(1, np.uint64)[0])
    for game, episode in ((0, 0), (0, 1), (3, 7), (255, 1_000_000)):
        state = (start + (game * 2**32 + episode) * GOLDEN) % 2**64
        assert episode_seed((5, 1), game=game, episode=episode) == splitmix64(state) // 2**33


def test_episodes_games_and_resets_have_seeds_of_their_own() -> None:
    seeds = [
        episode_seed((seed, *more), game=game, episode=episode)
        for seed in range(3)
        for more in ((), (1,))
        for game in range(20)
        for episode in range(50)
    ]
    assert len(set(seeds)) >= len(seeds) - 1  # 0.008 pairs of 6,000 draws of 31 bits are expected to be equal
    assert min(seeds) >= 0
    assert max(seeds) < 2**31
    assert abs(np.mean(seeds) / 2**31 - 0.5) < 0.02
