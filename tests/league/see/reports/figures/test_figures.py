"""The figures of a league, against the same numbers counted one by one from its events."""

from __future__ import annotations

from collections import Counter

import msgspec
import numpy as np
import pytest

from league.core.metagame.alpha_rank import alpha_rank
from league.core.metagame.cycles import league_cycles
from league.core.metagame.lineage import Lineage, LineageNode, OpponentGames, lineage_of
from league.core.metagame.meta_game import own_snapshots, snapshot_win_rates
from league.core.metagame.ratings import league_ratings
from league.core.state.commands import BeginProbe, EndProbe
from league.core.state.events import LeaseFinished
from league.core.state.records import ProbeOutcome, ProbeReading
from league.core.state.state import LeagueState
from league.errors import LeagueError
from league.policies.nash_lp import nash
from league.run.monitor.jsonl_sink import MetricRow
from league.see.reports.figures.comparison import comparison
from league.see.reports.figures.curves import player_curves, run_curves, series_of
from league.see.reports.figures.extent import page_of, spread
from league.see.reports.figures.lineage_graph import MAX_NODES, lineage_graph
from league.see.reports.figures.meta_game import meta_game
from league.see.reports.figures.opponent_mix import opponent_mix
from league.see.reports.figures.payoff_matrix import cluster_order, natural, payoff_matrix
from league.see.reports.figures.ratings_over_time import ratings_over_time
from league.see.reports.figures.yardsticks import yardsticks
from tests.league.core.simulated_league import SimulatedLeague, three_roles
from tests.league.see.reports.figures.made_leagues import BOT, made_league


def frozen_games() -> tuple[Counter[tuple[str, str, int]], Counter[tuple[str, str, int]]]:
    """Games and scores of every ordered pair by the first one's seat, counted from the events one by one."""
    games: Counter[tuple[str, str, int]] = Counter()
    scores: Counter[tuple[str, str, int]] = Counter()
    for event in made_league().journal:
        for outcome in event.outcomes if isinstance(event, LeaseFinished) else ():
            for seat, other in ((0, 1), (1, 0)):
                key = (outcome.policies[seat], outcome.policies[other], seat)
                games[key] += outcome.games
                scores[key] += outcome.wins[seat][other] + 0.5 * outcome.draws[seat][other]  # type: ignore[assignment]
    return games, scores


@pytest.mark.parametrize("seat", [None, 0, 1])
def test_every_cell_of_frozen_policies_holds_the_games_of_the_journal(seat: int | None) -> None:
    state = made_league().state
    matrix = payoff_matrix(state, league_ratings(state), seat=seat, limit=100)
    names = [policy.policy for policy in matrix.policies]
    games, scores = frozen_games()
    seats = (0, 1) if seat is None else (seat,)
    played = {
        (home, away): sum(games[home, away, number] for number in seats)
        for home in names
        for away in names
        if home != away and any(games[home, away, number] for number in seats)
    }
    assert {(names[cell.row], names[cell.column]): cell.games for cell in matrix.cells} == played
    assert played
    for cell in matrix.cells:
        home, away = names[cell.row], names[cell.column]
        score = sum(scores[home, away, number] for number in seats)
        assert cell.win_rate == pytest.approx(score / cell.games)
        assert cell.effective_games == pytest.approx(cell.games)  # frozen policies do not move on
        assert 0.0 <= cell.low < cell.high <= 1.0


def test_rows_come_strongest_first_and_pages_of_them_join_without_a_gap() -> None:
    state = made_league().state
    ratings = league_ratings(state)
    whole = payoff_matrix(state, ratings, limit=100)
    names = [policy.policy for policy in whole.policies]
    assert names == [row.policy for row in ratings if row.games][: len(names)]
    pages = [payoff_matrix(state, ratings, offset=offset, limit=5) for offset in range(0, len(names), 5)]
    assert [policy.policy for page in pages for policy in page.policies] == names
    assert pages[1].extent.offset == 5 and pages[1].extent.total == len(names) == whole.extent.shown
    assert {policy.kind for policy in whole.policies} == {"snapshot", "fixed opponent"}
    players = payoff_matrix(state, ratings, who="players")
    assert {policy.policy for policy in players.policies} == set(state.players)
    assert payoff_matrix(state, ratings, who="all").extent.total == len(state.population)


def test_each_order_holds_every_row_once_and_names_sort_by_their_numbers() -> None:
    state = made_league().state
    matrix = payoff_matrix(state, league_ratings(state))
    size = len(matrix.policies)
    assert all(sorted(order) == list(range(size)) for order in matrix.orders.values())
    assert sorted(["main-0-s10", "main-0-s9", "bot:a"], key=natural) == ["bot:a", "main-0-s9", "main-0-s10"]
    assert sorted(["a2²1", "a10", "²"], key=natural) == ["a2²1", "a10", "²"]


