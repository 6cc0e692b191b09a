"""Recorded games as animated GIF and as MP4."""

from __future__ import annotations

import importlib.util
import io
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from league.envs.plugins import install_extra
from league.envs.rendering.drawing import INK, Drawing, Label
from league.errors import LeagueError
from league.see.games.playback import Frame
from league.see.games.raster import image_of

WIDTH, HEIGHT = 480, 560
"""Pixels; even, as H.264 wants them."""
CAPTION = 0.08
"""Part of the height below the picture."""
STEP_MS = 700
LAST_MS = 2500
MAX_FRAMES = 2000
"""Longer games are thinned."""
FPS = 10


def images_of(frames: Sequence[Frame], names: Sequence[str]) -> list[Any]:
    """One image of Pillow for each state, with the last moves below.

    Args:
      names: [S] of the seats.
    Raises:
      LeagueError: Pillow is not installed.
    """
    return [_with_caption(frame, names) for frame in _thinned(frames)]


def gif_of(frames: Sequence[Frame], names: Sequence[str]) -> bytes:
    """An animated GIF, which repeats. Arguments and errors as of `images_of`."""
    images = images_of(frames, names)
    target = io.BytesIO()
    times = [STEP_MS] * (len(images) - 1) + [LAST_MS]
    images[0].save(target, "GIF", save_all=True, append_images=images[1:], duration=times, loop=0, optimize=False)
    return target.getvalue()


def mp4_of(frames: Sequence[Frame], names: Sequence[str]) -> bytes:
    """An MP4 (H.264) film.

    Raises:
      LeagueError: Pillow, imageio or its ffmpeg is not installed.
    """
    import numpy as np

    if importlib.util.find_spec("imageio") is None or importlib.util.find_spec("imageio_ffmpeg") is None:
        raise LeagueError(f"films need imageio and its ffmpeg; {install_extra('replays')}.")
    import imageio.v2 as imageio

    images = images_of(frames, names)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "game.mp4"
        film: Any
        with imageio.get_writer(path, fps=FPS, codec="libx264", macro_block_size=2, ffmpeg_log_level="error") as film:
            for number, image in enumerate(images):
                shown = LAST_MS if number == len(images) - 1 else STEP_MS
                for _ in range(round(shown * FPS / 1000)):
                    film.append_data(np.asarray(image))
        return path.read_bytes()


def _with_caption(frame: Frame, names: Sequence[str]) -> Any:
    said = ", ".join(f"{names[move.seat]} {move.action}" for move in frame.moves) or "start"
    drawing = frame.scene.drawing
    strip = CAPTION * drawing.height
    size = min(0.5 * strip, drawing.width / (0.62 * max(len(said), 8)))
    label = Label(drawing.width / 2, drawing.height + strip / 2, said, size, INK)
    whole = Drawing(drawing.width, drawing.height + strip, (*drawing.shapes, label))
    return image_of(whole, width=WIDTH, height=HEIGHT)


def _thinned(frames: Sequence[Frame]) -> Sequence[Frame]:
    """At most `MAX_FRAMES` of the states, the last one always."""
    step = -(-len(frames) // MAX_FRAMES)
    return [*frames[:-1:step], frames[-1]]
