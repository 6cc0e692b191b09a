"""Exact values of a run's exports: computed once for whoever has time, and again for what has changed."""

from __future__ import annotations

import dataclasses
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import league
from league.core.state.records import GameKind
from league.deploy.export.exporter import choose_export
from league.envs.protocol import EnvConfig
from league.errors import StorageError
from league.judge.contenders.stored import find_stored
from league.judge.matches.run_contenders import open_contenders
from league.policies.auto_export import EMA, EXACT, EXPORTS, ExactExports
from league.policies.exact import exports, phantom_game
from league.policies.exact.behaviours import members_of, uniform
from league.policies.exact.exploitability import nash_conv
from league.policies.exact.exports import ExportSearch, copies_to_play, open_to_play, with_exact
from league.policies.exact.small_game import NoExactValue, SmallGame, small_game
from league.policies.exact.team_game import team_exploitability
from league.policies.exact_file import candidates
from league.policies.loading import load_from_run, open_run
from league.policies.select import UnknownPolicy, choose
from league.store.run_folder import RunFolder
from league.store.storage import Storage
from tests.league.tiny_runs import ONE_PLAYER, go_on, start, tiny

KUHN = tiny(env={"id": "kuhn_poker"}, league=ONE_PLAYER)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kuhn")
    start(folder, KUHN, env_steps=3_000)
    return folder / "run"


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Path:
    """A copy of the run, of which nothing exact is known."""
    return Path(shutil.copytree(trained, tmp_path / "run"))


def is_known(run: Path) -> bool:
    return RunFolder.open(run).exports_path.exists()


PATIENT: dict[str, Callable[[Path, str], object]] = {
    "eval": lambda run, name: open_contenders(run, [name], seed=0, search=ExportSearch()),
    "export": choose_export,
}
IMPATIENT: dict[str, Callable[[Path, str], object]] = {
    "load_policy": league.load_policy,
    "play": lambda run, name: find_stored(f"{run}:{name}"),
    "elsewhere": copies_to_play,
}


