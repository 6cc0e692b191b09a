"""A game played by hand in Chromium to its end, and a recorded one scrubbed through."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import expect

from league.agents.acting.network_policy import NetworkPolicy
from league.agents.nets.config import NetworkConfig
from league.agents.nets.network import build_network
from league.envs.protocol import EnvConfig
from league.envs.registry import spec_of
from league.judge.contenders.bots import bot_policy
from league.judge.recording.recorder import record_game
from league.judge.recording.replay import SeatHolder
from league.judge.recording.replay_file import write_replay
from league.store.run_folder import RunFolder
from tests.browser.conftest import OpenPage, check_axe, show
from tests.league.see.page.live_page import Served

LOADED_MS = 60_000
"""The first game loads torch into the process of the page."""


def test_a_game_is_played_to_its_end_by_clicks_and_keys(browser_page: OpenPage) -> None:
    page = browser_page("play")
    page.select_option("#play-policy", "bot:random")
    page.click("text=Start")
    page.wait_for_selector(".target", timeout=LOADED_MS)
    assert page.locator(".target").count() == page.locator(".options button").count() == 9
    page.locator(".target[data-action='4']").click()
    moves = page.locator(".moves li")
    expect(moves).to_have_count(2)
    page.select_option("#play-beside", "bot:random")
    expect(page.locator(".opinion h3")).to_contain_text("bot:random would play")
    page.click("#play-back")
    expect(moves).to_have_count(0)
    said = page.locator("#play-said")
    for _ in range(5):
        if said.inner_text() != "Your move.":
            break
        before = moves.count()
        page.locator(".options button").first.focus()
        page.keyboard.press("Enter")
        expect(moves).not_to_have_count(before)
    expect(said).to_contain_text("your return is")
    check_axe(page)
    page.click("text=Look back at the game")
    page.locator("#play-review input[type=range]").focus()
    page.keyboard.press("End")
    expect(page.locator("#play-review .said")).to_contain_text("Ended after")


def test_a_recorded_game_is_scrubbed(browser_page: OpenPage, live_page: tuple[Path, Served]) -> None:
    bots = [bot_policy("random", seed=0)] * 2
    replay = record_game(EnvConfig("tic_tac_toe"), bots, 1, seats=[SeatHolder("main-0"), SeatHolder("bot:random")])
    write_replay(RunFolder(live_page[0]).replays_path / "one.replay", replay)
    page = browser_page("replays")
    page.click("text=main-0 - bot:random")
    page.wait_for_selector(".player", timeout=LOADED_MS)
    said = page.locator("#replay-player .said")
    expect(said).to_have_text("The start of the game.")
    page.click("[aria-label='One step on']")
    expect(said).to_contain_text("first (main-0): ")
    page.keyboard.press("End")
    expect(said).to_contain_text("Ended after")
    assert page.locator(".evaluation").count() == 0
    page.keyboard.press("Home")
    page.select_option("#replay-player-policy", "bot:random")
    page.click("#replay-player-ask")
    expect(page.locator(".opinion h3")).to_contain_text("first: bot:random would play")
    expect(page.locator("#replay-player")).to_contain_text(f"of {replay.games[0].steps} moves")
    check_axe(page)
    show(page, "replays", home="nobody", away="main-0")
    expect(page.locator("main")).to_contain_text("No game is recorded")


def test_the_curve_of_a_game_leads_to_the_move_that_turned_it(
    browser_page: OpenPage, live_page: tuple[Path, Served]
) -> None:
    spec = spec_of(EnvConfig("tic_tac_toe"))
    judge = NetworkPolicy(build_network(spec, NetworkConfig(hidden=(8,)), seed=0))
    replay = record_game(EnvConfig("tic_tac_toe"), [judge] * 2, 1, seats=[SeatHolder("new"), SeatHolder("newer")])
    path = RunFolder(live_page[0]).replays_path / "judged.replay"
    write_replay(path, replay)
    page = browser_page("replays")
    page.click("text=new - newer")
    page.wait_for_selector(".evaluation .line-2", timeout=LOADED_MS)
    turn = page.locator(".turns button").first
    said, step = turn.inner_text(), "() => document.querySelector('#replay-player input[type=range]').value"
    turn.click()
    assert page.inner_text("#replay-player .said").startswith(said.partition(":")[0])
    assert page.inner_text("#replay-player .said").split(". ")[0].endswith(said.partition(": ")[2])
    box = page.locator(".evaluation").bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 5, box["y"] + 10)
    assert page.evaluate(step) == "0"
    check_axe(page)
    path.unlink()
