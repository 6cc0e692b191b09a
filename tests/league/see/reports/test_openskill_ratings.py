"""Skills from placements: planted strengths come out, partners are told apart, the same journal says the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openskill.models import PlackettLuce

from league.core.metagame.ratings import PairGames, most_probable_ratings
from league.core.state.events import LeaseFinished
from league.core.state.records import AssignmentOutcome
from league.envs.placements import has_placements
from league.judge.tournaments.openskill_ratings import SkillRow, games_of, openskill_ratings, skills_of
from tests.league.commands import league
from tests.league.tiny_runs import events_of, go_on, start, state_of, tiny

THREE, TWO_PAIRS = (0, 1, 2), (0, 1, 0, 1)
STRENGTHS = {"ace": 2.0, "king": 1.0, "queen": 0.0, "jack": -1.0}


def outcome_from(
    policies: Sequence[str], teams: Sequence[int], placements: Sequence[tuple[int, ...]]
) -> AssignmentOutcome:
    """The totals of games that finished in these orders, one for each."""
    sides = list(dict.fromkeys(teams))
    ranks = np.array(placements).reshape(-1, len(sides))[:, [sides.index(team) for team in teams]]
    opponents = np.not_equal.outer(teams, teams)
    wins = (ranks[:, :, None] < ranks[:, None, :]).sum(axis=0) * opponents
    draws = (ranks[:, :, None] == ranks[:, None, :]).sum(axis=0) * opponents
    return AssignmentOutcome(
        policies=tuple(policies),
        games=len(placements),
        aborted=0,
        decisions=len(placements),
        wins=tuple(map(tuple, wins.tolist())),
        draws=tuple(map(tuple, draws.tolist())),
        return_sums=(0.0,) * len(teams),
        placements=tuple(sorted(Counter(map(tuple, placements)).items())) if has_placements(teams) else (),
    )


def played(
    policies: Sequence[str],
    teams: Sequence[int],
    *,
    games: int,
    rng: np.random.Generator,
    strength: Mapping[str, float] = STRENGTHS,
) -> AssignmentOutcome:
    """Games in which a team is as strong as its members together (Plackett and Luce's chances of the orders)."""
    sides = list(dict.fromkeys(teams))
    together = [sum(strength[p] for p, team in zip(policies, teams, strict=True) if team == side) for side in sides]
    drawn = np.array(together) + rng.gumbel(size=(games, len(sides)))
    placements = (drawn[:, None, :] > drawn[:, :, None]).sum(axis=2)
    return outcome_from(policies, teams, [tuple(order) for order in placements.tolist()])


def by_name(rows: Sequence[SkillRow]) -> dict[str, SkillRow]:
    return {row.policy: row for row in rows}


@pytest.mark.parametrize("alone", [True, False], ids=["everyone for itself", "two teams of one policy"])
def test_a_planted_order_of_skills_comes_out_of_games_of_three(alone: bool) -> None:
    rng = np.random.default_rng(4)
    names = list(STRENGTHS)
    outcomes = []
    for _ in range(60):
        first, second, third = rng.choice(names, size=3, replace=False).tolist()
        table = rng.permutation([first, second, third if alone else second]).tolist()
        outcomes.append(played(table, THREE, games=12, rng=rng))
    rows = skills_of(outcomes, THREE)
    assert [row.policy for row in rows] == names
    assert [row.mu for row in rows] == sorted((row.mu for row in rows), reverse=True)
    assert all(row.sigma < 2.0 and row.ordinal == row.mu - 3.0 * row.sigma for row in rows)
    played_by = Counter({name: sum(o.games for o in outcomes if name in o.policies) for name in names})
    assert {row.policy: row.games for row in rows} == played_by


def test_a_strong_and_a_weak_partner_are_rated_apart() -> None:
    """`able` with the worst partner and `unable` with the best win half of their games: pairs of seats are level."""
    even, always, never = [(0, 1), (1, 0)] * 4, [(0, 1)] * 8, [(1, 0)] * 8
    games = [
        (("able", "rest", "dead weight", "rest"), even),
        (("unable", "rest", "champion", "rest"), even),
        (("champion", "rest", "champion", "rest"), always),
        (("dead weight", "rest", "dead weight", "rest"), never),
    ]
    outcomes = [outcome_from(policies, TWO_PAIRS, placements) for policies, placements in games * 8]
    rows = by_name(skills_of(outcomes, TWO_PAIRS))
    assert rows["able"].mu - rows["unable"].mu > 3.0 * (rows["able"].sigma + rows["unable"].sigma)
    assert rows["champion"].mu > rows["rest"].mu > rows["dead weight"].mu
    able, unable = most_probable_ratings(
        3,
        PairGames(np.array([0, 1]), np.array([2, 2]), score=_pair_scores(outcomes), games=np.array([64.0, 64.0])),
        parents=np.array([-1, -1, -1]),
        anchor=2,
        parent_draws=1.0,
    )[:2]
    assert able == unable


def _pair_scores(outcomes: list[AssignmentOutcome]) -> np.ndarray:
    """Games that `able` and `unable` won against `rest`, as pairs of seats count them."""
    return np.array(
        [sum(o.wins[0][1] for o in outcomes if o.policies[0] == name) for name in ("able", "unable")], float
    )


@pytest.mark.parametrize("teams", [(0, 1), THREE, (3, 1, 2, 0)], ids=str)
def test_seats_of_different_policies_are_rated_as_openskill_does_by_itself(teams: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1)
    names = [f"p{seat}" for seat in range(len(teams))]
    model = PlackettLuce(tau=0.0)
    expected = [[model.rating()] for _ in names]
    outcomes = []
    for _ in range(20):
        order = rng.integers(0, 2, len(teams))
        ranks = tuple((order[:, None] > order[None, :]).sum(axis=1).tolist())
        outcomes.append(outcome_from(names, teams, [ranks]))
        expected = model.rate(expected, ranks=[float(rank) for rank in ranks])
    rows = by_name(skills_of(outcomes, teams))
    for name, (skill,) in zip(names, expected, strict=True):
        assert (rows[name].mu, rows[name].sigma) == pytest.approx((skill.mu, skill.sigma), rel=1e-12)


def test_a_policy_in_several_teams_loses_what_its_only_opponent_wins() -> None:
    rows = by_name(skills_of([outcome_from(("a", "b", "b"), THREE, [(0, 1, 2)])], THREE))
    assert rows["a"].mu - 25.0 == pytest.approx(25.0 - rows["b"].mu)
    assert rows["a"].mu > 26.0


def test_where_a_policy_sits_in_its_team_changes_nothing() -> None:
    rng = np.random.default_rng(2)
    tables = [rng.choice(list(STRENGTHS), size=4).tolist() for _ in range(20)]
    outcomes = [played(table, TWO_PAIRS, games=9, rng=rng) for table in tables]
    turned = [_with_policies(outcome, (2, 3, 0, 1)) for outcome in outcomes]
    for name, row in by_name(skills_of(outcomes, TWO_PAIRS)).items():
        other = by_name(skills_of(turned, TWO_PAIRS))[name]
        assert (row.mu, row.sigma) == pytest.approx((other.mu, other.sigma))


def _with_policies(outcome: AssignmentOutcome, seats: tuple[int, ...]) -> AssignmentOutcome:
    fields = {name: getattr(outcome, name) for name in outcome.__dataclass_fields__}
    return AssignmentOutcome(**{**fields, "policies": tuple(outcome.policies[seat] for seat in seats)})


def test_a_team_of_one_policy_is_as_uncertain_as_that_policy_and_not_less() -> None:
    """The first games of five against five move nobody further than the first games of one against one."""
    fives = (0, 1) * 5
    alone = by_name(skills_of([outcome_from(("a", "b"), (0, 1), [(0, 1)])], (0, 1)))["a"]
    five = by_name(skills_of([outcome_from(("a", "b") * 5, fives, [(0, 1)])], fives))["a"]
    assert 25.0 < five.mu < alone.mu + 1.0


def test_games_of_a_policy_with_itself_say_nothing() -> None:
    games = [(0, 1), (0, 1), (1, 0)]
    assert skills_of([outcome_from(("a", "a"), (0, 1), games)], (0, 1)) == ()
    assert skills_of([outcome_from(("a", "b", "b", "a"), TWO_PAIRS, games)], TWO_PAIRS) == ()


def test_journals_without_orders_are_rated_by_wins_where_there_are_two_teams() -> None:
    def without(outcome: AssignmentOutcome) -> AssignmentOutcome:
        fields = {name: getattr(outcome, name) for name in outcome.__dataclass_fields__}
        return AssignmentOutcome(**{**fields, "placements": ()})

    pairs = outcome_from(("a", "b", "c", "b"), TWO_PAIRS, [(0, 1), (0, 1), (0, 0), (1, 0)])
    assert skills_of([without(pairs)], TWO_PAIRS) == skills_of([pairs], TWO_PAIRS) != ()
    three = outcome_from(("a", "b", "c"), THREE, [(0, 1, 2)])
    assert skills_of([without(three)], THREE) == ()


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.lists(st.integers(1, 60), min_size=1, max_size=6), st.integers(1, 20))
def test_of_many_games_every_order_keeps_its_share_by_largest_remainders(times: list[int], most: int) -> None:
    placements = tuple(((place,), number) for place, number in enumerate(times))
    chosen = Counter(ranks[0] for ranks in games_of(placements, most=most))
    total = sum(times)
    assert chosen.total() == min(most, total)
    if total <= most:
        assert chosen == dict(enumerate(times))
        return
    shares = [Fraction(most * number, total) for number in times]
    assert all(-1 < chosen[place] - share < 1 for place, share in enumerate(shares))
    up = [share % 1 for place, share in enumerate(shares) if chosen[place] > share]
    down = [share % 1 for place, share in enumerate(shares) if chosen[place] < share]
    assert not up or not down or min(up) >= max(down)


