"""Games on a device: bit for bit those in numpy, and never a wait for the device."""

from __future__ import annotations

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from league.agents.device_games.device_games import DEVICE_GAMES
from league.agents.device_games.draws import Draws
from league.agents.device_games.making import make_device_game
from league.envs.protocol import EnvConfig, EnvError
from tests.agents.device_games.conformance import CASES, play_both

CPU = torch.device("cpu")
IDS = [f"{config.id}-{number}" for number, config in enumerate(CASES)]


@pytest.mark.parametrize("config", CASES, ids=IDS)
def test_a_game_equals_the_one_in_numpy_bit_for_bit(config: EnvConfig) -> None:
    assert play_both(config, num_envs=64, steps=150, device=CPU) >= 64 * 150
    play_both(config, num_envs=1, steps=20, device=CPU)


@pytest.mark.parametrize("config", CASES, ids=IDS)
def test_no_shape_depends_on_a_number_in_the_devices_memory(config: EnvConfig) -> None:
    game = make_device_game(config, num_envs=4, device=CPU, seed=0)
    turn = game.reset()
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:  # raises where the host would have to look at a number
        actions = mode.from_tensor(torch.zeros(len(turn.rows), dtype=torch.int64))
        pretended = pretend(game, mode).step(actions)
    assert [tensor.shape for tensor in pretended.tensors()] == [tensor.shape for tensor in turn.tensors()]
    assert [tensor.dtype for tensor in pretended.tensors()] == [tensor.dtype for tensor in turn.tensors()]


def pretend(game: object, mode: FakeTensorMode) -> object:
    """The game with tensors that have shapes but no numbers."""
    for holder in (game, getattr(game, "_draws", None)):
        for name, value in vars(holder).items() if holder is not None else ():
            if isinstance(value, torch.Tensor):
                setattr(holder, name, mode.from_tensor(value))
    return game


def test_a_game_without_a_device_form_is_refused_in_one_sentence() -> None:
    with pytest.raises(EnvError, match="probe_turns has no device form; those that have one are connect_four, tic_tac"):
        make_device_game(EnvConfig(id="probe_turns"), num_envs=4, device=CPU, seed=0)


def test_options_that_do_not_fit_are_refused_as_by_the_game_in_numpy() -> None:
    with pytest.raises(EnvError, match="opening_plies is -1"):
        make_device_game(EnvConfig(id="connect_four", kwargs={"opening_plies": -1}), num_envs=4, device=CPU, seed=0)


def test_every_device_game_has_a_case() -> None:
    assert {config.id for config in CASES} == set(DEVICE_GAMES)


class TestDraws:
    def test_equal_seeds_draw_equal_numbers_and_others_do_not(self) -> None:
        one, same, other = (Draws(seed, device=CPU) for seed in (7, 7, 7 + (1 << 40)))
        first = one.uniforms(15)
        assert torch.equal(first, same.uniforms(15))
        assert not torch.equal(first, other.uniforms(15))
        assert not torch.equal(first, one.uniforms(15))

    def test_numbers_are_uniform_within_a_draw_and_between_draws(self) -> None:
        draws = Draws(1, device=CPU)
        table = torch.stack([draws.uniforms(4096) for _ in range(64)]).double()
        assert float(table.min()) >= 0.0 and float(table.max()) < 1.0
        for counts in (torch.histc(table, 64, 0.0, 1.0), torch.bincount(draws.below(64, 4096 * 64), minlength=64)):
            chi_square = float(((counts - 4096.0) ** 2 / 4096.0).sum())
            assert 30.0 < chi_square < 110.0  # 63 degrees of freedom: beyond either bound once in 10^4
        centred = table - 0.5
        bound = 5.0 / 12.0 / (4096 * 63) ** 0.5  # five standard errors of a product of two independent numbers
        for moved in (
            centred[:, 1:] * centred[:, :-1],
            centred[1:] * centred[:-1],
            centred[1:, 1:] * centred[:-1, :-1],
        ):
            assert abs(float(moved.mean())) < bound
