"""The operations on a run: the forms for them, made from the catalogue, and the changes that may be taken back."""

from __future__ import annotations

import msgspec

from league.core.state.events import ConfigChanged, PolicyImported, SettingsChanged
from league.run.control.door_file import NoDoor, read_door_file
from league.run.operations.catalogue import OPERATIONS, Argument
from league.run.operations.plans import adds_player
from league.see.page.runs.opened_run import OpenedRun

MAX_NAMES = 300
MAX_CHANGES = 30


class OperationsQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The operation whose form is open. The rest fills its first argument."""

    name: str = ""
    value: str = ""


class Form(msgspec.Struct, frozen=True):
    """One operation. what: one sentence. is_undoable: whether `undo` takes it back."""

    name: str
    what: str
    arguments: tuple[Argument, ...]
    is_undoable: bool


class ChangeRow(msgspec.Struct, frozen=True):
    """A change of the league from outside. text: what changed; is_undone: whether a later event took it back."""

    seq: int
    wall_time: float
    text: str
    by: str
    reason: str
    is_undoable: bool
    is_undone: bool


class Operations(msgspec.Struct, frozen=True):
    """The operations.

    Fields:
      refusal: why none can be carried out now; empty where they can.
      names: argument -> words that fit it, for suggestions. changes: newest first.
    """

    refusal: str
    forms: tuple[Form, ...]
    names: dict[str, tuple[str, ...]]
    changes: tuple[ChangeRow, ...]
    name: str
    value: str


def read(run: OpenedRun, query: OperationsQuery) -> Operations:
    """Forms and changes of a run."""
    return Operations(
        refusal=_refusal(run),
        forms=tuple(Form(each.name, each.what, each.arguments, each.is_undoable) for each in OPERATIONS.values()),
        names=_names(run),
        changes=tuple(_changes(run)),
        name=query.name,
        value=query.value,
    )


def _refusal(run: OpenedRun) -> str:
    try:
        read_door_file(run.folder)
    except NoDoor as error:
        return str(error)
    return ""


def _names(run: OpenedRun) -> dict[str, tuple[str, ...]]:
    state = run.state
    players = tuple(state.players)[:MAX_NAMES]
    roles = tuple(dict.fromkeys(player.role for player in state.players.values()))
    snapshots = tuple(reversed(state.snapshots))[:MAX_NAMES]
    hosts = tuple(worker.name for worker in run.account.status.workers)
    changed = tuple(str(row.seq) for row in _changes(run) if row.is_undoable and not row.is_undone)
    return {
        "player": players + roles,
        "what": ("training", "rating", *roles, *players),
        "role": roles,
        "snapshot": ("best", *snapshots),
        "parent": snapshots,
        "host": hosts,
        "limit": ("seconds", "core_seconds", "env_steps"),
        "name": tuple(state.tags),
        "event": changed,
        "key": (
            "learner.learning_rate",
            "learner.entropy_cost",
            *(f"players.{name}.step_weight" for name in players[:20]),
        ),
    }


def _changes(run: OpenedRun) -> list[ChangeRow]:
    undone = {event.event.undoes for event in run.notable if isinstance(event.event, SettingsChanged)}
    rows: list[ChangeRow] = []
    overtaken: set[str] = set()  # keys that a later event changed again
    for noted in reversed(run.notable):
        event = noted.event
        if isinstance(event, SettingsChanged | ConfigChanged) and event.changes:
            text = ", ".join(f"{change.key} {change.old} to {change.new}" for change in event.changes[:4])
            text += f" and {len(event.changes) - 4} more" if len(event.changes) > 4 else ""
            keys = {change.key for change in event.changes}
            is_undoable = isinstance(event, SettingsChanged) and not adds_player(event) and not keys & overtaken
            overtaken |= keys
            reason = event.reason if isinstance(event, SettingsChanged) else ""
            rows.append(ChangeRow(noted.seq, noted.wall_time, text, event.by, reason, is_undoable, noted.seq in undone))
        elif isinstance(event, PolicyImported):
            rows.append(
                ChangeRow(noted.seq, noted.wall_time, f"{event.snapshot.snapshot_id} joins", "", "", True, False)
            )
        if len(rows) == MAX_CHANGES:
            break
    return rows