def test_rows_that_fare_alike_stand_together() -> None:
    rng = np.random.default_rng(0)
    kinds = np.array([0, 1, 2, 1, 0, 2, 2, 1, 0])
    profiles = 10.0 * np.eye(3)[kinds] + rng.normal(size=(9, 3))
    ordered = kinds[list(cluster_order(profiles))]
    assert np.count_nonzero(np.diff(ordered)) == 2
    assert cluster_order(np.zeros((0, 0))) == () and cluster_order(np.zeros((1, 1))) == (0,)


def averages_linked(profiles: np.ndarray) -> tuple[int, ...]:
    """Average linkage by its definition: the two groups of the least mean distance of their members are joined."""
    groups = [(index,) for index in range(len(profiles))]
    while len(groups) > 1:
        pairs = [(a, b) for b in range(len(groups)) for a in range(b)]
        means = {
            (a, b): np.mean([np.linalg.norm(profiles[i] - profiles[j]) for i in groups[a] for j in groups[b]])
            for a, b in pairs
        }
        first, second = min(pairs, key=means.__getitem__)
        groups[first] += groups.pop(second)
    return groups[0]


@pytest.mark.parametrize("seed", range(5))
def test_the_order_is_that_of_average_linkage(seed: int) -> None:
    profiles = np.random.default_rng(seed).normal(size=(9, 3))
    assert cluster_order(profiles) == averages_linked(profiles)


def test_a_wrong_group_or_seat_is_one_sentence() -> None:
    state = made_league().state
    with pytest.raises(LeagueError, match="'frozn', only frozen, players, all; did you mean frozen"):
        payoff_matrix(state, (), who="frozn")
    with pytest.raises(LeagueError, match="seats 0 to 1, not 2"):
        payoff_matrix(state, (), seat=2)


def test_curves_hold_every_rated_snapshot_in_the_order_of_its_training() -> None:
    state = made_league().state
    ratings = league_ratings(state)
    figure = ratings_over_time(state, ratings)
    rated = {row.policy: row for row in ratings if row.games}
    shown = [point for curve in figure.curves for point in curve.points]
    assert {point.policy for point in shown} | {point.policy for point in figure.fixed} == set(rated)
    assert [point.policy for point in figure.fixed] == [BOT]
    for curve in figure.curves:
        steps = [point.trained_steps for point in curve.points]
        assert steps == sorted(steps)
        assert list(state.players)[curve.index] == curve.player
        assert curve.role == state.players[curve.player].role
        for point in curve.points:
            row = rated[point.policy]
            assert (point.elo, point.low, point.high, point.games) == (row.elo, row.low, row.high, row.games)
            assert state.snapshots[point.policy].trained_steps == point.trained_steps
    best = [max(point.elo for point in curve.points) for curve in figure.curves]
    assert best == sorted(best, reverse=True)


def test_yardsticks_show_the_games_of_snapshots_with_fixed_opponents() -> None:
    figure = yardsticks(made_league().state)
    games, scores = frozen_games()
    met = {home: games[home, away, 0] + games[home, away, 1] for home, away, _ in games if away == BOT and "-s" in home}
    points = {point.snapshot: point for curve in figure.curves for point in curve.points}
    assert {name: point.games for name, point in points.items()} == met
    assert met
    for name, point in points.items():
        assert point.score * point.games == pytest.approx(scores[name, BOT, 0] + scores[name, BOT, 1])
        assert point.low < point.score < point.high or point.score in (0.0, 1.0)
    assert figure.yardsticks.total == 1


def test_of_many_players_those_are_shown_whose_newest_snapshot_scores_best(monkeypatch: pytest.MonkeyPatch) -> None:
    state = made_league().state
    newest = {curve.player: curve.points[-1].score for curve in yardsticks(state).curves}
    monkeypatch.setattr("league.see.reports.figures.yardsticks.MAX_PLAYERS", 1)
    (curve,) = yardsticks(state).curves
    assert len(newest) > 1 and newest[curve.player] == max(newest.values())


