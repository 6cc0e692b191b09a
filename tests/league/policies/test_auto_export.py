"""The moving average and the last weights as exports, and which export "auto" stands for."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

import league
from league.agents.restart_state import ema_in, weights_in
from league.config.game_kind import kind_of_game
from league.core.state.records import GameKind
from league.core.state.state import CheckpointPointer, LeagueState
from league.envs.protocol import EnvConfig
from league.envs.registry import spec_of
from league.judge.matches.evaluation import evaluate_run
from league.policies.auto_export import (
    AVERAGE,
    BEST,
    EMA,
    EXACT,
    EXPORTS,
    LAST,
    MIN_MEAN_SNAPSHOTS,
    MIXTURE,
    ExactExports,
    auto_choice,
)
from league.policies.exact.behaviours import members_of
from league.policies.exact.exploitability import nash_conv
from league.policies.exact.exports import ExportSearch, with_exact
from league.policies.exact_file import read_exact
from league.policies.loading import copies_at, load_selection, open_run
from league.policies.select import UnknownPolicy, choose
from league.see.reports.status.status_report import read_status
from league.store.run_folder import RunFolder
from league.store.weights_file import stored_arrays
from tests.league.tiny_runs import ONE_PLAYER, go_on, start, state_of, tiny

KUHN = tiny(env={"id": "kuhn_poker"}, league=ONE_PLAYER)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kuhn")
    start(folder, KUHN, env_steps=3_000)
    return folder / "run"


def test_ema_is_the_average_in_the_newest_restart_state_and_last_its_weights(run: Path) -> None:
    opened = open_run(run)
    pointer = opened.state.players["main-0"].checkpoint
    assert pointer is not None and pointer.has_ema
    saved = stored_arrays(opened.checkpoints.get("main-0", pointer.digest), source=run)
    average, last = ema_in(saved), weights_in(saved)
    assert average is not None and not np.array_equal(average, last)
    (copy,) = copies_at(run, EMA)
    flat = np.concatenate([np.ravel(array) for array in stored_arrays(copy.weights, source=Path("copy")).values()])
    np.testing.assert_array_equal(np.sort(flat), np.sort(average))
    assert copy.manifest.trained_steps == pointer.trained_steps


def test_the_exact_values_choose_and_are_forgotten_once_the_run_continues(tmp_path: Path) -> None:
    start(tmp_path, KUHN, env_steps=3_000)
    path = tmp_path / "run"
    exact = with_exact(open_run(path), ExportSearch(60.0)).exact
    assert exact is not None and set(exact.values) == set(EXPORTS)
    assert read_exact(RunFolder.open(path), state_of(path)) == exact
    least = min(exact.values, key=exact.values.__getitem__)
    members = open_run(path).choose(EXACT).members
    assert {snapshot.snapshot_id: weight for weight, snapshot in members} == exact.mixture
    opened = open_run(path)
    mixture = members_of(load_selection(opened, opened.choose(EXACT)))
    assert nash_conv("kuhn_poker", mixture) == pytest.approx(exact.values[EXACT], abs=1e-9)
    lowest = dataclasses.replace(exact, values={**exact.values, EXACT: -1.0})
    auto = choose(opened.state, "auto", exact=lowest)
    assert auto.reason.startswith("exact, as") and auto.members == members
    both = choose(opened.state, "exact+average", exact=exact)
    assert sum(weight for weight, _ in both.members) == pytest.approx(1.0)
    assert exact.values[EXACT] <= min(exact.values[name] for name in (AVERAGE, MIXTURE)) + 1e-9
    chosen = open_run(path).choose("auto")
    assert exact.values[auto_choice(state_of(path), exact)[0]] == exact.values[least]
    assert "exact NashConv" in chosen.reason and chosen.name == "auto"
    assert "exact NashConv" in read_status(path).text()
    go_on(path, env_steps=1_000)
    assert open_run(path).choose("auto").reason.startswith("ema, as the moving average")
    with pytest.raises(UnknownPolicy, match="no exact mixture"):
        open_run(path).choose(EXACT)
    later = read_exact(RunFolder.open(path), state_of(path))
    assert later is not None and not later.is_current and EMA not in later.values and later.mixture == {}


def test_no_time_computes_nothing_and_a_torn_file_counts_as_none(run: Path) -> None:
    exact = with_exact(open_run(run), ExportSearch(-1.0)).exact
    assert exact is not None and exact.values == {}
    folder = RunFolder.open(run)
    folder.exports_path.write_bytes(b"{")
    assert read_exact(folder, state_of(run)) is None
    folder.exports_path.unlink()


def test_every_export_plays_and_is_evaluated_by_its_name(run: Path) -> None:
    report = evaluate_run(run, players=["auto", "ema", "last"], bots=["random"], games=8)
    assert league.load_policy(run, player="ema").act
    assert "moving average" in str(report.to_json())
    same = {note.partition(" is ")[0] for note in report.notes}
    assert {row.home for row in report.pairs} | same >= {"auto", "ema", "last"}


@pytest.mark.parametrize(
    ("env", "kind"),
    [
        ("connect_four", GameKind("open")),
        ("kuhn_poker", GameKind("hidden")),
        ("rock_paper_scissors", GameKind("open", at_once=True)),
        ("three_seat_rock_paper_scissors", GameKind("open", at_once=True, sides=3)),
        ("pettingzoo:classic/connect_four-v3", GameKind("unknown")),
    ],
)
def test_each_game_has_the_kind_that_it_says(env: str, kind: GameKind) -> None:
    config = EnvConfig(env)
    assert kind_of_game(config, spec_of(config)) == kind


def test_auto_is_the_strongest_where_all_see_everything(tmp_path: Path) -> None:
    start(tmp_path, tiny(league=ONE_PLAYER), env_steps=1_000)
    state = state_of(tmp_path / "run")
    assert state.kind == GameKind("open") and auto_choice(state)[0] == BEST
    assert with_exact(open_run(tmp_path / "run"), ExportSearch(60.0)).exact is None
    said = next(line for line in read_status(tmp_path / "run").text().splitlines() if line.startswith("auto is"))
    assert said.startswith("auto is best: every seat sees everything")
    assert said.endswith("; also ema, last, average, mixture")


def with_ema(state: LeagueState, has_ema: bool) -> None:
    for player in state.players.values():
        assert isinstance(player.checkpoint, CheckpointPointer)
        player.checkpoint = dataclasses.replace(player.checkpoint, has_ema=has_ema)


def test_auto_follows_the_kind_of_game_and_what_there_is(run: Path) -> None:
    state = state_of(run)
    assert auto_choice(state)[0] == EMA
    with_ema(state, has_ema=False)
    few = auto_choice(state)[0]
    trained = [snapshot for snapshot in state.snapshots.values() if snapshot.trained_steps > 0]
    assert few == (AVERAGE if len(trained) >= MIN_MEAN_SNAPSHOTS else LAST)
    with pytest.raises(UnknownPolicy, match="keep no moving average"):
        choose(state, EMA)
    with_ema(state, has_ema=True)
    state.kind = GameKind("hidden", at_once=True)
    if len(trained) >= MIN_MEAN_SNAPSHOTS:
        assert auto_choice(state)[0] == AVERAGE
    state.totals.decisions *= 100
    assert auto_choice(state)[0] == EMA
    assert auto_choice(state, ExactExports({}))[0] == EMA
    assert auto_choice(state, ExactExports({BEST: 0.1}, is_current=False))[0] == EMA
    assert auto_choice(state, ExactExports({BEST: 0.2, EXACT: 0.1}, is_current=False))[0] == EXACT
    assert auto_choice(state, ExactExports({BEST: 0.1, EMA: 0.2}))[0] == BEST


def test_auto_is_no_average_before_anything_is_trained(run: Path) -> None:
    state = state_of(run)
    for player in state.players.values():
        assert isinstance(player.checkpoint, CheckpointPointer)
        player.checkpoint = dataclasses.replace(player.checkpoint, trained_steps=0)
    name, _ = auto_choice(state)
    assert name != EMA and choose(state, name).name == name
    with pytest.raises(UnknownPolicy, match="keep no moving average"):
        choose(state, EMA)


def test_before_the_first_snapshot_there_is_nothing_to_choose(run: Path) -> None:
    state = LeagueState()
    for name in ("auto", *EXPORTS):
        with pytest.raises(UnknownPolicy, match="no snapshot yet"):
            choose(state, name)
