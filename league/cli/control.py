"""The commands that change a live league: each is an operation of its control door, journaled with who and when."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from league.cli.options import Json, Reason, RunArgument
from league.errors import LeagueError

PlayerArgument = Annotated[
    str, typer.Argument(metavar="PLAYER", help="A player, or a role for all its players.", show_default=False)
]
SnapshotArgument = Annotated[
    str, typer.Argument(metavar="SNAPSHOT", help="A snapshot, a player's newest, or best.", show_default=False)
]
TagArgument = Annotated[str, typer.Argument(metavar="NAME", help="The tag.", show_default=False)]
WhatArgument = Annotated[
    str, typer.Argument(metavar="WHAT", help="training, rating, a player or a role.", show_default=True)
]


def set_values(
    run: RunArgument,
    values: Annotated[
        list[str], typer.Argument(metavar="KEY=VALUE...", help="Keys with new values in YAML.", show_default=False)
    ],
    reason: Reason = "",
    as_json: Json = False,
) -> None:
    """Change settings of a live league, such as learner.learning_rate=1e-4 or players.main-0.step_weight=4."""
    import json

    from league.config.yaml import parse_yaml
    from league.run.control.client import operate

    wanted = []
    for setting in values:
        key, equals, text = setting.partition("=")
        if not equals or not key:
            raise LeagueError(f"{setting!r} is not KEY=VALUE.")
        wanted.append({"key": key, "value": parse_yaml(text, source=setting)})
    changes = []
    try:
        for arguments in wanted:
            changes.append(operate(run, "set", arguments, reason=reason))
            if not as_json:
                _show(run, changes[-1])
    finally:  # those before a refused one hold
        if as_json and changes:
            typer.echo(json.dumps({"changes": changes}))


def add(
    run: RunArgument,
    role: Annotated[str, typer.Argument(help="Role of the new player, or a group's name.", show_default=False)],
    parent: Annotated[
        str, typer.Option("--from", metavar="SNAPSHOT", help="Start from these weights; new ones by default.")
    ] = "",
    step_weight: Annotated[
        float | None, typer.Option("--step-weight", help="Weight of its env steps, for a role that is new here.")
    ] = None,
    reason: Reason = "",
    as_json: Json = False,
) -> None:
    """Add a player to a live league."""
    arguments = {"role": role, "parent": parent, **({} if step_weight is None else {"step_weight": step_weight})}
    _operate(run, "add", arguments, reason, as_json)


def retire(run: RunArgument, player: PlayerArgument, reason: Reason = "", as_json: Json = False) -> None:
    """Take players out of a live league; a last snapshot of each stays."""
    _operate(run, "retire", {"player": player}, reason, as_json)


def freeze(run: RunArgument, player: PlayerArgument, reason: Reason = "", as_json: Json = False) -> None:
    """End the learning of players of a live league; they are still met as opponents."""
    _operate(run, "freeze", {"player": player}, reason, as_json)


def reset(run: RunArgument, player: PlayerArgument, reason: Reason = "", as_json: Json = False) -> None:
    """Freeze a player of a live league and let it start again from where its role does."""
    _operate(run, "reset", {"player": player}, reason, as_json)


def snapshot(
    run: RunArgument,
    player: Annotated[str, typer.Argument(metavar="[PLAYER]", help="By default all.", show_default=False)] = "",
    reason: Reason = "",
    as_json: Json = False,
) -> None:
    """Freeze the weights of players of a live league as they are now."""
    _operate(run, "snapshot", {"player": player}, reason, as_json)


def admit(
    run: RunArgument,
    source: Annotated[
        Path, typer.Argument(metavar="SOURCE", help="Run folder, or that of one snapshot.", show_default=False)
    ],
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its name here.", show_default=False)],
    player: Annotated[str, typer.Option(help="Whom of that run, as for `league eval`.")] = "best",
    probability: Annotated[float, typer.Option(help="Fraction of the games of those that meet it.")] = 0.05,
    role: Annotated[str, typer.Option(help="The role that meets it; every one by default.")] = "",
    reason: Reason = "",
    as_json: Json = False,
) -> None:
    """Take a frozen policy from outside into a live league, as a fixed opponent that is rated."""
    arguments = {"source": str(source.absolute()), "name": name, "player": player, "role": role}
    _operate(run, "admit", {**arguments, "probability": probability}, reason, as_json)


def tag(
    run: RunArgument, snapshot: SnapshotArgument, name: TagArgument, reason: Reason = "", as_json: Json = False
) -> None:
    """Give a snapshot a name, such as release-3, by which it can be asked for; its weights stay."""
    _operate(run, "tag", {"snapshot": snapshot, "name": name}, reason, as_json)


def untag(run: RunArgument, name: TagArgument, reason: Reason = "", as_json: Json = False) -> None:
    """Take a name from a snapshot."""
    _operate(run, "untag", {"name": name}, reason, as_json)


def pin(run: RunArgument, snapshot: SnapshotArgument, reason: Reason = "", as_json: Json = False) -> None:
    """Keep the weights of a snapshot, whatever the limits of retention."""
    _operate(run, "pin", {"snapshot": snapshot}, reason, as_json)


def unpin(run: RunArgument, snapshot: SnapshotArgument, reason: Reason = "", as_json: Json = False) -> None:
    """Let retention remove the weights of a snapshot again."""
    _operate(run, "unpin", {"snapshot": snapshot}, reason, as_json)


def pause(run: RunArgument, what: WhatArgument = "training", reason: Reason = "", as_json: Json = False) -> None:
    """Pause training, rating, or the learning of players; what is in hand ends first."""
    _operate(run, "pause", {"what": what}, reason, as_json)


def unpause(run: RunArgument, what: WhatArgument = "training", reason: Reason = "", as_json: Json = False) -> None:
    """Take up again what was paused."""
    _operate(run, "unpause", {"what": what}, reason, as_json)


def extend(
    run: RunArgument,
    limit: Annotated[
        str, typer.Argument(metavar="LIMIT", help="seconds, core_seconds or env_steps.", show_default=False)
    ],
    amount: Annotated[float, typer.Argument(help="Added to it; a negative number cuts.", show_default=False)],
    reason: Reason = "",
    as_json: Json = False,
) -> None:
    """Extend or cut the budget of a live league."""
    _operate(run, "extend", {"limit": limit, "amount": amount}, reason, as_json)


def hosts(
    run: RunArgument,
    count: Annotated[int | None, typer.Option("--count", metavar="N", help="So many actor hosts from now on.")] = None,
    park: Annotated[str, typer.Option(metavar="HOST", help="No further lease for it; its process stays.")] = "",
    unpark: Annotated[str, typer.Option(metavar="HOST", help="Let it work again.")] = "",
    drain: Annotated[str, typer.Option(metavar="HOST", help="End it; no game and no learning is lost.")] = "",
    reason: Reason = "",
    as_json: Json = False,
) -> None:
    """List the hosts of a live league, park or drain one, or change the number of actor hosts."""
    asked = [(name, host) for name, host in (("park", park), ("unpark", unpark), ("drain", drain)) if host]
    if len(asked) + (count is not None) > 1:
        raise LeagueError("Give one of --count, --park, --unpark and --drain at a time.")
    if count is not None:
        _operate(run, "actor_hosts", {"number": count}, reason, as_json)
    elif asked:
        ((name, host),) = asked
        _operate(run, name, {"host": host}, reason, as_json)
    else:
        from league.see.reports.hosts import read_hosts

        found = read_hosts(run)
        typer.echo(found.to_json() if as_json else found.text())


def undo(
    run: RunArgument,
    event: Annotated[int, typer.Argument(min=1, help="Number of the event in the journal.", show_default=False)],
    reason: Reason = "",
    as_json: Json = False,
) -> None:
    """Take back a change of a live league, by its event."""
    _operate(run, "undo", {"event": event}, reason, as_json)


def _operate(run: Path, name: str, arguments: Mapping[str, object], reason: str, as_json: bool) -> None:
    import json

    from league.run.control.client import operate

    done = operate(run, name, arguments, reason=reason)
    if as_json:
        typer.echo(json.dumps(done))
    else:
        _show(run, done)


def _show(run: Path, done: Mapping[str, object]) -> None:
    typer.echo(f"{done['words']} (event {done['first_event']})")
    if done["undoable"]:
        typer.echo(f"`league undo {run} {done['first_event']}` takes it back.")