def test_probes_are_shown_reading_by_reading() -> None:
    league = SimulatedLeague(three_roles())
    league.run(4)
    for number, value in enumerate((0.25, 0.5), start=1):
        league.ask(BeginProbe("exact", "main-0-s0"))
        reading = ProbeReading("nash_conv", value, value - 0.1, value + 0.1, 7, "loss", "a note")
        league.ask(EndProbe(ProbeOutcome(number, (reading,), 1.0)))
    (curve,) = yardsticks(league.state).probes
    assert (curve.probe, curve.yardstick, curve.scale) == ("exact", "nash_conv", "loss")
    assert [(point.value, point.low, point.games) for point in curve.points] == [(0.25, 0.15, 7), (0.5, 0.4, 7)]
    assert {point.env_steps for point in curve.points} == {league.state.totals.env_steps}


def test_the_meta_game_is_that_of_all_snapshots_where_they_are_few() -> None:
    state = made_league().state
    figure = meta_game(state, league_ratings(state))
    names = own_snapshots(state)
    assert sorted(member.policy for member in figure.members) == sorted(names)
    win_rates = snapshot_win_rates(state, names)
    members = {member.policy: member for member in figure.members}
    np.testing.assert_allclose([members[name].nash for name in names], nash(win_rates), atol=1e-9)
    np.testing.assert_allclose([members[name].alpha_rank for name in names], alpha_rank(win_rates))
    cycles = league_cycles(state)
    assert cycles is not None
    assert (figure.cyclic_fraction, figure.num_cycles) == (cycles.cyclic_fraction, cycles.num_cycles)
    weights = [round(member.nash, 6) for member in figure.members]
    assert weights == sorted(weights, reverse=True)


def test_nothing_is_compared_before_the_first_snapshots() -> None:
    state = LeagueState()
    assert meta_game(state, ()).members == ()
    assert lineage_graph(Lineage((), ()), ()).nodes == ()
    assert payoff_matrix(state, ()).policies == ()
    assert ratings_over_time(state, ()).curves == ()
    assert yardsticks(state).curves == ()
    assert opponent_mix(Lineage((), ()), "main-0").spans == ()


def test_the_graph_holds_every_snapshot_behind_its_parent() -> None:
    league = made_league()
    lineage = lineage_of(league.journal)
    graph = lineage_graph(lineage, league_ratings(league.state))
    assert [node.snapshot for node in graph.nodes] == list(league.state.snapshots)
    assert {node.kind for node in graph.nodes} >= {"first", "trained", "reset"}
    for place, node in enumerate(graph.nodes):
        assert graph.lanes[node.lane] == node.player
        assert node.skipped == 0
        assert (node.link is None) == (node.parent is None)
        if node.link is not None:
            assert node.link < place and graph.nodes[node.link].snapshot == node.parent
    steps = [node.league_steps for node in graph.nodes]
    newest = {node.player: node.trained_steps for node in graph.nodes}
    assert steps == sorted(steps) and steps[-1] == sum(newest.values())


def chain(lanes: int, length: int) -> Lineage:
    """Lanes of snapshots in turn; each tenth one of a lane but the first descends from the first lane's newest."""
    nodes = []
    for number in range(length):
        for lane in range(lanes):
            moved = lane and number and number % 10 == 0
            parent = None if not number else f"p{0 if moved else lane}-s{number - 1}"
            nodes.append(
                LineageNode(
                    f"p{lane}-s{number}",
                    f"p{lane}",
                    "main_agent",
                    "timeout",
                    parent,
                    "reset" if moved else "trained",
                    None,
                    number,
                    100 * number,
                    (),
                    (),
                    (),
                )
            )
    return Lineage(tuple(nodes), ())


def test_a_large_graph_keeps_its_ends_and_what_happened_and_counts_what_it_leaves_out() -> None:
    lineage = chain(4, 500)
    graph = lineage_graph(lineage, (), limit=2)
    shown = {node.snapshot for node in graph.nodes}
    assert graph.lanes == ("p0", "p1") and graph.players.total == 4
    assert len(shown) <= MAX_NODES and graph.snapshots.total == 1_000
    assert {"p0-s0", "p1-s0", "p0-s499", "p1-s499"} <= shown
    assert {f"p1-s{number}" for number in range(10, 500, 10)} <= shown
    parents = {node.snapshot: node.parent for node in lineage.descents}
    for node in graph.nodes:
        ancestor, between = parents[node.snapshot], 0
        while ancestor is not None and ancestor not in shown:
            ancestor, between = parents[ancestor], between + 1
        linked = None if node.link is None else graph.nodes[node.link].snapshot
        assert (linked, node.skipped) == (ancestor, between)


