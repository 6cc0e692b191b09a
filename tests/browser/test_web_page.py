"""Policies in the browser: pages compute their networks, keep the rules of their games, and are played by people."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from playwright.sync_api import Browser, Page, expect

from league.agents.nets.config import NetworkConfig
from league.agents.nets.network import Network, build_network
from league.deploy.export.graphs import make_graphs
from league.deploy.export.inputs import random_inputs
from league.deploy.export.step_module import StepModule, run_steps
from league.deploy.export.web_page import FOLDER
from league.envs.protocol import EnvConfig, EnvSpec
from league.envs.registry import make, spec_of
from tests.browser.conftest import check_axe

RULES = (FOLDER / "rules.js").read_text()


@pytest.fixture(scope="module")
def page(chromium: Browser) -> Iterator[Page]:
    """A page that reaches no network; an error of a script fails the test that made it."""
    context = chromium.new_context(offline=True)
    found = context.new_page()
    faults: list[str] = []
    found.on("pageerror", lambda error: faults.append(str(error)))
    found.on("console", lambda said: faults.append(said.text) if said.type == "error" else None)
    yield found
    context.close()
    assert faults == []


@dataclass(frozen=True)
class Written:
    """A page, and the network that it plays."""

    spec: EnvSpec
    network: Network
    path: Path


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Written]:
    """A game with its rules in the page and a network of convolutions, and one without and with memory."""
    configs = {
        "tic_tac_toe": NetworkConfig(encoder="conv", channels=(4,), hidden=(8,)),
        "kuhn_poker": NetworkConfig(hidden=(8,), core="lstm", core_size=4),
    }
    found = {}
    for game, config in configs.items():
        spec, folder = spec_of(EnvConfig(game)), tmp_path_factory.mktemp(game)
        network = build_network(spec, config, seed=1).eval().requires_grad_(False)
        ((graph, content),) = make_graphs(["web"], network, spec, member="main-0-s7", stem="model")
        (folder / graph.file).write_bytes(content)
        found[game] = Written(spec, network, folder / graph.file)
    return found


@pytest.mark.parametrize("game", ["tic_tac_toe", "kuhn_poker"])
def test_a_page_computes_its_network_over_rows_and_steps_of_memory(
    game: str, page: Page, pages: dict[str, Written]
) -> None:
    made = pages[game]
    page.goto(made.path.as_uri())
    assert page.evaluate("() => policy.difference()") <= 1e-5

    def run(*tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        given = [[list(one.shape), one.double().flatten().tolist()] for one in tensors]
        found = page.evaluate(
            "given => policy.run(given.map(([shape, data]) => np.tensor(shape, Float64Array.from(data))))"
            ".map(one => [one.shape, [...one.data]])",
            given,
        )
        return tuple(torch.tensor(data).reshape(shape) for shape, data in found)

    module = StepModule(made.network, made.spec)
    inputs = random_inputs(made.spec, rows=5, steps=2, seed=3)
    for wanted, found in zip(run_steps(module, module, inputs, 5), run_steps(module, run, inputs, 5), strict=True):
        for one, other in zip(wanted, found, strict=True):
            torch.testing.assert_close(other, one, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("game", ["connect_four", "tic_tac_toe", "othello"])
def test_the_rules_of_a_page_are_those_of_the_game(game: str, page: Page) -> None:
    env, rng, moves = make(EnvConfig(game), num_envs=1), np.random.default_rng(5), []
    turn, games = env.reset(0), 0
    while games < 4:
        assert turn.action_mask is not None
        action = int(rng.choice(np.flatnonzero(turn.action_mask[0])))
        shown = turn.obs["board"][0].astype(int).ravel().tolist(), turn.action_mask[0].tolist()
        turn = env.step(np.array([action]))
        ended = bool(turn.ended[0])
        games += ended
        first = int(turn.rewards[0, 0])
        moves.append((*shown, action, {1: 0, -1: 1, 0: -1}[first] if ended else None))
    page.goto("about:blank")
    differs = page.evaluate(
        f"""moves => {{
          {RULES}
          const rules = RULES.games[{json.dumps(game)}];
          let state = rules.begin();
          return moves.findIndex(([board, mask, action, winner]) => {{
            const same = JSON.stringify([RULES.board(state), rules.legal(state)]) === JSON.stringify([board, mask]);
            state = rules.play(state, action);
            const ended = state.winner;
            if (ended !== null) state = rules.begin();
            return !same || ended !== winner;
          }});
        }}""",
        moves,
    )
    assert differs == -1, moves[differs]


def test_a_game_is_played_to_its_end_from_either_seat(pages: dict[str, Written], page: Page) -> None:
    page.goto(pages["tic_tac_toe"].path.as_uri())
    check_axe(page)
    page.emulate_media(color_scheme="dark")
    check_axe(page)
    status, stones = page.locator("#status"), page.locator("[class^=stone]")
    expect(stones).to_have_count(0)
    page.locator("#side").select_option("1")
    expect(stones).to_have_count(1)
    for turn in range(5):
        legal = page.locator("button.legal")
        if not legal.count():
            break
        legal.first.focus()
        page.keyboard.press("Enter")
        assert stones.count() >= 2 * turn + 2
    assert status.inner_text() in ("You win.", "The policy wins.", "A draw.")
    page.locator("#again").click()
    expect(stones).to_have_count(1)


def test_a_page_whose_weights_are_changed_does_not_play(pages: dict[str, Written], page: Page, tmp_path: Path) -> None:
    text = pages["tic_tac_toe"].path.read_text()
    at = text.index('id="weights">') + len('id="weights">')
    (tmp_path / "index.html").write_text(text[:at] + "AACAPwAAgD8AAIA/AACAPw" + text[at + 22 :])
    page.goto((tmp_path / "index.html").as_uri())
    assert "other numbers than the network" in page.locator("#status").inner_text()
    assert page.locator("button").count() == 0


def test_a_game_without_rules_in_the_page_answers_observations(page: Page, pages: dict[str, Written]) -> None:
    made = pages["kuhn_poker"]
    page.goto(made.path.as_uri())
    check_axe(page)
    page.locator("#ask").click()
    chances = [float(text) for text in page.locator("#answer td").all_inner_texts()]
    assert len(chances) == made.spec.actions.num_actions and sum(chances) == pytest.approx(1.0, abs=1e-3)
    page.locator("textarea").first.fill("[1, x]")
    page.locator("#ask").click()
    assert "no observation of this game" in page.locator("#status").inner_text()
