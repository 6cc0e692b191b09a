"""Reasons as comments: they go into the text of a configuration and come back from it, and change no value."""

from __future__ import annotations

from dataclasses import replace

from league.config.commented import dump_commented, reasons_in, recommented
from league.config.loading import parse_config
from league.config.run_config import RunConfig
from league.envs.protocol import EnvConfig

REASONS = {
    "name": "a word",
    "learner.batch_rows": "rows: # and a mark",
    "learner.algorithm.lambda_": "an option",
    "network.hidden": "a list",
    "league.players": "a list of sections",
    "league.players.1.gate.min_steps": "in the second one",
    "evaluation.bots": "texts",
}


def config() -> RunConfig:
    """A configuration with a text that would be folded, and one that looks like a comment."""
    return RunConfig(env=EnvConfig("tic_tac_toe", {"text": "# auto: no " + "word " * 60}), name="x")


def test_reasons_come_back_and_values_stay() -> None:
    text = dump_commented(config(), REASONS)
    assert reasons_in(text) == REASONS
    assert parse_config(text, source="text").network == config().network
    assert "batch_rows: 128  # auto: rows: # and a mark\n" in text
    assert "  hidden: [128, 128]  # auto: a list\n" in text


def test_a_long_list_of_numbers_keeps_its_reason() -> None:
    scales = tuple(0.0001 * number for number in range(1, 40))
    wide = replace(config(), learner=replace(config().learner, reward_scales=scales))
    text = dump_commented(wide, {"learner.reward_scales": "forty groups", "env.kwargs.text": "a long text"})
    assert reasons_in(text) == {"learner.reward_scales": "forty groups", "env.kwargs.text": "a long text"}
    assert parse_config(text, source="text") == wide


def test_the_round_trip_is_equal() -> None:
    plain = RunConfig(env=EnvConfig("tic_tac_toe"))
    assert parse_config(dump_commented(plain, REASONS), source="text") == plain


def test_a_key_that_is_not_there_is_left_out() -> None:
    assert reasons_in(dump_commented(config(), {"learner.nothing": "why"})) == {}


def test_a_changed_value_loses_its_reason_and_no_other() -> None:
    before = config()
    after = replace(before, learner=replace(before.learner, batch_rows=7))
    text = recommented(after, dump_commented(before, REASONS))
    assert reasons_in(text) == {key: why for key, why in REASONS.items() if key != "learner.batch_rows"}
    assert "batch_rows: 7\n" in text


def test_text_that_is_no_yaml_has_no_reasons() -> None:
    assert reasons_in("{: # auto: x") == {}
