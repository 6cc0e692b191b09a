"""Seats are named as the game names them, wherever people read of one."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from league.config.run_config import BudgetConfig
from league.deploy.export.exporter import export_policy
from league.envs.games.matrix import MatrixGame
from league.envs.protocol import EnvConfig
from league.envs.registry import spec_of
from league.errors import LeagueError
from league.lab.exploit.exploit import exploit_run
from league.see.games.opponents import seat_of
from league.see.games.session import GameSession
from league.see.reports.doctor import examine_run
from league.see.reports.payoff import read_payoff
from league.see.reports.status.status_report import read_status
from tests.league.tiny_runs import ONE_PLAYER, start, tiny

ID = f"{__name__}:make"


def make(*, num_envs: int) -> MatrixGame:
    """A game whose first seat always wins, so that `league doctor` has something to say of it."""
    game = MatrixGame(num_envs=num_envs, payoffs=((1.0, 1.0), (1.0, 1.0)))
    game.spec = dataclasses.replace(game.spec, seat_names=("buyer", "seller"))
    return game


def test_reports_name_the_seats_of_a_run(tmp_path: Path) -> None:
    start(tmp_path, tiny(env={"id": ID}, league=ONE_PLAYER), env_steps=3_000)
    run = tmp_path / "run"
    assert "(buyer 1, seller -1)" in read_status(run).text()
    assert "buyer: 1.00, seller: 0.00" in read_payoff(run).text()
    (finding,) = [finding for finding in examine_run(run).findings if finding.check == "seat bias"]
    assert finding.what == "100% of the decided games are won by buyer."
    budget = BudgetConfig(env_steps=100)
    found = exploit_run(run, player="last", run_dir=tmp_path / "exploiter", budget=budget, games=4, seed=0)
    assert found is not None and "score as buyer 1.00, seller 0.00; trained" in found.text()
    export_policy(run, tmp_path / "package", games=4, bots=("random",))
    assert "| as buyer | as seller |" in (tmp_path / "package" / "README.md").read_text()


def test_errors_name_the_seats() -> None:
    with pytest.raises(LeagueError, match="has the seats 0 to 1, or buyer, seller"):
        seat_of("broker", spec_of(EnvConfig(ID)))
    with pytest.raises(LeagueError, match=r"no such seat \(seats are 0 to 1, or buyer, seller\)"):
        GameSession(EnvConfig(ID), [None, None], seat=2, holders=())