def test_the_games_of_an_order_are_spread_among_the_others() -> None:
    assert list(games_of((((0, 1), 4), ((1, 0), 2)), most=16)) == [(0, 1), (1, 0), (0, 1), (0, 1), (1, 0), (0, 1)]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Env id -> a run of it in one go, with its like that was stopped and resumed beside it as `stopped`."""
    made: dict[str, Path] = {}

    def of(env_id: str) -> Path:
        if env_id not in made:
            folder = tmp_path_factory.mktemp("made")
            plain = tiny(env={"id": env_id}, league={"ratings": {"step_fraction": 0.4, "final_leases": 0}})
            start(folder, plain, env_steps=2_000)
            start(folder, plain, env_steps=700, run="stopped")
            go_on(folder / "stopped", env_steps=1_300)
            made[env_id] = folder / "run"
        return made[env_id]

    return of


GAMES = ("three_seat_rock_paper_scissors", "team_rock_paper_scissors", "tic_tac_toe")


@pytest.mark.parametrize("env_id", GAMES)
def test_a_resumed_run_has_the_skills_of_one_that_never_stopped(env_id: str, runs: Callable[[str], Path]) -> None:
    run = runs(env_id)
    rows = openskill_ratings(events_of(run))
    assert len(rows) > 2
    assert rows == openskill_ratings(events_of(run.parent / "stopped"))


@pytest.mark.parametrize("env_id", GAMES)
def test_rating_matches_alone_are_rated_and_every_one_of_them(env_id: str, runs: Callable[[str], Path]) -> None:
    run = runs(env_id)
    state, rows = state_of(run), openskill_ratings(events_of(run))
    assert {row.policy for row in rows} <= set(state.snapshots)
    rated = {name: int(state.rating_games.values[state.population.index[name]]) for name in state.snapshots}
    assert {row.policy: row.games for row in rows} == {name: games for name, games in rated.items() if games}


@pytest.mark.parametrize("env_id", GAMES)
def test_the_journal_holds_orders_only_where_wins_do_not_say_it_all(env_id: str, runs: Callable[[str], Path]) -> None:
    outcomes = [
        outcome
        for event in events_of(runs(env_id))
        if isinstance(event, LeaseFinished)
        for outcome in event.outcomes
        if outcome.games
    ]
    assert outcomes
    assert all(bool(outcome.placements) == (env_id != "tic_tac_toe") for outcome in outcomes)


def test_the_command_shows_skills_and_says_where_they_say_more(runs: Callable[[str], Path]) -> None:
    run = runs("three_seat_rock_paper_scissors")
    plain = league("ratings", run, "--model", "openskill", "--json").json
    assert [tuple(row.values()) for row in plain["rows"]] == [
        (row.policy, row.mu, row.sigma, row.ordinal, row.games) for row in openskill_ratings(events_of(run))
    ]
    assert [set(row) for row in plain["rows"][:1]] == [{"policy", "mu", "sigma", "ordinal", "games"}]
    text = league("ratings", run, "--model", "openskill").out
    assert all(word in text.splitlines()[0] for word in ("mu", "sigma", "ordinal", "games"))
    assert text.count("\n") == len(plain["rows"]) + 2
    assert "elo" in league("ratings", run, "--json").json["rows"][0]
    hints = [league("ratings", runs(env_id)).out.count("--model openskill") for env_id in GAMES]
    assert hints == [1, 1, 0]