@pytest.mark.parametrize(
    ("ask", "name"),
    [*((ask, "auto") for ask in PATIENT.values()), *((ask, "exact") for ask in IMPATIENT.values())],
    ids=[*PATIENT, *IMPATIENT],
)
def test_whoever_has_time_or_asks_by_name_has_the_exact_values(
    run: Path, ask: Callable[[Path, str], object], name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    ask(run, "main-0")
    assert not is_known(run)
    ask(run, name)
    assert is_known(run) and set(open_run(run).exact.values) == set(EXPORTS)  # type: ignore[union-attr]
    assert "exact NashConv" in open_run(run).choose("auto").reason
    assert "by exact best responses, 60 s at most" in capfd.readouterr().err
    ask(run, "exact")
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("ask", IMPATIENT.values(), ids=list(IMPATIENT))
def test_whoever_plays_takes_what_is_known_and_never_waits(
    run: Path, ask: Callable[[Path, str], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    games = Games(monkeypatch)
    ask(run, "auto")
    assert games.asked == 0 and not is_known(run)
    with_exact(open_run(run), ExportSearch())
    assert "exact NashConv" in open_to_play(run, ["auto"]).choose("auto").reason


class Games:
    """Counts the games whose histories are asked for, and may refuse them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked = 0
        self.refuses = False
        self._real = exports.small_game
        monkeypatch.setattr(exports, "small_game", self)

    def __call__(self, *positional: object, **named: object) -> SmallGame:
        self.asked += 1
        if self.refuses:
            raise NoExactValue("kuhn_poker has no exact value here: it is refused.")
        return self._real(*positional, **named)  # type: ignore[arg-type]


@pytest.fixture
def games(monkeypatch: pytest.MonkeyPatch) -> Games:
    return Games(monkeypatch)


def test_what_changed_is_computed_again_and_the_rest_is_kept(
    run: Path, games: Games, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = open_to_play(run, ["auto"], search=ExportSearch()).exact
    assert first is not None and open_to_play(run, ["average", "exact*2+best"]).exact == first and games.asked == 1
    kept = dataclasses.replace(first, made_of={**first.made_of, EMA: "another"})
    exports.write_exact(run, dataclasses.replace(kept, values={**first.values, EXACT: 7.0, EMA: 7.0}))
    again = open_to_play(run, ["auto"], search=ExportSearch()).exact
    assert games.asked == 2 and again is not None
    assert again.values == {**first.values, EXACT: 7.0} and again.made_of == first.made_of
    go_on(run, env_steps=1_000)
    later = open_to_play(run, ["auto"], search=ExportSearch()).exact
    assert games.asked == 3 and later is not None and later.is_current and later.values[EXACT] < 7.0
    assert later.made_of[EXACT] != first.made_of[EXACT]


def test_a_missing_exact_mixture_is_refused_with_its_reason(run: Path) -> None:
    state = open_run(run).state
    no_time = ExactExports({}, made_of={EXACT: "these"}, limit_s=60.0)
    cases = {
        "in a game of one team there is no reply": (dataclasses.replace(state, teams=(0, 0)), None),
        "every seat sees everything": (dataclasses.replace(state, kind=GameKind("open")), None),
        "the search for it was not over after 60 s": (state, no_time),
        "`league eval` computes it": (state, None),
    }
    for words, (asked, exact) in cases.items():
        with pytest.raises(UnknownPolicy, match=f"no exact mixture, take auto: {words}"):
            choose(asked, EXACT, exact=exact)


def test_a_refusal_is_said_once_and_tried_again_by_name_alone(run: Path, games: Games) -> None:
    games.refuses, said = True, list[str]()
    for limit_s in (10.0, 60.0):
        opened = open_to_play(run, ["auto"], search=ExportSearch(limit_s, say=said.append))
        assert opened.choose("auto").reason.startswith("ema, as the moving average")
    assert games.asked == 1
    assert said[1:] == ["kuhn_poker has no exact value here: it is refused. The export is chosen without it."]
    with pytest.raises(UnknownPolicy, match="no exact mixture, take auto: kuhn_poker has no exact value here"):
        open_to_play(run, ["exact"], search=ExportSearch(10.0)).choose("exact")
    assert games.asked == 2


def test_more_time_counts_once_the_policies_have_changed(run: Path, games: Games) -> None:
    games.refuses = True
    open_to_play(run, ["auto"], search=ExportSearch(10.0))
    games.refuses = False
    go_on(run, env_steps=1_000)
    open_to_play(run, ["auto"], search=ExportSearch(10.0))
    assert games.asked == 1, "as little time as before"
    assert "exact NashConv" in open_to_play(run, ["auto"], search=ExportSearch(60.0)).choose("auto").reason


def test_a_refusal_keeps_what_is_known_of_the_other_exports(run: Path, games: Games) -> None:
    first = open_to_play(run, ["auto"], search=ExportSearch()).exact
    assert first is not None
    exports.write_exact(run, dataclasses.replace(first, made_of={**first.made_of, EMA: "another"}))
    games.refuses = True
    opened = open_to_play(run, ["auto"], search=ExportSearch(1.0))
    assert opened.exact is not None and opened.exact.refusal and games.asked == 2
    assert opened.exact.values == {name: value for name, value in first.values.items() if name != EMA}
    assert opened.choose("exact").members and open_run(run).exact == opened.exact


def test_what_found_no_time_is_not_sought_again(run: Path, games: Games) -> None:
    for limit_s in (-1.0, 60.0):
        assert open_to_play(run, ["auto"], search=ExportSearch(limit_s)).exact.values == {}  # type: ignore[union-attr]
    assert games.asked == 1
    assert open_to_play(run, ["exact"]).exact.values  # type: ignore[union-attr]


def test_a_folder_that_cannot_be_written_has_its_values_all_the_same(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_storage: object, path: Path, _payload: bytes) -> None:
        raise StorageError(f"{path}: read-only")

    monkeypatch.setattr(Storage, "atomic_write_bytes", refuse)
    assert open_to_play(run, ["exact"]).choose("exact").members
    assert not is_known(run)


def test_the_progress_of_a_visit_is_said_every_few_seconds(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now, said = [0.0], list[str]()

    def visited(env: object, *, limit_s: float, progress: Callable[[int, int], None]) -> SmallGame:
        assert limit_s == pytest.approx(exports.VISIT_FRACTION * 60.0)
        for second in range(1, 12):
            now[0] = float(second)
            progress(2, 1000 * second)
        raise NoExactValue("no more.")

    monkeypatch.setattr(exports, "small_game", visited)
    with_exact(open_run(run), ExportSearch(60.0, clock=lambda: now[0], say=said.append))
    assert said[1:3] == [
        "  5 s: 5,000 histories and 2 draws of chance visited, at most 37 s left",
        "  10 s: 10,000 histories and 2 draws of chance visited, at most 32 s left",
    ]


def test_in_a_game_of_teams_whole_teams_reply_and_counters_count(tmp_path: Path) -> None:
    start(tmp_path, tiny(env={"id": "team_matrix"}), env_steps=1_500)
    run = open_to_play(tmp_path / "run", ["auto"], search=ExportSearch())
    chosen = run.choose("auto")
    assert run.exact is not None and chosen.members == run.choose(EXACT).members
    assert {run.state.snapshots[name].role for name in candidates(run.state)} > {"main_agent", "main_exploiter"}
    exploited = team_exploitability(run.env, members_of(load_from_run(run, "auto")))
    assert 2.0 * exploited == pytest.approx(run.exact.values[EXACT], abs=1e-6)
    assert run.exact.values[EXACT] <= min(run.exact.values.values())


def test_exports_of_a_phantom_game_have_exact_values_and_a_mixture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    board = {"id": "dark_hex", "kwargs": {"rows": 2, "cols": 2, "abrupt": True}}
    start(tmp_path, tiny(env=board, league=ONE_PLAYER), env_steps=1_500)
    run = open_to_play(tmp_path / "run", ["auto"], search=ExportSearch())
    assert run.exact is not None and set(run.exact.values) == set(EXPORTS)
    exploited = nash_conv(run.env, members_of(load_from_run(run, EXACT)))
    assert exploited == pytest.approx(run.exact.values[EXACT], abs=1e-6)
    assert exploited <= run.exact.values["best"] + 1e-6, "a mixture of trained snapshots, of which it is one"
    assert exploited <= min(run.exact.values.values()) + 1e-3
    monkeypatch.setattr(phantom_game, "MAX_ROWS", 10)  # as on a board of papers in the abrupt variant
    RunFolder.open(tmp_path / "run").exports_path.unlink()
    found = with_exact(open_run(tmp_path / "run"), ExportSearch())
    assert found.exact is not None and set(found.exact.values) == set(EXPORTS) - {EXACT}


def test_a_long_computation_says_how_far_it_is() -> None:
    now, said = [0.0], list[str]()

    def clock() -> float:
        now[0] += 2.0
        return now[0]

    game = small_game(EnvConfig("dark_hex", {"rows": 2, "cols": 2}))
    exports._value(game, [(1.0, uniform)], "ema", ExportSearch(clock=clock, say=said.append))
    assert (
        re.fullmatch(r"  ema: \d+ s, \d+% done, about \d+ s left", said[0]) and "100% done, about 0 s left" in said[-1]
    )
