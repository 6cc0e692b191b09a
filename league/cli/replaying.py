"""The commands that show games and play them: `league replay`, `replays`, `watch` and `play`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from league.cli.options import Json, Replays, RunArgument, SearchOption, names_in, with_trust


@with_trust("file")
def replay(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Replay file.", show_default=False)],
    game: Annotated[int, typer.Option(min=0, help="Which game, where the file holds several.")] = 0,
    seat: Annotated[int | None, typer.Option(min=0, help="Show only what this seat sees.")] = None,
    html: Annotated[Path | None, typer.Option("--html", help="Write a page that plays the game here.")] = None,
    gif: Annotated[Path | None, typer.Option("--gif", help="Write an animated GIF here.")] = None,
    mp4: Annotated[Path | None, typer.Option("--mp4", help="Write a film here.")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write moves, values and states here.")] = None,
    delay: Annotated[float, typer.Option(min=0.01, help="Seconds of a state while it plays.")] = 0.7,
) -> None:
    """Show a recorded game, after checking it by playing it again; in the terminal unless a file is asked for."""
    import msgspec

    from league.see.games.game_view import game_view, lines_of, outcome_text, seat_names_of, title_of
    from league.see.games.html import html_of
    from league.see.games.playback import frames_of, open_replay
    from league.see.games.terminal import show_states
    from league.see.games.video import gif_of, mp4_of

    found = open_replay(file)
    frames = frames_of(found, game, seat=seat)
    names = seat_names_of(found)
    if html is not None or json_file is not None:
        view = game_view(found, game, seat=seat)
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


@with_trust("run")
def replays(
    run: RunArgument,
    telling: Annotated[int, typer.Option(min=1, help="So many games, the most telling ones.")] = 9,
    play_missing: Annotated[
        bool, typer.Option("--play/--no-play", help="Play and record telling games that nobody has recorded.")
    ] = True,
    as_json: Json = False,
) -> None:
    """Find the most telling games of a run: upsets, first wins over an opponent, and the longest."""
    import msgspec

    from league.see.games.telling_games import telling_games

    found = telling_games(run, count=telling, play=play_missing)
    if as_json:
        typer.echo(msgspec.json.encode({"games": found}).decode())
        return
    for game in found:
        typer.echo(
            f"{game.why:9}  {game.text}\n           league replay {run / 'replays' / game.file} --game {game.game}"
        )
    if not found:
        typer.echo(f"{run} has no recorded game, and no rated results to find one by.")


@with_trust("run")
def watch(
    run: RunArgument,
    players: Annotated[
        str, typer.Option(help="Comma-separated, one for each team, named as for `league eval`; drawn by default.")
    ] = "",
    games: Annotated[int, typer.Option(min=0, help="Stop after so many games; 0 for no end.")] = 0,
    delay: Annotated[float, typer.Option(min=0.0, help="Seconds between two moves.")] = 0.5,
    seed: Annotated[int, typer.Option(min=0, help="Of the first game; the next ones count on.")] = 0,
    replays: Replays = None,
) -> None:
    """Watch the newest policies of a run play, move by move, each game with the weights of its time."""
    import itertools
    import time

    from league.judge.recording.recording import ReplayFolder
    from league.see.games import watching
    from league.see.games.game_view import lines_of, outcome_text, seat_names_of, title_of
    from league.see.games.playback import frames_of
    from league.see.games.terminal import CLEAR

    clear = CLEAR if sys.stdout.isatty() else ""
    folder = None if replays is None else ReplayFolder(replays)
    shown = watching.watch(run, seed=seed, players=names_in(players))
    for number, game in enumerate(itertools.islice(shown, games or None), start=1):
        if folder is not None:
            folder.add(game.replay)
        names = seat_names_of(game.replay)
        is_alone = len({holder.name for holder in game.replay.seats}) == 1
        trained_steps = game.trained_steps[:1] if is_alone else game.trained_steps
        steps = ", ".join("a snapshot" if trained is None else f"{trained:,} steps" for trained in trained_steps)
        for frame in frames_of(game.replay):
            text = "\n".join(lines_of(frame, names, game.replay.seats))
            typer.echo(f"{clear}game {number}: {title_of(game.replay)} ({steps})\n{text}\n")
            time.sleep(delay)
        typer.echo(outcome_text(game.replay, 0, names))


@with_trust("against")
def play(
    against: Annotated[
        str,
        typer.Argument(
            metavar="RUN|CONTENDER", help="Run, RUN:NAME, snapshot, package or bot:NAME.", show_default=False
        ),
    ],
    seat: Annotated[
        str | None, typer.Option(metavar="SEAT", help="Your seat, by number from 0 or by name; the first by default.")
    ] = None,
    hints: Annotated[bool, typer.Option("--hints", help="Show before each move what the policy would do.")] = False,
    evaluation: Annotated[
        bool, typer.Option("--evaluation", help="Show values and probabilities behind the others' moves.")
    ] = False,
    env: Annotated[str, typer.Option(metavar="ID", help="The game, against a bot.")] = "",
    greedy: Annotated[bool, typer.Option("--greedy", help="Networks take the likeliest action.")] = False,
    search: SearchOption = 0,
    seed: Annotated[int | None, typer.Option(min=0, help="Of the game; drawn by default.", show_default=False)] = None,
    save: Annotated[Path | None, typer.Option("--save", metavar="FILE", help="Write the replay here.")] = None,
) -> None:
    """Play against any policy; moves by number or name, with hints and take back."""
    from league.config.plugin_names import absolute_game
    from league.envs.protocol import EnvConfig
    from league.judge.recording.replay_file import write_replay
    from league.see.games.opponents import open_session
    from league.see.games.terminal_play import play_in_terminal

    game = EnvConfig(absolute_game(env, (Path.cwd(),))) if env else None
    with open_session(against, seat=seat, env=game, seed=seed, greedy=greedy, search=search) as session:
        whole = play_in_terminal(session, input, sys.stdout, evaluation=evaluation, hints=hints)
        if whole and save is not None:
            write_replay(save, session.replay())
            typer.echo(f"wrote {save}")
