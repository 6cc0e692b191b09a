"""Recorded games in a terminal, as a page, as images and as films."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import msgspec
import numpy as np

from league.envs.protocol import EnvConfig
from league.envs.registry import spec_of
from league.envs.rendering.drawing import Circle, Drawing, Label, Line, Pixels, Rect
from league.judge.contenders.bots import bot_policy
from league.judge.recording.recorder import record_game
from league.judge.recording.replay import Replay, SeatHolder
from league.judge.recording.replay_file import write_replay
from league.see.games.game_view import game_view, lines_of, outcome_text, seat_names_of, title_of
from league.see.games.html import html_of
from league.see.games.playback import frames_of
from league.see.games.raster import image_of
from league.see.games.terminal import Scrubber, show_states
from league.see.games.video import gif_of, mp4_of
from tests.league.commands import league


def recorded(env_id: str, *, name: str = "a<b", seed: int = 1) -> Replay:
    config = EnvConfig(env_id)
    seats = spec_of(config).num_seats
    bots = [bot_policy("random", seed=seed)] * seats
    return record_game(config, bots, seed, seats=[SeatHolder(name), *[SeatHolder("other")] * (seats - 1)])


def test_a_page_holds_the_game_and_nothing_from_outside() -> None:
    view = game_view(recorded("tic_tac_toe", name="</script><b>"))
    page = html_of(view)
    assert page.count("</script>") == 2 and "<b>" not in page and "export " not in page
    assert not re.search(r"(?:src|href)=|https?://(?!www\.w3\.org)|@import|url\(", page)
    held = re.search(r'<script type="application/json" id="game">(.*?)</script>', page, re.DOTALL)
    assert held is not None
    plain = json.loads(held[1])
    assert plain == json.loads(msgspec.json.encode(view)) and len(plain["frames"]) == len(view.frames)


def test_words_of_a_state_and_of_the_end() -> None:
    replay = recorded("kuhn_poker")
    frames, names = frames_of(replay), seat_names_of(replay)
    assert lines_of(frames[1], names, replay.seats)[0].startswith("first (a<b): ")
    returns = replay.games[0].returns
    assert outcome_text(replay, 0, names) == (
        f"Ended after {len(frames) - 1} steps: first (a<b) {returns[0]:+.3g}, second (other) {returns[1]:+.3g}."
    )


def test_a_title_names_the_file_of_a_game_without_its_folder() -> None:
    replay = recorded("kuhn_poker")
    assert title_of(replay) == "kuhn_poker: a<b - other"
    own = msgspec.structs.replace(replay, env=msgspec.structs.replace(replay.env, id="/far/away/my_game.py:make"))
    assert title_of(own) == "my_game.py:make: a<b - other"


def test_an_image_has_the_colours_of_its_shapes() -> None:
    pixels = np.zeros((2, 2, 3), np.uint8)
    pixels[0, 0] = (9, 8, 7)
    shapes = (
        Rect(0, 0, 10, 10, "#112233"),
        Circle(25, 5, 4, "#445566"),
        Line(0, 15, 10, 15, "#778899", 2),
        Pixels(20, 10, 10, 10, pixels),
        Label(5, 25, "x", 8, "#ff0000"),
    )
    image = np.asarray(image_of(Drawing(30, 30, shapes), width=60, height=90))
    assert image.shape == (90, 60, 3)
    found = {tuple(image[y + 15, x].tolist()) for x, y in ((10, 10), (50, 10), (10, 30), (42, 22))}
    assert found == {(0x11, 0x22, 0x33), (0x44, 0x55, 0x66), (0x77, 0x88, 0x99), (9, 8, 7)}
    assert (image[60:90, 0:20] == (255, 0, 0)).all(axis=-1).any()


def test_a_gif_and_a_film_show_every_state() -> None:
    from PIL import Image

    frames = frames_of(recorded("rock_paper_scissors"))
    names = ("row", "column")
    with Image.open(io.BytesIO(gif_of(frames, names))) as film:
        assert film.n_frames == len(frames)
    assert mp4_of(frames, names)[4:8] == b"ftyp"


def test_a_scrubber_stays_within_the_game() -> None:
    scrubber = Scrubber(3)
    for word, at in (("back", 0), ("next", 1), ("end", 2), ("next", 2), ("start", 0), ("other", 0)):
        assert scrubber.take(word) and scrubber.at == at
    assert scrubber.take("play") and scrubber.playing
    scrubber.tick()
    scrubber.tick()
    assert scrubber.at == 2 and not scrubber.playing
    assert scrubber.take("play") and scrubber.at == 0
    assert not scrubber.take("quit")


def test_without_a_terminal_all_states_are_printed() -> None:
    out = io.StringIO()
    show_states(["one", "two"], title="game", delay_s=0.1, out=out)
    assert out.getvalue().count("game, step") == 2 and "two" in out.getvalue()


def test_the_command_shows_writes_and_refuses(tmp_path: Path) -> None:
    path = write_replay(tmp_path / "game.replay", recorded("tic_tac_toe"))
    shown = league("replay", path)
    assert shown.code == 0 and "Ended after" in shown.out and "step 0 of" in shown.out
    written = league("replay", path, "--html", tmp_path / "game.html", "--json", tmp_path / "game.json")
    assert written.code == 0 and "wrote" in written.out
    assert json.loads((tmp_path / "game.json").read_text())["env"] == "tic_tac_toe"
    path.write_bytes(path.read_bytes()[:-1])
    damaged = league("replay", path)
    assert damaged.code == 2 and "damaged" in damaged.err


def test_files_show_no_more_than_the_seat_that_was_asked_for_sees(tmp_path: Path) -> None:
    path = write_replay(tmp_path / "game.replay", recorded("kuhn_poker"))
    terminal = league("replay", path, "--seat", 1).out
    assert terminal != league("replay", path).out
    made = league("replay", path, "--seat", 1, "--json", tmp_path / "one.json", "--html", tmp_path / "one.html")
    assert made.code == 0, made.err
    frames = json.loads((tmp_path / "one.json").read_text())["frames"]
    assert all(frame["text"] in terminal for frame in frames)
    league("replay", path, "--html", tmp_path / "all.html")
    assert (tmp_path / "one.html").read_text() != (tmp_path / "all.html").read_text()
    missing = league("replay", path, "--seat", 2)
    assert (missing.code, "0 to 1" in missing.err) == (2, True)
