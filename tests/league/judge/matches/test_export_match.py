"""Where every seat sees everything, "auto" is the moving average only where that has beaten the best snapshot."""

from __future__ import annotations

from pathlib import Path

import pytest

from league.judge.matches import export_match
from league.judge.matches.export_match import keep_export_match
from league.policies.auto_export import AUTO, BEST, EMA, ExactExports, ExportMatch, auto_choice
from league.policies.exact_file import made_of, read_exact, write_exact
from league.policies.loading import open_run
from league.policies.select import choose
from league.store.run_folder import RunFolder
from tests.league.tiny_runs import ONE_PLAYER, go_on, start, state_of, tiny


def kept(path: Path) -> ExportMatch | None:
    exact = read_exact(RunFolder.open(path), state_of(path))
    return None if exact is None else exact.match


def test_the_match_is_played_once_and_counts_until_the_run_trains_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(tmp_path, tiny(league=ONE_PLAYER), env_steps=1_000)
    path = tmp_path / "run"
    assert kept(path) is None
    keep_export_match(open_run(path), limit_s=0.0)
    assert kept(path) is None, "no time for a game"
    keep_export_match(open_run(path), limit_s=60.0, games=20)
    match = kept(path)
    assert match is not None and match.games == 20 and match.low <= match.score <= match.high
    monkeypatch.setattr(export_match, "evaluate_run", pytest.fail)
    keep_export_match(open_run(path), limit_s=60.0)
    monkeypatch.undo()
    go_on(path, env_steps=2_000)
    assert kept(path) is None
    keep_export_match(open_run(path), limit_s=60.0, games=20)
    assert kept(path) is not None


@pytest.mark.parametrize(("low", "name"), [(0.51, EMA), (0.5, BEST), (0.1, BEST)])
def test_auto_follows_a_match_that_tells_them_apart(low: float, name: str, tmp_path: Path) -> None:
    start(tmp_path, tiny(league=ONE_PLAYER), env_steps=1_000)
    path, state = tmp_path / "run", state_of(tmp_path / "run")
    match = ExportMatch(low + 0.05, low, low + 0.1, 400)
    write_exact(path, ExactExports({}, made_of=made_of(state), match=match))
    found, why = auto_choice(state, open_run(path).exact)
    assert found == name
    assert ("0.56 [0.51, 0.61] against best in 400 games" in why) == (name == EMA)
    assert choose(state, AUTO, exact=open_run(path).exact).is_ema == (name == EMA)


def test_no_match_is_played_where_something_is_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start(tmp_path, tiny(env={"id": "kuhn_poker"}, league=ONE_PLAYER), env_steps=1_000)
    monkeypatch.setattr(export_match, "evaluate_run", pytest.fail)
    keep_export_match(open_run(tmp_path / "run"), limit_s=60.0)