def test_the_mix_of_a_player_holds_its_games_by_opponent() -> None:
    league = made_league()
    lineage = lineage_of(league.journal)
    for player in league.state.players:
        mix = opponent_mix(lineage, player)
        nodes = {node.snapshot: node for node in lineage.descents if node.player == player}
        assert mix.spans
        for span in mix.spans:
            met = nodes[span.snapshot].opponent_mix
            assert span.games == sum(one.games for one in met)
            assert sum(span.shares) == pytest.approx(1.0)
            score = sum(
                share * span.games * mean
                for share, mean in zip(span.shares, span.scores, strict=True)
                if mean is not None
            )
            assert score == pytest.approx(sum(one.score for one in met))
            itself = sum(one.games for one in met if one.opponent == player)
            if "itself" in mix.opponents:
                assert span.shares[mix.opponents.index("itself")] * span.games == pytest.approx(itself)


def test_opponents_met_rarely_are_one_share() -> None:
    met = tuple(OpponentGames(f"bot:{number}", 10 * (number + 1), 2.0 * number) for number in range(10))
    node = LineageNode("p-s1", "p", "main_agent", "timeout", None, "trained", None, 1, 100, (), (), opponent_mix=met)
    mix = opponent_mix(Lineage((node,), ()), "p")
    (span,) = mix.spans
    assert mix.opponents == (*(f"bot:{number}" for number in range(9, 2, -1)), "others")
    assert span.shares[-1] == pytest.approx((10 + 20 + 30) / 550)
    assert span.scores[-1] == pytest.approx((0.0 + 2.0 + 4.0) / 60)


def test_curves_take_the_reported_values_and_leave_out_what_was_never_reported() -> None:
    rows = [
        MetricRow(step, 0.0, {"league/games": 2.0 * step, "learner/main-0/entropy": 1.0 / (1 + step)})
        for step in range(1_000)
    ]
    series = series_of(rows)
    (games,) = run_curves(series)
    assert (games.label, games.unit, games.steps[0], games.steps[-1]) == ("games", "games", 0.0, 999.0)
    assert len(games.steps) == 300
    assert all(value == 2.0 * step for step, value in zip(games.steps, games.values, strict=True))
    (entropy,) = player_curves(series, "main-0").curves
    assert entropy.metric == "learner/main-0/entropy" and entropy.unit == "nats"
    assert player_curves(series, "main-1").curves == ()


def test_a_comparison_lists_the_settings_that_differ_and_no_others() -> None:
    series = series_of([MetricRow(5, 0.0, {"league/games": 7.0})])
    curves = run_curves(series)
    one = {"seed": 0, "league": {"players": [{"role": "main_agent"}]}, "network": {"hidden": [8]}}
    other = {"seed": 0, "league": {"players": [{"role": "x"}, {"role": "y"}]}, "network": {"hidden": [8, 8]}}
    both = comparison([("a", one, curves), ("b", other, ())])
    assert {difference.key: difference.values for difference in both.settings} == {
        "league.players.0.role": ('"main_agent"', '"x"'),
        "league.players.1.role": ("", '"y"'),
        "network.hidden": ("[8]", "[8, 8]"),
    }
    (shared,) = both.curves
    assert [(curve.run, curve.steps, curve.values) for curve in shared.runs] == [("a", (5.0,), (7.0,))]


def test_a_page_of_a_list_stays_inside_it() -> None:
    items = list(range(10))
    assert list(page_of(items, what="things", offset=8, limit=5, most=4)[0]) == [8, 9]
    assert list(page_of(items, what="things", offset=-3, limit=0, most=4)[0]) == [0]
    assert list(page_of(items, what="things", offset=0, limit=99, most=4)[0]) == [0, 1, 2, 3]
    assert page_of(items, what="things", offset=99, limit=99, most=4)[1].offset == 9
    assert page_of([], what="things", offset=3, limit=3, most=4)[1].shown == 0


def test_a_spread_is_even_and_holds_both_ends() -> None:
    assert spread(3, 5) == [0, 1, 2] and spread(0, 5) == []
    chosen = spread(1_000, 7)
    assert len(chosen) == 7 and chosen[0] == 0 and chosen[-1] == 999
    assert np.ptp(np.diff(chosen)) <= 1


def test_every_figure_comes_back_from_json_as_it_was() -> None:
    league = made_league()
    ratings, lineage = league_ratings(league.state), lineage_of(league.journal)
    for figure in (
        payoff_matrix(league.state, ratings),
        ratings_over_time(league.state, ratings),
        yardsticks(league.state),
        meta_game(league.state, ratings),
        lineage_graph(lineage, ratings),
        opponent_mix(lineage, "main-0"),
    ):
        assert msgspec.json.decode(msgspec.json.encode(figure), type=type(figure)) == figure
