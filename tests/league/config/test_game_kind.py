"""The kind of a game is decided once, and settings, exports and evaluations go by it."""

from __future__ import annotations

from pathlib import Path

import pytest

from league.config.auto.resolve import Resolved, resolve
from league.config.game_kind import kind_of_game, kind_of_run
from league.core.state.records import GameKind
from league.envs.protocol import EnvConfig
from league.envs.registry import spec_of
from league.judge.matches.evaluation import evaluate_run
from league.judge.matches.export_match import keep_export_matches
from league.policies.auto_export import auto_choice
from league.policies.loading import open_run
from league.run.budget import Limits
from league.run.launch import train
from tests.league.tiny_runs import state_of

HEX = "tests.league.judge.matches.hex_game:make"
HIDDEN_HEX = "tests.league.judge.matches.hex_game:make_hidden"
MARKET = "tests.league.deploy.export.strangers:market"
STEPS = ("budget.env_steps=3000", "runtime.kind=inprocess", "learner.precision=float32", "wandb.mode=disabled")


@pytest.mark.parametrize(
    ("env", "samples"),
    [
        ("connect_four", False),
        ("kuhn_poker", True),
        ("rock_paper_scissors", True),
        ("openspiel:liars_dice", True),
        ("openspiel:breakthrough(rows=6,columns=6)", False),
        ("gymnasium:CartPole-v1", False),
        (HEX, False),
        (MARKET, True),
    ],
)
def test_policies_sample_where_a_fixed_choice_is_easily_exploited(env: str, samples: bool) -> None:
    config = EnvConfig(env)
    assert kind_of_game(config, spec_of(config)).must_mix is samples


@pytest.fixture(scope="module")
def found() -> dict[str, Resolved]:
    return {env: resolve(env, overrides=STEPS) for env in (HEX, HIDDEN_HEX, "kuhn_poker", "connect_four")}


@pytest.mark.parametrize(
    ("env", "information"),
    [(HEX, "unknown"), (HIDDEN_HEX, "hidden"), ("kuhn_poker", "hidden"), ("connect_four", "open")],
)
def test_settings_keep_the_kind_that_they_were_chosen_by(
    found: dict[str, Resolved], env: str, information: str
) -> None:
    config = found[env].config
    assert config.game.information == information and config.game.moves == "in_turn"
    assert {"game.information", "game.moves"} <= found[env].reasons.keys()
    assert kind_of_run(config, spec_of(config.env)) == found[env].situation.kind


@pytest.mark.parametrize("information", ["open", "hidden", "unknown"])
def test_the_users_word_goes_for_settings_exports_and_evaluation(information: str, tmp_path: Path) -> None:
    word = resolve(HEX, overrides=[*STEPS, f"game.information={information}"])
    kind = dict(word.reasons)["learner.entropy_cost"]
    assert ("play must stay mixed" in kind) == (information == "hidden")
    chosen = [*STEPS, f"game.information={information}"]
    train(HEX, overrides=chosen, run_dir=tmp_path / "run", limits=Limits(env_steps=1_000))
    run = open_run(tmp_path / "run")
    assert run.kind == state_of(tmp_path / "run").kind == GameKind(information)
    report = evaluate_run(tmp_path / "run", players=["last"], bots=["random"], games=2)
    assert report.conditions.greedy == (information != "hidden")
    _, why = auto_choice(run.state, run.exact)
    assert ("the strongest is the hardest to beat" in why) == (information != "hidden")
    if information == "unknown":
        matched = keep_export_matches(run, limit_s=60.0, games=10)
        assert matched.exact is not None and {one.games for one in matched.exact.matches} == {10}


def test_an_evaluation_of_three_sides_in_turn_samples(tmp_path: Path) -> None:
    train(MARKET, overrides=STEPS, run_dir=tmp_path / "run", limits=Limits(env_steps=500))
    assert not evaluate_run(tmp_path / "run", players=["last"], bots=["random"], games=3).conditions.greedy
