"""Which figures the benchmark of the defaults takes for known, and what its bounds make of those that are missing."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from benchmarks.defaults import measure, required, table
from benchmarks.defaults.__main__ import _parser, jobs_of, known_figures
from benchmarks.defaults.games import ALL, EXACT, GAMES, HELD_OUT, chosen
from benchmarks.defaults.judge import Evaluation
from benchmarks.defaults.measure import HALF, LATEST, LEAGUE, TUNED, Job, Place
from benchmarks.defaults.required import SEEDS, Compared, Comparison, bounded
from benchmarks.defaults.rules import code_of, rules_digest
from benchmarks.report import Report
from league.config.loading import load_config

EVALUATION = Evaluation(games=10, seed=1)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "runs", tmp_path / "results")


def nash(value: float) -> dict[str, float]:
    return {"last NashConv": value, "average NashConv": 2 * value}


def figures(game: str, league: Sequence[float], latest: Sequence[float]) -> dict[Job, dict[str, float]]:
    """NashConv of the last snapshot for each seed of both populations."""
    columns = {LEAGUE: league, LATEST: latest}
    return {Job(60, game, name, seed): nash(value) for name, each in columns.items() for seed, value in enumerate(each)}


def test_the_ratio_is_of_the_best_exports_medians():
    found = Comparison(60, figures("leduc", [0.3, 0.1, 0.2], [0.4, 0.4, 0.9]), {"leduc": {"NashConv": 4.7}})
    compared = found.ratio("leduc", (LATEST,))
    assert compared.value == pytest.approx(0.2 / 0.4)
    assert compared.is_complete


def test_rests_below_the_floor_are_equal():
    found = Comparison(60, figures("leduc", [0.009] * 3, [0.001] * 3), {"leduc": {"NashConv": 1.0}})
    assert found.ratio("leduc", (LATEST,)).value == pytest.approx(1.0)
    assert found.ratio("leduc", (LATEST,), floor=0.0).value == pytest.approx(9.0)


def test_a_comparison_that_lacks_a_seed_is_shown_and_not_complete():
    found = Comparison(60, figures("leduc", [0.2, 0.2], [0.4, 0.4, 0.4]), {"leduc": {"NashConv": 4.7}})
    compared = found.ratio("leduc", (LATEST,))
    assert (compared.value, compared.is_complete) == (pytest.approx(0.5), False)


def test_an_export_that_counts_can_be_chosen_for_the_league_alone():
    found = Comparison(60, figures("leduc", [0.1] * 3, [0.1] * 3), {"leduc": {"NashConv": 4.7}})
    assert found.ratio("leduc", (LATEST,), exports=("average",)).value == pytest.approx(2.0)


def test_newest_only_has_its_network_and_averages_of_it_to_export():
    runs = {Job(60, "leduc", LEAGUE, seed): {"exact NashConv": 0.1} for seed in SEEDS}
    runs |= {Job(60, "leduc", LATEST, seed): {"ema NashConv": 0.2, "exact NashConv": 0.1} for seed in SEEDS}
    found = Comparison(60, runs, {"leduc": {"NashConv": 4.7}})
    assert found.ratio("leduc", (LATEST,)).value == pytest.approx(0.5)
    assert found.ratio("leduc", (LATEST,), newest_only=("ema", "exact")).value == pytest.approx(1.0)


def test_the_deficit_is_the_worst_over_the_bots():
    bots = GAMES["connect_four"].bots
    runs = {}
    for seed in SEEDS:
        runs[Job(60, "connect_four", LEAGUE, seed)] = {f"last v {bot}": 0.5 for bot in bots}
        runs[Job(60, "connect_four", LATEST, seed)] = {f"best v {bot}": 0.4 for bot in bots} | {"best v mcts:25": 0.6}
    compared = Comparison(60, runs, {}).deficit("connect_four", (LATEST,))
    assert compared.value == pytest.approx(0.1)
    assert compared.is_complete


@pytest.mark.parametrize(
    ("compared", "met"),
    [
        ([Compared("a", 0.9, True), Compared("b", 1.0, True)], True),
        ([Compared("a", 0.9, True), Compared("b", 1.2, True)], False),
        ([Compared("a", 0.9, True), Compared("b", None, False)], None),
        ([Compared("a", 0.9, False)], None),
        ([Compared("a", 1.2, True), Compared("b", None, False)], False),
        ([Compared("a", None, False)], None),
    ],
)
def test_a_bound_is_met_only_with_every_run(compared: list[Compared], met: bool | None):
    assert bounded("worst", compared, max, at_most=1.0).met is met


def test_every_bound_is_open_without_a_run():
    report = Report()
    required.add_rows(report, {}, {}, GAMES, budgets=[60.0])
    bounds = [row for row in report.rows if row.required is not None]
    assert len(bounds) == 6
    assert all(row.met is None and row.value is None and "missing" in row.name for row in bounds)


def test_text_does_not_change_the_rules_and_code_does():
    source = '"""Old."""\nX = 1  # one\n\ndef f():\n    """Says."""\n    return X\n'
    assert code_of(source) == code_of("X = 1\ndef f():\n    return X\n")
    assert code_of(source) != code_of(source.replace("return X", "return X + 1"))
    assert code_of("x = 'a'") != code_of("x = 'b'")


def test_the_digest_is_of_the_code_that_is_named(tmp_path: Path):
    folder = tmp_path / "agents" / "learner"
    folder.mkdir(parents=True)
    (folder / "config.py").write_text("RATE = 1\n")
    first = rules_digest(tmp_path)
    (folder / "config.py").write_text("RATE = 2\n")
    assert rules_digest(tmp_path) != first


def test_figures_of_other_conditions_are_not_used(place: Place):
    job, calls = Job(60, "kuhn", LEAGUE, 0), []

    def find() -> dict[str, float]:
        calls.append(1)
        return {"last NashConv": 0.1}

    path, conditions = measure.path_of(job, place), measure.conditions_of(job, place, EVALUATION)
    assert measure.stored_or_found(path, conditions, find) == measure.stored_or_found(path, conditions, find)
    assert len(calls) == 1
    other = measure.conditions_of(job, place, Evaluation(games=20, seed=1))
    assert measure.stored(path, other) is None
    assert measure.stored_or_found(path, other, find) == {"last NashConv": 0.1}
    assert len(calls) == 2


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The commands that would have been run."""
    seen: list[list[str]] = []
    monkeypatch.setattr(measure, "spend_budget", lambda command, **_: seen.append([*command]))
    monkeypatch.setattr(measure, "open_run", lambda path: path)
    return seen


