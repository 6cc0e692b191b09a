"""Skills in games of teams and of many sides: hand-calculated updates, and recovery of known strengths."""

from __future__ import annotations

import math

import numpy as np
import pytest

from league.eval.skill import BETA, DEVIATION, MEAN, Skill, SkillTable, forecast, moved, skills_of


def test_one_game_of_two_moves_skills_as_the_published_algorithm_says() -> None:
    (first,), (second,) = moved([[Skill()], [Skill()]], [0, 1])
    width = math.sqrt(2 * DEVIATION**2 + 2 * BETA**2)
    shift = DEVIATION**2 / width * 0.5
    assert first.mean == pytest.approx(MEAN + shift)
    assert second.mean == pytest.approx(MEAN - shift)
    shrink = (DEVIATION / width) * DEVIATION**2 / width**2 * 0.25
    assert first.deviation == pytest.approx(DEVIATION * math.sqrt(1 - shrink))
    assert first.games == 1


def test_a_draw_of_equals_moves_no_mean_and_a_draw_of_unequals_brings_them_together() -> None:
    (first,), (second,) = moved([[Skill()], [Skill()]], [0, 0])
    assert first.mean == second.mean == MEAN
    (strong,), (weak,) = moved([[Skill(30.0, 3.0)], [Skill(20.0, 3.0)]], [0, 0])
    assert strong.mean < 30.0
    assert weak.mean > 20.0


def test_the_less_certain_member_of_a_team_moves_more() -> None:
    (sure, unsure), _ = moved([[Skill(25.0, 1.0), Skill(25.0, 6.0)], [Skill(), Skill()]], [0, 1])
    assert 0.0 < sure.mean - 25.0 < unsure.mean - 25.0


@pytest.mark.parametrize("members", [1, 2])
def test_strengths_are_recovered_from_free_for_all_games_of_teams(members: int) -> None:
    rng = np.random.default_rng(4)
    strength = dict(zip("abcdefgh", np.linspace(-2.0, 2.0, 8), strict=True))
    games = []
    for _ in range(400):
        drawn = rng.permutation(list(strength))[: 3 * members].reshape(3, members)
        scores = [sum(strength[p] for p in side) + rng.gumbel() for side in drawn]
        ranks = [int(rank) for rank in np.argsort(np.argsort(-np.array(scores)))]
        games.append(([list(side) for side in drawn], ranks))
    table = skills_of(games, {})
    means = [table.skills[policy].mean for policy in strength]
    assert np.corrcoef(means, list(strength.values()))[0, 1] > 0.93
    assert max(skill.deviation for skill in table.skills.values()) < DEVIATION / 2
    assert table.ranking()[0][0] in ("g", "h")


def test_known_skills_stay_fixed() -> None:
    table = skills_of([([["bot"], ["new"]], [1, 0])] * 30, {"bot": Skill(30.0, 1.0)})
    assert table.skills["bot"] == Skill(30.0, 1.0)
    assert table.skills["new"].mean > 28.0


def test_chances_of_two_sides_sum_to_one() -> None:
    assert sum(forecast([[Skill(28.0, 2.0)], [Skill(22.0, 4.0)]])) == pytest.approx(1.0)


@pytest.mark.parametrize(("sides", "ranks"), [([["a"]], [0]), ([["a"], []], [0, 1]), ([["a"], ["b"]], [0])])
def test_what_is_no_game_is_refused(sides: list, ranks: list) -> None:
    with pytest.raises(ValueError, match="at least two sides"):
        SkillTable().book(sides, ranks)
