"""Where strength decides, "auto" is the export that games have shown to be the strongest."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from league.core.state.records import GameKind
from league.judge.matches import evaluation as match_report
from league.judge.matches import export_match
from league.judge.matches.export_match import keep_export_matches
from league.policies.auto_export import AUTO, BEST, EMA, LAST, ExactExports, ExportMatch, auto_choice
from league.policies.exact_file import made_of, read_exact, write_exact
from league.policies.loading import open_run
from league.policies.select import choose
from league.store.run_folder import RunFolder
from tests.league.tiny_runs import ONE_PLAYER, go_on, start, state_of, tiny


def kept(path: Path) -> list[tuple[str, str]]:
    exact = read_exact(RunFolder.open(path), state_of(path))
    return [] if exact is None else [(match.home, match.away) for match in exact.matches]


def won(home: str, away: str, low: float) -> ExportMatch:
    return ExportMatch(home, away, low + 0.05, low, low + 0.1, 400)


def distinct(path: Path) -> list[str]:
    """Challengers that are not the best snapshot itself."""
    made = made_of(state_of(path))
    return [name for name in (LAST, EMA) if made[name] != made[BEST]]


def test_matches_are_played_once_and_count_until_the_run_trains_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(tmp_path, tiny(league=ONE_PLAYER), env_steps=1_000)
    path = tmp_path / "run"
    keep_export_matches(open_run(path), limit_s=0.0)
    assert kept(path) == [], "no time for a game"
    keep_export_matches(open_run(path), limit_s=60.0, games=20)
    assert [home for home, _ in kept(path)] == distinct(path)
    exact = open_run(path).exact
    assert exact is not None and all(match.games == 20 for match in exact.matches)
    monkeypatch.setattr(match_report, "evaluate_run", pytest.fail)
    keep_export_matches(open_run(path), limit_s=60.0, games=20)
    monkeypatch.undo()
    go_on(path, env_steps=2_000)
    assert kept(path) == []
    keep_export_matches(open_run(path), limit_s=60.0, games=20)
    assert kept(path)


@pytest.mark.parametrize(
    ("matches", "name"),
    [
        ([won(LAST, BEST, 0.5), won(EMA, BEST, 0.51)], EMA),
        ([won(LAST, BEST, 0.51), won(EMA, BEST, 0.6)], LAST),
        ([won(LAST, BEST, 0.51), won(EMA, LAST, 0.6)], EMA),
        ([won(LAST, BEST, 0.4), won(EMA, BEST, 0.5)], BEST),
        ([replace(won(EMA, BEST, 0.1), even=0.0)], EMA),
        ([replace(won(EMA, BEST, -0.1), even=0.0)], BEST),
    ],
)
@pytest.mark.parametrize("information", ["open", "unknown"])
def test_auto_is_whoever_beat_the_one_before_beyond_chance(
    matches: list[ExportMatch], name: str, information: str, tmp_path: Path
) -> None:
    start(tmp_path, tiny(league=ONE_PLAYER), env_steps=1_000)
    path, state = tmp_path / "run", state_of(tmp_path / "run")
    state.kind = GameKind(information)
    write_exact(path, ExactExports({}, made_of=made_of(state), matches=tuple(matches)))
    found, why = auto_choice(state, open_run(path).exact)
    assert found == name
    assert ("in 400 games against" in why) == (name != BEST)
    assert choose(state, AUTO, exact=open_run(path).exact).is_ema == (name == EMA)


def test_a_match_that_had_less_time_is_played_again(tmp_path: Path) -> None:
    start(tmp_path, tiny(league=ONE_PLAYER), env_steps=1_000)
    path = tmp_path / "run"
    home = distinct(path)[-1]
    short = ExportMatch(home, BEST, 0.5, 0.1, 0.9, 4, limit_s=0.01)
    write_exact(path, ExactExports({}, made_of=made_of(state_of(path)), matches=(short,)))
    exact = keep_export_matches(open_run(path), limit_s=60.0, games=20).exact
    assert exact is not None and {match.games for match in exact.matches} == {20}


def test_no_match_is_played_where_something_is_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start(tmp_path, tiny(env={"id": "kuhn_poker"}, league=ONE_PLAYER), env_steps=1_000)
    monkeypatch.setattr(match_report, "evaluate_run", pytest.fail)
    keep_export_matches(open_run(tmp_path / "run"), limit_s=60.0)


def test_no_match_is_played_between_equal_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start(tmp_path, tiny(league=ONE_PLAYER), env_steps=1_000)
    path = tmp_path / "run"
    monkeypatch.setattr(export_match, "made_of", lambda state: dict.fromkeys((BEST, LAST, EMA), "the same"))
    monkeypatch.setattr(match_report, "evaluate_run", pytest.fail)
    keep_export_matches(open_run(path), limit_s=60.0)