def settings_of(command: Sequence[str]) -> list[str]:
    return [command[place + 1] for place, word in enumerate(command) if word == "-s"]


def test_a_run_has_only_its_env_budget_and_seed(place: Place, commands: list[list[str]]):
    measure.trained(Job(300, "unequal_stakes", LEAGUE, 2), place)
    config = load_config(Path(commands[0][2]))
    assert (config.env.id, config.env.kwargs) == ("rock_paper_scissors", {"stakes": [1, 2, 3]})
    expected = ["seed=2", "budget={core_seconds: 300}", "evaluation.bots=[]", "wandb.mode=disabled"]
    assert settings_of(commands[0]) == expected


def test_a_run_of_a_team_game_has_its_teams(place: Place, commands: list[list[str]]):
    measure.trained(Job(60, "simple_tag", LEAGUE, 0), place)
    assert load_config(Path(commands[0][2])).env == GAMES["simple_tag"].env


def test_a_control_differs_by_its_league_alone(place: Place, commands: list[list[str]]):
    for population in (LEAGUE, LATEST):
        measure.trained(Job(60, "kuhn", population, 0), place)
    league, latest = map(settings_of, commands)
    assert "runtime.kind=inprocess" in league
    assert [word for word in latest if word not in league] == ["league={preset: self_play}"]


