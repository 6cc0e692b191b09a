"""How a run comes to count wins or returns, and that it keeps to it."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
import yaml

from league.config.default_scoring import scoring_of
from league.core.state.league_config import PayoffConfig
from league.core.state.scoring import BY_WINS, Scoring
from league.envs.protocol import EnvConfig, EnvSpec
from league.envs.registry import make
from league.errors import ConfigError, LeagueError
from league.policies.select import choose
from league.run.budget import Limits
from league.run.launch import resume
from league.see.reports.ratings import read_ratings
from league.see.reports.status.status_report import read_status
from league.see.reports.verify import verify_run
from tests.league.tiny_runs import go_on, start, state_of, tiny

UNEQUAL = {"stakes": [1, 2, 3]}


def spec_of(env_id: str, **kwargs: object) -> EnvSpec:
    return make(EnvConfig(env_id, dict(kwargs)), num_envs=1).spec


@pytest.mark.parametrize(
    ("env_id", "kwargs", "scoring"),
    [
        ("connect_four", {}, BY_WINS),
        ("tic_tac_toe", {}, BY_WINS),
        ("rock_paper_scissors", {}, BY_WINS),
        ("rock_paper_scissors", {"stakes": [2, 2, 2]}, BY_WINS),
        ("rock_paper_scissors", UNEQUAL, Scoring("returns", 6.0)),
        ("repeated_rock_paper_scissors", {}, Scoring("returns", 20.0)),
        ("team_rock_paper_scissors", {}, BY_WINS),
        ("three_seat_rock_paper_scissors", {}, Scoring("returns", 2.0)),
        ("cyclic_game", {}, BY_WINS),
        ("disc_game", {}, Scoring("returns", 2.0)),
        ("kuhn_poker", {}, Scoring("returns", 4.0)),
        ("leduc_poker", {}, Scoring("returns", 26.0)),
        ("probe_turns", {}, BY_WINS),
        ("matrix_game", {"payoffs": [[0.0]]}, BY_WINS),
    ],
)
def test_returns_are_counted_where_they_say_more_than_who_won(env_id: str, kwargs: dict, scoring: Scoring) -> None:
    assert scoring_of(PayoffConfig(), spec_of(env_id, **kwargs)) == scoring


def test_the_configuration_goes_before_the_game() -> None:
    kuhn = spec_of("kuhn_poker")
    assert scoring_of(PayoffConfig(score="wins"), kuhn) == BY_WINS
    assert scoring_of(PayoffConfig(return_scale=1.5), kuhn) == Scoring("returns", 1.5)
    assert scoring_of(PayoffConfig(score="returns"), spec_of("connect_four")) == Scoring("returns", 2.0)
    unknown = spec_of("probe_turns")
    assert scoring_of(PayoffConfig(return_scale=3.0), unknown) == Scoring("returns", 3.0)


def test_a_game_that_does_not_tell_its_range_needs_a_scale() -> None:
    with pytest.raises(ConfigError, match=r"probe_turns does not say.*set league.payoff.return_scale"):
        scoring_of(PayoffConfig(score="returns"), spec_of("probe_turns"))


def test_a_game_without_stakes_is_counted_by_wins_whatever_is_asked_for() -> None:
    spec = dataclasses.replace(spec_of("kuhn_poker"), return_range=(0.0, 0.0))
    assert scoring_of(PayoffConfig(score="returns"), spec) == BY_WINS


def test_a_run_keeps_counting_as_it_was_founded(tmp_path: Path) -> None:
    plain = tiny(env={"id": "kuhn_poker"})
    start(tmp_path, plain, env_steps=600)
    run = tmp_path / "run"
    scoring = Scoring("returns", 4.0)
    assert state_of(run).scoring == scoring
    assert "by returns, a margin of 4 counts as a certain win" in read_ratings(run).text()
    assert "counts returns, a margin of 4" in read_status(run).text()
    changed = yaml.safe_load((run / "config.yaml").read_text())
    changed["league"]["payoff"]["score"] = "wins"
    (run / "config.yaml").write_text(yaml.safe_dump(changed))
    with pytest.raises(LeagueError, match=r"changed by hand in league\.payoff\.score \(null -> \"wins\"\)"):
        go_on(run, env_steps=600)
    with pytest.raises(ConfigError, match=r"league\.payoff\.score: cannot change"):
        resume(run, limits=Limits(env_steps=600), overrides=["league.payoff.score=wins"], restore_config=True)
    go_on(run, env_steps=600)
    state = state_of(run)
    assert state.scoring == scoring
    assert verify_run(run).problems == ()
    assert choose(state, "mixture").reason.endswith("by returns")
    scored, games = state.payoff.scores.sum(), state.payoff.totals.sum()
    assert scored == pytest.approx(games / 2)


def test_a_scale_that_is_missing_is_reported_before_a_run_folder_is_made(tmp_path: Path) -> None:
    plain = tiny(env={"id": "probe_turns"}, league={"payoff": {"score": "returns"}})
    with pytest.raises(ConfigError, match="return_scale"):
        start(tmp_path, plain, env_steps=100)
    assert not (tmp_path / "run").exists()
