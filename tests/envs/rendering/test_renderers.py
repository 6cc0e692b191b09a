"""Every built-in game is shown: text, SVG that parses, and different pictures of different states."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest

from league.envs.games.othello import PASS
from league.envs.protocol import EnvConfig
from league.envs.registry import BUILT_IN
from league.envs.rendering.drawing import Circle, Drawing, Label, Line, Pixels, Rect, png_of, svg_of, text_drawing
from tests.envs.rendering.rendered_games import rendered

SEEDS = range(2)


@pytest.mark.parametrize("env_id", sorted(BUILT_IN))
def test_every_state_is_shown_and_no_two_states_of_a_game_look_alike(env_id: str) -> None:
    for seed in SEEDS:
        seen: dict[object, tuple[str, str]] = {}
        states = list(rendered(EnvConfig(env_id), seed=seed))
        for number, (scene, position, _) in enumerate(states):
            svg = svg_of(scene.drawing, title=f"{env_id} & co")
            root = ElementTree.fromstring(svg)
            assert root.tag == "{http://www.w3.org/2000/svg}svg" and root.get("aria-label") == f"{env_id} & co"
            assert scene.text.strip() and len(list(root)) > 1
            key = ("end", number) if number == len(states) - 1 else position
            shown = (scene.text, svg)
            for other, (text, picture) in seen.items():
                if other != key:
                    assert shown[0] != text and shown[1] != picture
            seen[key] = shown


@pytest.mark.parametrize("env_id", ["connect_four", "tic_tac_toe", "othello"])
def test_a_board_is_the_one_that_the_game_shows(env_id: str) -> None:
    for seed in SEEDS:
        *states, (last, _, _) = rendered(EnvConfig(env_id), seed=seed)
        for scene, _, turn in states:
            own, other = turn.obs["board"][0]
            rows = [line.split()[-own.shape[1] :] for line in scene.text.splitlines()[-1 - own.shape[0] : -1]]
            seat = int(turn.seat[0])
            marks = np.full(own.shape, ".", dtype="<U1")
            marks[own.astype(bool)], marks[other.astype(bool)] = "XO"[seat], "XO"[1 - seat]
            assert np.array_equal(np.char.replace(np.array(rows), "+", "."), marks)
        assert any(word in last.text for word in ("wins", "draw"))


def test_the_last_picture_names_the_winner() -> None:
    """The env has restarted by then: the picture follows from the actions."""
    for seed in range(12):
        *_, (scene, _, turn) = rendered(EnvConfig("tic_tac_toe"), seed=seed)
        expected = {1.0: "X wins", -1.0: "O wins", 0.0: "draw"}[float(turn.returns[0, 0])]
        assert scene.text.splitlines()[-1] == expected


@pytest.mark.parametrize("env_id", ["kuhn_poker", "leduc_poker"])
def test_a_seat_sees_its_own_card_alone_until_both_are_shown(env_id: str) -> None:
    for seed in range(8):
        for seat in (0, 1):
            everything = [scene.text for scene, _, _ in rendered(EnvConfig(env_id), seed=seed)]
            own = [scene.text for scene, _, _ in rendered(EnvConfig(env_id), seed=seed, seat=seat)]
            name = ("first", "second")[1 - seat]
            for full, seen in zip(everything[:-1], own[:-1], strict=True):
                assert f"{name}: card ?" in seen and f"{name}: card ?" not in full
            shown = "fold" not in everything[-1]
            assert (everything[-1] == own[-1]) is shown


def test_a_public_card_is_hidden_in_the_first_round() -> None:
    for scene, _, turn in rendered(EnvConfig("leduc_poker"), seed=1):
        shown = turn.obs["information_state"][0, 8:14].any()
        if not turn.ended[0]:
            assert ("board: ?" in scene.text) is not bool(shown)


def test_targets_of_a_board_are_its_actions() -> None:
    for env_id, actions in (("connect_four", 7), ("tic_tac_toe", 9), ("othello", PASS + 1)):
        scene, _, _ = next(rendered(EnvConfig(env_id), seed=0))
        assert sorted(target.action for target in scene.drawing.targets) == list(range(actions))


def test_shapes_become_elements_and_text_is_escaped() -> None:
    image = np.full((2, 3, 3), 7, np.uint8)
    shapes = (
        Rect(0, 0, 2, 2, "#fff"),
        Circle(1, 1, 1, "#000"),
        Line(0, 0, 1, 1, "#000"),
        Label(1, 1, "<a & \x00b>", 5),
        Pixels(0, 0, 3, 2, image),
    )
    root = ElementTree.fromstring(svg_of(Drawing(10, 10, shapes), title='"quoted" <title>'))
    assert [child.tag.rpartition("}")[2] for child in root] == ["rect", "rect", "circle", "line", "text", "image"]
    assert root[4].text == "<a & b>" and root.get("aria-label") == '"quoted" <title>'


def test_a_png_holds_its_pixels() -> None:
    image = np.random.default_rng(0).integers(0, 256, (5, 4, 3)).astype(np.uint8)
    pillow = pytest.importorskip("PIL.Image")
    import io

    assert np.array_equal(np.asarray(pillow.open(io.BytesIO(png_of(image)))), image)


def test_lines_of_text_fit_on_their_paper() -> None:
    drawing = text_drawing("one\n" + "x" * 80)
    last = drawing.shapes[-1]
    assert isinstance(last, Label) and last.y < drawing.height and drawing.width > 80 * last.size * 0.6