@pytest.mark.parametrize("game", [name for name, game in GAMES.items() if game.tuned])
def test_a_tuned_configuration_runs_in_one_process_for_a_short_budget(
    game: str, place: Place, commands: list[list[str]]
) -> None:
    measure.trained(Job(60, game, TUNED, 0), place)
    runtime = load_config(Path(commands[0][2]), overrides=settings_of(commands[0])).runtime
    assert (runtime.kind, runtime.actor_hosts, runtime.learner_hosts) == ("inprocess", 1, 1)


def test_the_tuned_configuration_plays_the_game_of_the_benchmark(place: Place, commands: list[list[str]]):
    measure.trained(Job(300, "tic_tac_toe", TUNED, 0), place)
    config = load_config(Path(commands[0][2]), overrides=settings_of(commands[0]))
    assert config.env.id == GAMES["tic_tac_toe"].env.id
    assert config.budget.core_seconds == 300


def arguments(*words: str) -> list[Job]:
    return jobs_of(_parser().parse_args(words))


def test_half_past_and_the_long_budget_are_for_three_games():
    long = {job.game for job in arguments("--budgets", "1200")}
    assert len(long) == 3
    assert {(job.game, job.core_seconds) for job in arguments("--populations", HALF)} == {(name, 1200) for name in long}


def test_parts_can_be_chosen():
    jobs = arguments("--games", "kuhn,blotto", "--seeds", "1", "--budgets", "60", "--populations", "league,tuned")
    assert {job.name for job in jobs} == {"kuhn-league-60-1", "kuhn-tuned-60-1", "blotto-league-60-1"}
    with pytest.raises(ValueError, match="unknown games chess; known are"):
        chosen("chess")


def test_runs_that_are_compared_stand_side_by_side():
    jobs = arguments("--games", "kuhn,leduc", "--budgets", "60", "--populations", "league,latest")
    assert [(job.game, job.seed) for job in jobs[0::2]] == [(job.game, job.seed) for job in jobs[1::2]]
    assert {job.population for job in jobs[0:2]} == {LEAGUE, LATEST}


def test_enough_games_of_different_kinds():
    kinds = {kind for game in GAMES.values() for kind in game.kinds}
    assert len(GAMES) >= 12
    assert {"one-shot", "simultaneous", "hidden", "3 seats", "teams", "continuous", "long", "sparse returns"} <= kinds


def test_held_out_games_are_others_and_chosen_by_their_set():
    assert len(ALL) == len(GAMES) + len(HELD_OUT)
    assert not {str(game.env) for game in GAMES.values()} & {str(game.env) for game in HELD_OUT.values()}
    jobs = arguments("--set", "held-out", "--budgets", "60,1200", "--seeds", "0")
    assert {job.game for job in jobs} == {*HELD_OUT}
    assert {job.population for job in jobs} == {LEAGUE, LATEST}


def stored(job: Job, place: Place, found: Mapping[str, float]) -> None:
    path = measure.path_of(job, place)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"conditions": measure.conditions_of(job, place, EVALUATION), "figures": found}))


def test_the_table_shows_what_is_stored_and_what_is_missing(place: Place, tmp_path: Path):
    for seed in SEEDS:
        stored(Job(60, "kuhn", LEAGUE, seed), place, nash(0.1 * (1 + seed)))
    stored(Job(60, "kuhn", LATEST, 0), place, nash(0.5))
    found, uniform = known_figures(place, EVALUATION, GAMES, budgets=[60.0])
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{table.BEGIN}\nold\n{table.END}\nafter\n")
    table.write_into(readme, table.tables(found, uniform, GAMES, budgets=[60.0], rules="abc"))
    text = readme.read_text()
    assert text.startswith("before\n") and text.endswith("after\n") and "old" not in text
    rows = {
        tuple(line.split(" | ")[i] for i in (0, 3)): line.split(" | ")[4:6]
        for line in text.splitlines()[4:]
        if " | " in line
    }
    assert rows["| kuhn", "league"] == ["0.2", "0.4"]
    assert rows["| kuhn", "newest only"] == ["0.5 (1)", "1 (1)"]
    assert rows["| kuhn", "tuned configuration"][0] == table.MISSING


def test_exact_games_are_those_without_bots_of_their_own():
    assert all(game.bots == ("random",) for game in GAMES.values() if game.judge == EXACT)
