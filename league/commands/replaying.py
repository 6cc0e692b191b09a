"""The commands that show games: `league replay`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from league.commands.options import Trust


def add_replaying(app: typer.Typer) -> None:
    """Adds the commands to the `league` command."""
    app.command("replay")(replay)


def replay(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Replay file.", show_default=False)],
    game: Annotated[int, typer.Option(min=0, help="Which game, where the file holds several.")] = 0,
    seat: Annotated[int | None, typer.Option(min=0, help="Show only what this seat sees.")] = None,
    html: Annotated[Path | None, typer.Option("--html", help="Write a page that plays the game here.")] = None,
    gif: Annotated[Path | None, typer.Option("--gif", help="Write an animated GIF here.")] = None,
    mp4: Annotated[Path | None, typer.Option("--mp4", help="Write a film here.")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write moves, values and states here.")] = None,
    delay: Annotated[float, typer.Option(min=0.01, help="Seconds of a state while it plays.")] = 0.7,
    trust: Trust = False,
) -> None:
    """Show a recorded game, after checking it by playing it again; in the terminal unless a file is asked for."""
    import msgspec

    from league.replays.game_view import game_view, lines_of, outcome_text, seat_names_of, title_of
    from league.replays.html import html_of
    from league.replays.playback import frames_of
    from league.replays.replay_file import read_replay
    from league.replays.terminal import show_states
    from league.replays.video import gif_of, mp4_of

    found = read_replay(file)
    frames = frames_of(found, game, trust=trust, seat=seat)
    names = seat_names_of(found)
    if html is not None or json_file is not None:
        view = game_view(found, game, trust=trust)
        if html is not None:
            html.write_text(html_of(view), encoding="utf-8")
        if json_file is not None:
            json_file.write_bytes(msgspec.json.encode(view) + b"\n")
    if gif is not None:
        gif.write_bytes(gif_of(frames, names))
    if mp4 is not None:
        mp4.write_bytes(mp4_of(frames, names))
    written = [path for path in (html, gif, mp4, json_file) if path is not None]
    for path in written:
        typer.echo(f"wrote {path} ({path.stat().st_size:,} bytes)")
    if not written:
        states = ["\n".join(lines_of(frame, names, found.seats)) for frame in frames]
        states[-1] += f"\n\n{outcome_text(found, game, names)}"
        show_states(states, title=title_of(found), delay_s=delay)
