"""Acting by perturbed weights: what each game plays with, and that a pair meets equal opponents, seats and chance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import torch

from league.agents.acting.arena import Arena
from league.agents.acting.kinds.acting_kinds import ActingPlace
from league.agents.acting.kinds.config import PerturbedConfig
from league.agents.acting.kinds.perturbed import Perturbed, PerturbedPolicy
from league.agents.acting.network_group import NetworkGroup
from league.agents.acting.network_policy import NetworkPolicy
from league.agents.acting.policy import ActInputs, BotPolicy, Round
from league.agents.learner.evolution.noise_table import noise_table
from league.agents.learner.evolution.published import EvolvedWeights
from league.agents.nets.config import NetworkConfig
from league.agents.nets.network import Network, build_network
from league.agents.unroll.episodes import EpisodeRecorder, SeatEpisodes
from league.agents.unroll.unroll import UnrollSpec, concatenate
from league.agents.weights import Weights, layout_of
from league.envs.bots import make_bot
from league.envs.protocol import BatchedEnv, EnvConfig
from league.envs.registry import make

GAMES = 8
SEED = 5


@dataclass(frozen=True)
class Seats:
    policies: tuple[str, ...]
    records: tuple[bool, ...]
    probability: float = 1.0


def network_of(env: BatchedEnv) -> Network:
    return build_network(env.spec, NetworkConfig(hidden=(8,)), seed=1)


def weights_of(network: Network, *, version: int, shift: float = 0.0) -> Weights:
    vector = np.concatenate([p.detach().numpy().ravel() for p in network.parameters()]) + np.float32(shift)
    return Weights(vector.astype(np.float32), layout_of(network), version)


def policy_of(network: Network, *, sigma: float = 0.3) -> PerturbedPolicy:
    kind = Perturbed(None, ActingPlace(num_games=GAMES, seed=SEED), PerturbedConfig(sigma=sigma))  # type: ignore[arg-type]
    policy = kind.policy(network, dtype=torch.float32)
    policy.adopt(weights_of(network, version=3))
    return policy


def half(env: BatchedEnv, network: Network, *, first_game: int) -> Arena:
    return Arena(
        env,
        UnrollSpec.of(env.spec, network, unroll_length=4),
        seed=first_game,  # of no matter: rounds have their own
        first_game=first_game,
        recorder=EpisodeRecorder(num_games=env.num_envs, num_rows=env.num_envs * env.spec.num_seats, seed=11),
    )


def played(env_id: str, table: list[Seats], *, sigma: float, steps: int) -> tuple[SeatEpisodes, SeatEpisodes]:
    """Episodes of both halves of the games."""
    found = []
    for first_game in (0, GAMES // 2):
        env = make(EnvConfig(env_id), num_envs=GAMES // 2)
        network = network_of(env)
        arena = half(env, network, first_game=first_game)
        players = {"p": policy_of(network, sigma=sigma), "bot": BotPolicy(make_bot("random", seed=2))}
        players["old"] = NetworkPolicy(network)  # type: ignore[assignment]
        found.append(concatenate(list(arena.run(table, players, steps=steps))))
        arena.close()
    first, second = found
    return first, second  # type: ignore[return-value]


TABLE = [
    Seats(("p", "old"), (True, False), 0.5),
    Seats(("old", "p"), (False, True), 0.3),
    Seats(("p", "p"), (True, True), 0.2),
]


def test_a_pair_meets_the_same_opponents_seats_and_chance() -> None:
    # Kuhn poker is nearly all chance: without a perturbation worth the name, both of a pair play the same game.
    plus, minus = played("kuhn_poker", TABLE, sigma=1e-6, steps=40)
    assert len(plus.returns) > 40 and (plus.perturbations > 0).all() and (minus.perturbations < 0).all()
    at = {(int(number), i) for i, number in enumerate(plus.perturbations)}
    assert len(at) == len(plus.perturbations) and (plus.versions == 3).all()
    other = {-int(number): float(earned) for number, earned in zip(minus.perturbations, minus.returns, strict=True)}
    pairs = [
        (float(e), other[int(n)]) for n, e in zip(plus.perturbations, plus.returns, strict=True) if int(n) in other
    ]
    assert len(pairs) > 40 and all(one == two for one, two in pairs) and len({one for one, _ in pairs}) >= 3


def test_pairs_differ_where_the_perturbation_is_large() -> None:
    plus, minus = played("kuhn_poker", TABLE, sigma=3.0, steps=40)
    other = {-int(number): float(earned) for number, earned in zip(minus.perturbations, minus.returns, strict=True)}
    assert any(other.get(int(n), e) != e for n, e in zip(plus.perturbations, plus.returns, strict=True))


@pytest.mark.parametrize("game", [0, GAMES // 2, GAMES - 1])
def test_each_game_is_played_by_the_weights_that_its_number_stands_for(game: int) -> None:
    env = make(EnvConfig("connect_four"), num_envs=GAMES)
    network, turn = network_of(env), env.reset(0)
    policy = policy_of(network)
    seats = np.zeros(GAMES, np.int64)
    seats[2] = 1  # the other seat counts there, and the player's own weights act
    inputs = ActInputs(env, turn, np.arange(GAMES), np.zeros((GAMES, 0), np.float32), round=Round(77, seats))
    outputs = policy.act(inputs, np.random.default_rng(0))
    numbers = outputs.recorded["perturbations"]
    assert numbers[2] == 0 and (np.delete(numbers, 2) != 0).all()
    assert (numbers[:4] + numbers[4:])[[0, 1, 3]].tolist() == [0, 0, 0], "opposites of one another"
    index, sign = abs(int(numbers[game])) - 1, np.sign(numbers[game])
    plain = weights_of(network, version=3)
    noise = noise_table(SEED).get(index, plain.layout.size)
    alone = NetworkPolicy(network)
    alone.adopt(Weights((plain.vector + np.float32(sign * 0.3) * noise).astype(np.float32), plain.layout, 3))
    one = ActInputs(env, turn, np.array([game]), np.zeros((1, 0), np.float32))
    probs = alone.evaluate(one).probs
    assert probs is not None
    acted = np.log(probs[0][int(outputs.actions[game])])  # type: ignore[call-overload]
    assert outputs.log_probs[game] == pytest.approx(acted, abs=1e-4)
    env.close()


def test_newer_weights_begin_another_round_and_what_was_played_before_is_not_counted() -> None:
    env = make(EnvConfig("connect_four"), num_envs=GAMES // 2)
    network = network_of(env)
    arena, policy = half(env, network, first_game=0), policy_of(network)
    table = [Seats(("p", "p"), (True, True))]
    before = list(arena.run(table, {"p": policy}, steps=4))
    policy.adopt(weights_of(network, version=4, shift=0.01))
    after = list(arena.run(table, {"p": policy}, steps=80))
    assert not before and after
    assert all((episodes.versions == 4).all() for episodes in after)  # type: ignore[union-attr]
    ends = concatenate(after)
    assert sum(totals.games for totals in arena.take_outcomes()) == ends.num_rows, "each game of a round counts once"
    arena.close()


def test_an_episode_is_cut_at_its_cap_and_counts_as_it_stands() -> None:
    env = make(EnvConfig("gymnasium:CartPole-v1"), num_envs=GAMES // 2)
    network = network_of(env)
    arena, policy = half(env, network, first_game=0), policy_of(network, sigma=0.01)
    plain = weights_of(network, version=4)
    policy.adopt(EvolvedWeights(plain.vector, plain.layout, 4, np.zeros((2, plain.layout.size), np.float32), (), 6))
    cut = concatenate(list(arena.run([Seats(("p",), (True,))], {"p": policy}, steps=15)))
    assert cut.num_rows == GAMES, "a round that is late at once, and two of six decisions each"  # type: ignore[union-attr]
    assert cut.decisions.tolist() == [6] * GAMES and cut.returns.tolist() == [6.0] * GAMES  # type: ignore[union-attr]
    assert len(set(cut.perturbations.tolist())) == GAMES  # type: ignore[union-attr]
    assert sum(totals.games for totals in arena.take_outcomes()) == 0, "no game has ended"
    arena.close()


def test_a_row_of_each_of_many_networks_is_computed_as_by_each_alone() -> None:
    spec = make(EnvConfig("connect_four"), num_envs=1).spec
    networks = [build_network(spec, NetworkConfig(hidden=(8, 8), value_output="tanh"), seed=seed) for seed in range(6)]
    boards = torch.rand(6, *spec.observations["board"].shape) < 0.4
    sizes, present = [1, 1, 0, 1, 1, 1], [0, 1, 3, 4, 5]
    with torch.inference_mode():
        found = NetworkGroup(networks).step(
            {"board": boards[:5]}, core=torch.zeros(5, 0), action_mask=None, sizes=sizes
        )
        for row, number in enumerate(present):
            alone = networks[number].step({"board": boards[row : row + 1]})
            np.testing.assert_allclose(found.logits[row], alone.logits[0], atol=1e-5)
            np.testing.assert_allclose(found.values[row], alone.values[0], atol=1e-5)
