"""`--search N`: policies of any game that can be copied search before each move of a match."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from league.envs.protocol import EnvConfig
from tests.league.commands import league
from tests.league.judge.matches.eval_runs import TINY_LSTM, MadeRun, constant_network, network_of


def run_of(path: Path, env: str, *, action: int | None = None, **settings: object) -> Path:
    """A run with two snapshots; `action`: that they always play if it is legal."""
    made = MadeRun(path, env=EnvConfig(env), **settings)  # type: ignore[arg-type]
    for number in range(2):
        network = network_of(made.config, seed=number)
        made.snapshot("main-0", network if action is None else constant_network(made.config, action=action + number))
    made.close()
    return path


def test_a_search_saves_a_policy_that_sees_nothing(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", "tic_tac_toe", action=0)
    words = ["eval", run, "--players", "main-0-s0", "--bots", "random", "--games", 40, "--trust"]
    plain, searched = (league(*words, *more, "--json", tmp_path / "r.json") for more in ([], ["--search", "200"]))
    assert plain.code == searched.code == 0, searched.err
    assert "likeliest action, no search" in plain.out
    assert "most visited action of 200 simulations" in searched.out
    score = [float(done.out.split("random")[1].split()[0]) for done in (plain, searched)]
    assert score[1] > score[0] + 0.15 and score[1] > 0.9


def test_contenders_search_too(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", "tic_tac_toe", action=0)
    done = league("match", f"{run}:main-0-s0", "bot:random", "--games", 20, "--search", 100, "--trust")
    assert done.code == 0 and "most visited action of 100 simulations of networks" in done.out


def test_contenders_of_a_tournament_search_also_once_it_is_continued(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", "tic_tac_toe", action=0)
    words = ["tournament", f"{run}:main-0-s0", "bot:random", "--games", 40, "--batch-games", 20, "--jobs", 1, "--trust"]
    plain = league(*words, "--out", tmp_path / "plain", "--json").json
    out = tmp_path / "searched"
    searched = league(*words, "--out", out, "--search", 100)
    assert searched.code == 0 and "most visited action of 100 simulations of networks" in searched.out, searched.err
    again = league("tournament", "--out", out, "--json").json

    def score(report: dict[str, Any]) -> Any:
        return next(row["score"] for row in report["standings"] if "main-0-s0" in row["name"])

    assert score(again) > score(plain) + 0.15 and score(again) > 0.9
    other = league(*words, "--out", out, "--search", 50)
    assert other.code == 2 and "holds another tournament: search differ" in other.err


def test_a_tournament_that_cannot_search_is_refused_before_it_begins(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", "kuhn_poker")
    done = league("tournament", f"{run}:main-0-s0", "bot:random", "--search", 9, "--out", tmp_path / "t", "--trust")
    assert done.code == 2 and "--search 9: search tries moves out on copies" in done.err


@pytest.mark.parametrize(
    ("env", "settings", "sentence"),
    [
        ("kuhn_poker", {}, "--search 100: search tries moves out on copies, which would show a seat what kuhn_poker"),
        ("rock_paper_scissors", {}, "in rock_paper_scissors several do"),
        ("tic_tac_toe", {"network": TINY_LSTM}, "search needs a network without memory; set network.core: none"),
    ],
)
def test_a_game_or_network_that_cannot_be_searched_is_refused_in_one_sentence(
    tmp_path: Path, env: str, settings: dict[str, object], sentence: str
) -> None:
    run = run_of(tmp_path / "run", env, **settings)
    done = league("match", f"{run}:main-0-s0", f"{run}:main-0-s1", "--games", 4, "--search", 100, "--trust")
    assert done.code == 2 and sentence in done.err and len(done.err.strip().splitlines()) == 1
