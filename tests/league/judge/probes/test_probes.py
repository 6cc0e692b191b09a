"""What every probe must do: readings that the league takes, within its time, or one sentence on why there are none."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from league.config.loading import parse_config
from league.core.metagame.probe_series import series_of
from league.core.state.commands import BeginProbe, EndProbe
from league.core.state.records import ProbeOutcome, ProbeReading, ProbeTask
from league.core.state.scoring import Scoring
from league.errors import ConfigError, LeagueError
from league.judge.matches.match import Match
from league.judge.matches.match_result import score_games
from league.judge.probes import yardsticks
from league.judge.probes.matches import score_of
from league.judge.probes.past import Past, PastOptions
from league.judge.probes.probe import PROBES, DoesNotFit, PlayOptions, Subject, make_probe, make_probes
from league.judge.probes.returns import MeanReturn
from league.judge.probes.yardsticks import LADDER, Yardsticks, YardsticksOptions
from league.policies.exact.behaviours import members_of
from league.policies.exact.exploitability import nash_conv
from league.run.monitor.metric_sinks import require_working_sinks
from league.see.reports.probes import probes_of
from tests.league.core.simulated_league import SimulatedLeague, three_roles
from tests.league.judge.probes.subjects import OLD, subject_of

CHEAP = [name for name, where in PROBES.items() if where != PROBES["best_response"]]
GAMES = {"mean_return": "gymnasium:CartPole-v1"}
"""Game that a probe measures in these tests; kuhn_poker for the others."""
OWN = """
from league.core.state.records import ProbeReading

class Length:
    least_core_seconds = 0.1
    num_past = 0

    def measure(self, subject):
        return [ProbeReading("name_length", 9.0, 9.0, 9.0, scale="loss")]
