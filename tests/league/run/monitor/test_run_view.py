"""The live table's view: when the next snapshot comes, whatever the gate, and whom the players met most."""

from __future__ import annotations

from dataclasses import replace

import pytest

from league.config.run_config import RuntimeConfig
from league.core.state.state import LeagueState
from league.run.budget import Spent
from league.run.monitor.run_view import run_view
from league.run.monitor.view import RunView
from tests.league.tiny_runs import GATE, start, state_of, tiny

RAY = RuntimeConfig(kind="ray")


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> LeagueState:
    folder = tmp_path_factory.mktemp("league")
    players = [{"role": "main_agent", "gate": {**GATE, "timeout_steps": 10**9}}, {"role": "main_exploiter"}]
    start(folder, tiny(league={"players": players}), env_steps=1_500)
    return state_of(folder / "run")


def view(state: LeagueState, runtime: RuntimeConfig, *, fraction: float | None = 0.25) -> RunView:
    return run_view(
        state,
        run="run",
        phase="training",
        spent=Spent(seconds=100.0),
        budget_fraction=fraction,
        steps_per_s=1.0,
        workers=1,
        runtime=runtime,
        ratings={},
        updates={},
    )


def next_of_main(state: LeagueState, runtime: RuntimeConfig, *, fraction: float | None = 0.25) -> float | None:
    return view(state, runtime, fraction=fraction).players[0].next_snapshot_s


def test_the_next_snapshot_of_a_main_agent_is_the_one_that_any_rule_takes_first(state: LeagueState) -> None:
    by_budget = replace(RAY, snapshots_per_budget=10)
    assert next_of_main(state, by_budget) == pytest.approx(20.0), "at 30 % of a budget of 400 s"
    assert next_of_main(state, replace(by_budget, snapshot_seconds=15.0)) == pytest.approx(15.0)
    assert next_of_main(state, RAY) == 300.0
    assert (next_of_main(state, replace(RAY, kind="inprocess")) or 0.0) > 1e6, "its time-out alone"


def test_an_exploiter_has_its_gate_alone(state: LeagueState) -> None:
    exploiter = view(state, replace(RAY, snapshots_per_budget=10)).players[1]
    player = state.players[exploiter.player]
    left = state.config_of(player.name).gate.timeout_steps - (player.trained_steps - player.gate_steps)
    assert exploiter.next_snapshot_s == pytest.approx(left * 100.0 / player.trained_steps)


def test_opponents_with_most_games_come_first(state: LeagueState) -> None:
    payoff = view(state, RAY).payoff
    assert payoff is not None and payoff.columns
    games = [
        sum(
            float(state.posterior(player.policy).games[state.population.index[name]])
            for player in state.players.values()
        )
        for name in payoff.columns
    ]
    assert games == sorted(games, reverse=True) and games[-1] > 0
