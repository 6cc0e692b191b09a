"""An arena on a device records, counts and assigns as the one on the host, and does not wait for the device."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from league.agents.acting.network_policy import NetworkPolicy
from league.agents.acting.policy import NotFiniteError
from league.agents.nets.config import NetworkConfig
from league.envs.protocol import EnvConfig
from tests.agents.acting.on_device.cases import (
    LEAGUE,
    LSTM,
    MLP,
    Table,
    arena_of,
    counted_on_host,
    policies_of,
    recorded_on_host,
    row_bytes,
)

THREE = (
    Table(("home", "old-1", "home"), (True, False, True), 0.5),
    Table(("old-2", "home", "old-1"), (False, True, False), 0.5),
)
FOUR = (Table(("home", "home", "old-1", "old-2"), (True, True, False, False), 1.0),)
GAMES = [
    ("connect_four", {}, LEAGUE),
    ("tic_tac_toe", {}, LEAGUE),
    ("othello", {}, LEAGUE),
    ("leduc_poker", {}, LEAGUE),
    ("repeated_rock_paper_scissors", {"rounds": 3}, LEAGUE),
    ("three_seat_rock_paper_scissors", {}, THREE),
    ("team_rock_paper_scissors", {}, FOUR),
]


@pytest.mark.parametrize("network", [MLP, LSTM], ids=["mlp", "lstm"])
@pytest.mark.parametrize(("game", "kwargs", "tables"), GAMES, ids=[game for game, _, _ in GAMES])
def test_unrolls_and_outcomes_are_those_of_the_host(
    game: str, kwargs: dict[str, object], tables: tuple[Table, ...], network: NetworkConfig
) -> None:
    env = EnvConfig(id=game, kwargs=kwargs)
    arena, policies = arena_of(env, network), policies_of(env, network)
    found = list(arena.run(tables, policies, steps=63))
    assert found
    assert row_bytes(found) == row_bytes(recorded_on_host(arena))
    counted, expected = arena.take_outcomes(), counted_on_host(arena, tables)
    assert len(counted) == len(expected) == len({table.policies for table in tables})
    for mine, host in zip(counted, expected, strict=True):
        for field in dataclasses.fields(host):
            one, other = getattr(mine, field.name), getattr(host, field.name)
            assert np.array_equal(one, other) if isinstance(other, np.ndarray) else one == other, field.name


def test_recorded_log_probabilities_are_the_policies_own() -> None:
    env = EnvConfig(id="connect_four")
    arena, policies = arena_of(env, MLP), policies_of(env, MLP)
    by_version = {policy.version: policy for policy in policies.values()}
    for rows in arena.run(LEAGUE, policies, steps=40):
        assert set(rows.versions.unique().tolist()) == {policies["home"].version}  # opponents are not recorded
        home = by_version[policies["home"].version]
        obs = {name: values[:, :-1].flatten(0, 1) for name, values in rows.obs.items()}
        assert rows.action_mask is not None
        output = home.network.step(obs, action_mask=rows.action_mask[:, :-1].flatten(0, 1))
        expected = home.network.head.log_prob(output.logits, rows.actions.flatten())
        torch.testing.assert_close(rows.log_probs.flatten(), expected, rtol=0, atol=1e-5)


def test_memory_is_blank_at_the_first_observation_of_an_episode_and_only_there() -> None:
    env = EnvConfig(id="tic_tac_toe")
    arena, policies = arena_of(env, LSTM, num_envs=64), policies_of(env, LSTM)
    with torch.no_grad():
        for policy in policies.values():
            for parameter in policy.network.parameters():
                parameter.add_(0.1)  # without biases an empty board leaves the memory blank
    rows = list(arena.run(LEAGUE, policies, steps=60))
    starts = torch.cat([part.resets[:, 0] for part in rows])
    blank = (torch.cat([part.core for part in rows]) == 0.0).all(dim=1)
    assert 0 < int(starts.sum()) < len(starts)
    assert torch.equal(blank, starts)


def test_a_seat_keeps_its_policy_for_a_whole_episode_and_across_leases() -> None:
    env = EnvConfig(id="connect_four")
    arena, policies = arena_of(env, MLP, num_envs=8), policies_of(env, MLP)
    list(arena.run(LEAGUE, policies, steps=3))
    arena.take_outcomes()
    before = [arena._seating.assignments[index].policies for index in arena._seating.assignment_of.tolist()]
    other = (Table(("home", "home"), (True, True), 1.0),)
    list(arena.run(other, {"home": policies["home"]}, steps=1))  # no game of Connect Four has ended yet
    assert [arena._seating.assignments[index].policies for index in arena._seating.assignment_of.tolist()] == before
    list(arena.run(other, {"home": policies["home"]}, steps=60))
    assert {totals.policies for totals in arena.take_outcomes()} == {*before, ("home", "home")}
    assert set(arena._seating.policies) == {"home"} | {
        name for table in arena._seating.assignments for name in table.policies
    }


def test_more_assignments_than_the_tables_hold() -> None:
    env = EnvConfig(id="tic_tac_toe")
    policies = policies_of(env, MLP)
    tables = tuple(Table(("home", "old-1"), (True, False), 1.0 + number) for number in range(20))
    arena = arena_of(env, MLP, num_envs=256)
    found = list(arena.run(tables, policies, steps=12))
    assert row_bytes(found) == row_bytes(recorded_on_host(arena))
    (totals,) = arena.take_outcomes()
    assert totals.games > 256


def test_new_episodes_draw_by_the_probabilities_of_the_table() -> None:
    env = EnvConfig(id="tic_tac_toe")
    tables = (*LEAGUE, Table(("old-1", "old-2"), (False, False), 0.0))
    arena = arena_of(env, MLP, num_envs=512)
    list(arena.run(tables, policies_of(env, MLP), steps=200))
    games = {totals.policies: totals.games for totals in arena.take_outcomes()}
    assert ("old-1", "old-2") not in games
    whole = sum(games.values())
    for table in LEAGUE:
        error = (whole * table.probability * (1 - table.probability)) ** 0.5
        # Games in flight at the end were drawn too, and longer ones are less often counted: a bias of a game in 512.
        assert abs(games[table.policies] - whole * table.probability) < 5 * error + 50


def test_weights_adopted_between_unrolls_act_at_once_and_are_recorded_under_their_version() -> None:
    env = EnvConfig(id="repeated_rock_paper_scissors")
    arena, policies = arena_of(env, MLP), policies_of(env, MLP)
    versions = []
    for rows in arena.run((Table(("home", "home"), (True, True), 1.0),), policies, steps=25):
        versions.append(sorted(set(rows.versions.flatten().tolist())))
        policies["home"].version += 1
    assert versions == [[0], [1], [2], [3], [4]]


def test_one_graph_serves_every_lease_of_about_as_many_policies() -> None:
    env = EnvConfig(id="tic_tac_toe")
    arena, policies = arena_of(env, MLP), policies_of(env, MLP)
    tables = [(Table(("home", other), (True, False), 1.0),) for other in ("old-1", "old-2")]
    list(arena.run(tables[0], policies, steps=20))
    graph = arena._graph
    for table in (*tables, LEAGUE):
        arena.take_outcomes()
        list(arena.run(table, policies, steps=20))
        assert arena._graph is graph
        for policy, network in zip(arena._seating.policies.values(), arena._acting._networks, strict=False):
            assert isinstance(policy, NetworkPolicy)
            for one, other in zip(policy.network.parameters(), network.parameters(), strict=True):
                assert torch.equal(one, other)


def test_a_network_of_no_numbers_is_named() -> None:
    env = EnvConfig(id="connect_four")
    policies = policies_of(env, MLP)
    with torch.no_grad():
        next(policies["old-1"].network.parameters()).fill_(float("nan"))
    with pytest.raises(NotFiniteError, match="connect_four: a network answers what is no number"):
        list(arena_of(env, MLP).run(LEAGUE, policies, steps=10))


def test_networks_without_a_tiled_form_act_too() -> None:
    env = EnvConfig(id="repeated_rock_paper_scissors")
    clock = NetworkConfig(hidden=(16,), core={"kind": "clock", "decisions": 10})
    arena, policies = arena_of(env, clock), policies_of(env, clock)
    found = list(arena.run(LEAGUE, policies, steps=30))
    assert arena._acting._tiled is None
    assert row_bytes(found) == row_bytes(recorded_on_host(arena))


@pytest.mark.parametrize("network", [MLP, LSTM], ids=["mlp", "lstm"])
@pytest.mark.parametrize(("game", "kwargs", "tables"), GAMES, ids=[game for game, _, _ in GAMES])
def test_no_step_waits_for_the_device(
    game: str, kwargs: dict[str, object], tables: tuple[Table, ...], network: NetworkConfig
) -> None:
    env = EnvConfig(id=game, kwargs=kwargs)
    arena = arena_of(env, network, is_noted=False)
    list(arena.run(tables, policies_of(env, network), steps=1))
    with FakeTensorMode(allow_non_fake_inputs=True) as mode, torch.no_grad():
        # Tensors with shapes and no numbers: whatever would have to look at one raises.
        pretend(arena, mode, seen=set())
        arena._step()


class NoUploads(TorchDispatchMode):
    """Refuses numbers of the host that are written to places of a tensor: a recorded graph cannot hold such copies."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        name = func._schema.name
        assert name != "aten::index_put_" or args[2].ndim, "fill places by index_fill_"
        assert name not in ("aten::lift_fresh", "aten::_local_scalar_dense"), name
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("network", [MLP, LSTM], ids=["mlp", "lstm"])
@pytest.mark.parametrize(("game", "kwargs", "tables"), GAMES, ids=[game for game, _, _ in GAMES])
def test_no_step_uploads_a_number(
    game: str, kwargs: dict[str, object], tables: tuple[Table, ...], network: NetworkConfig
) -> None:
    env = EnvConfig(id=game, kwargs=kwargs)
    arena = arena_of(env, network, is_noted=False)
    list(arena.run(tables, policies_of(env, network), steps=1))
    with NoUploads(), torch.no_grad():
        arena._step()


def pretend(owner: object, mode: FakeTensorMode, *, seen: set[int]) -> object:
    """The owner with every tensor that it reaches replaced by one without numbers."""
    if isinstance(owner, torch.Tensor):
        return mode.from_tensor(owner)
    if id(owner) in seen:
        return owner
    seen.add(id(owner))
    if isinstance(owner, torch.nn.Module):
        return owner
    if isinstance(owner, dict):
        for key, value in owner.items():
            owner[key] = pretend(value, mode, seen=seen)
    elif type(owner).__module__.startswith(("league.agents.acting.on_device", "league.agents.device_games", "tests.")):
        for name, value in vars(owner).items():
            object.__setattr__(owner, name, pretend(value, mode, seen=seen))
    return owner