"""


@pytest.mark.parametrize("name", CHEAP)
def test_every_probe_gives_readings_that_the_league_takes(name: str) -> None:
    probe = make_probe(name, place="probes.kinds.0")
    assert probe.least_core_seconds > 0.0 and probe.num_past >= 0
    readings = tuple(probe.measure(subject_of(GAMES.get(name, "kuhn_poker"))))
    league = SimulatedLeague(three_roles())
    league.run(4)
    league.ask(BeginProbe(name, "main-0-s0"))
    league.ask(EndProbe(ProbeOutcome(1, readings, 1.0)))
    assert [one.points[0].value for one in series_of(league.state).values()] == [one.value for one in readings]
    assert all("/" not in key and " " not in key for key in series_of(league.state))


@pytest.mark.parametrize("name", CHEAP)
def test_the_same_seed_measures_the_same(name: str) -> None:
    probe = make_probe(name, place="probes.kinds.0")
    game = GAMES.get(name, "kuhn_poker")
    assert probe.measure(subject_of(game)) == probe.measure(subject_of(game))


def test_the_exact_probe_is_the_nash_conv_and_says_where_there_is_none() -> None:
    probe, subject = make_probe("exact", place="probes.kinds.0"), subject_of("kuhn_poker")
    (reading,) = probe.measure(subject)
    assert reading.value == reading.low == nash_conv(subject.env, members_of(subject.policy)) > 0.0
    assert (reading.games, reading.scale) == (0, "loss")
    with pytest.raises(DoesNotFit, match="no exact value"):
        probe.measure(subject_of("connect_four"))


def test_yardsticks_are_the_bots_of_the_evaluation_or_those_named_and_unknown_games_are_left_out() -> None:
    options = YardsticksOptions(games=10)
    assert [one.yardstick for one in Yardsticks(options).measure(subject_of("tic_tac_toe"))] == ["random"]
    named = replace(options, against=("tactical", "random"))
    readings = Yardsticks(named).measure(subject_of("tic_tac_toe"))
    assert [(one.yardstick, one.games) for one in readings] == [("tactical", 10), ("random", 10)]
    with pytest.raises(DoesNotFit):
        Yardsticks(replace(options, against=("tactical",))).measure(subject_of("kuhn_poker"))


@pytest.mark.parametrize(
    ("scores", "met"),
    [
        ({"random": 0.9}, ["random"]),
        ({"random": 1.0, "mcts:25": 0.5}, ["random", "mcts:25"]),
        ({"random": 1.0, "mcts:25": 0.99, "mcts:100": 0.98, "mcts:400": 1.0}, ["random", *LADDER]),
    ],
)
def test_saturated_yardsticks_step_up(
    scores: dict[str, float], met: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def readings(subject: Subject, opponents: dict[str, object], **_: object) -> tuple[ProbeReading, ...]:
        return tuple(ProbeReading(name, scores[name], 0.0, 1.0, 10) for name in opponents)

    monkeypatch.setattr(yardsticks, "readings_against", readings)
    ample = YardsticksOptions(games=2, core_seconds=1e6)
    found = Yardsticks(ample).measure(subject_of("tic_tac_toe", limit_s=1e6))
    assert [one.yardstick for one in found] == met


def test_a_stronger_search_that_is_too_slow_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yardsticks, "SATURATED", -1.0)
    said: list[str] = []
    subject = subject_of("connect_four", limit_s=0.5, remark=said.append)
    assert [one.yardstick for one in Yardsticks(YardsticksOptions(games=2)).measure(subject)] == ["random"]
    assert "every yardstick is saturated" in said[-1] and "mcts:25" in said[-1]


def test_games_end_with_the_time_of_the_probe() -> None:
    few = Yardsticks(YardsticksOptions(games=100_000)).measure(subject_of("tic_tac_toe", limit_s=0.2))
    assert 2 <= few[0].games < 100_000


def test_the_mean_return_is_that_of_games_of_fixed_seeds_with_its_interval() -> None:
    """A policy of one action in a game that counts its steps; the oracle plays the very games alone."""
    subject = subject_of(GAMES["mean_return"], greedy=True)
    (reading,) = MeanReturn(PlayOptions(games=20)).measure(subject)
    assert (reading.yardstick, reading.games, reading.scale) == ("mean_return", 20, "return")
    policy = subject.policy.as_seat_policy(greedy=True)
    returns = []
    for number, games in enumerate((1, 4, 15)):
        seed = subject.seed if number == 0 else int(np.random.default_rng([subject.seed, number]).integers(2**31))
        match = Match(subject.env, [policy], seed=seed, opening_plies=0).play(games)
        returns += match.team_returns.ravel().tolist()
    assert reading.value == pytest.approx(np.mean(returns))
    half = 1.644854 * float(np.std(returns, ddof=1)) / math.sqrt(20)
    assert reading.high - reading.value == pytest.approx(half) == pytest.approx(reading.value - reading.low)
    with pytest.raises(DoesNotFit, match="has opponents"):
        MeanReturn(PlayOptions()).measure(subject_of("kuhn_poker"))


@pytest.mark.parametrize("name", [name for name in PROBES if name != "mean_return"])
def test_a_game_of_one_team_is_refused_by_every_probe_that_needs_opponents(name: str) -> None:
    with pytest.raises(DoesNotFit, match=r"one team|no exact value"):
        make_probe(name, place="probes.kinds.0").measure(subject_of(GAMES["mean_return"]))


def test_the_past_is_met_at_its_worst_and_an_empty_one_cannot_be() -> None:
    (reading,) = Past(PastOptions(games=20)).measure(subject_of("tic_tac_toe"))
    assert (reading.yardstick, reading.games) == ("worst_past", 20) and reading.note in OLD
    with pytest.raises(LeagueError, match="no earlier"):
        Past(PastOptions()).measure(subject_of("tic_tac_toe", task=ProbeTask(1, "past", "main-0-s1")))


def test_scores_by_returns_are_half_the_margin_over_its_scale() -> None:
    """Two rotations of two games; the home contender is contender 0 in both, whatever team it holds."""
    returns = np.array([[[3.0, -3.0], [1.0, -1.0]], [[-1.0, 1.0], [5.0, -5.0]]])
    result = score_games(returns, 8)
    value = score_of(result, Scoring("returns", 4.0), teams=(0, 1)).value
    by_hand = [0.5 + 0.5 * min(max(margin / 4.0, -1.0), 1.0) for margin in (6.0, 2.0, -2.0, 10.0)]
    assert value == pytest.approx(sum(by_hand) / 4)
    sizes = score_of(score_games(returns * [2.0, 1.0], 8), Scoring("returns", 40.0), teams=(0, 0, 1))
    assert math.isfinite(sizes.low) and sizes.low <= sizes.value <= sizes.high


def test_a_reading_of_games_shows_its_interval_also_where_all_ended_alike() -> None:
    league = SimulatedLeague(three_roles())
    league.run(4)
    played = ProbeReading("random", 0.5, 0.5, 0.5, 40, identity="0123")
    computed = ProbeReading("nash_conv", 0.25, 0.25, 0.25)
    league.ask(BeginProbe("own", "main-0-s0"))
    league.ask(EndProbe(ProbeOutcome(1, (played, computed), 1.0, remark="tactical is too slow")))
    assert [one.points[0].identity for one in series_of(league.state).values()] == ["0123", ""]
    text = probes_of(league.state, run="made up").text()
    assert text.count("[0.500, 0.500]") == text.count("exact") == 1
    assert "own left out: tactical is too slow" in text


def test_an_own_probe_is_one_line_of_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "length.py").write_text(OWN)
    name = f"{tmp_path / 'length.py'}:Length"
    (reading,) = make_probes([name])[name].measure(subject_of("kuhn_poker"))
    assert reading.value == 9.0


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("kinds: [yardstick]", "probes.kinds.0: "),
        ("kinds: [{kind: past, games: 1}]", "probes.kinds.0.games: 1 must be at least 2"),
        ("kinds: [past, exact, past]", "probes.kinds.2: past is there twice"),
        ("kinds: [{kind: exact, games: 1}]", "probes.kinds.0.games: unknown key"),
    ],
)
def test_a_mistake_in_a_probe_names_its_key(line: str, words: str) -> None:
    config = parse_config(f"env: {{id: kuhn_poker}}\nprobes: {{{line}}}", source="mine.yaml")
    with pytest.raises(ConfigError, match=words):
        require_working_sinks(config, source="mine.yaml")


@pytest.mark.parametrize(("share", "words"), [(0.0, "max_share: 0.0 is not in"), (0.9, "max_share: 0.9 is not in")])
def test_a_share_is_above_nothing_and_at_most_a_half(share: float, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        parse_config(f"env: {{id: kuhn_poker}}\nprobes: {{max_share: {share}}}", source="mine.yaml")
