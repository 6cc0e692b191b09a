"""Operations and deeds on a run: forms in groups, made from the catalogues, and the changes that may be taken back."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from league.config.changes import live_problem
from league.core.state.events import ConfigChanged, PolicyImported, SettingsChanged
from league.run.control.door_file import NoDoor, read_door_file
from league.run.operations.catalogue import OPERATIONS, Argument
from league.run.operations.plans import adds_player
from league.see.page.runs.deeds import DEEDS
from league.see.page.runs.event_text import change_text
from league.see.page.runs.opened_run import OpenedRun

MAX_NAMES = 300
MAX_CHANGES = 30
GROUPS = {
    "Training": ("pause", "unpause", "set", "extend", "snapshot"),
    "Players": ("add", "admit", "reset", "freeze", "retire"),
    "Snapshots": ("tag", "untag", "pin", "unpin", "gc"),
    "Hosts": ("actor_hosts", "park", "unpark", "drain"),
    "History": ("undo",),
}
"""Group -> operations, in the order of the page."""
DEEDS_GROUP = "Run"


class OperationsQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The operation whose form is open. The rest fills its first argument."""

    name: str = ""
    value: str = ""


class Form(msgspec.Struct, frozen=True):
    """One operation or deed. what: one sentence. is_undoable: whether `undo` takes it back.

    Fields:
      is_deed: whether it is a deed on the whole run, which needs no live daemon.
    """

    group: str
    name: str
    what: str
    arguments: tuple[Argument, ...]
    is_undoable: bool
    is_deed: bool


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
      names: argument -> words that fit it, for suggestions. settings: key of the configuration that may change now ->
        its value. changes: newest first.
    """

    refusal: str
    forms: tuple[Form, ...]
    names: dict[str, tuple[str, ...]]
    settings: dict[str, object]
    changes: tuple[ChangeRow, ...]
    name: str
    value: str


def read(run: OpenedRun, query: OperationsQuery) -> Operations:
    """Forms and changes of a run."""
    settings = dict(_settings(run.config))
    return Operations(
        refusal=_refusal(run),
        forms=tuple(_forms()),
        names=_names(run, settings),
        settings=settings,
        changes=tuple(_changes(run)),
        name=query.name,
        value=query.value,
    )


def _forms() -> Iterator[Form]:
    for deed in DEEDS.values():
        yield Form(DEEDS_GROUP, deed.name, deed.what, deed.arguments, is_undoable=False, is_deed=True)
    for group, names in GROUPS.items():
        for each in (OPERATIONS[name] for name in names):
            yield Form(group, each.name, each.what, each.arguments, each.is_undoable, is_deed=False)


def _settings(plain: object, path: str = "") -> Iterator[tuple[str, object]]:
    """Keys that may change while the run goes, each with its value."""
    if isinstance(plain, dict) and plain:
        for key, value in plain.items():
            yield from _settings(value, f"{path}.{key}" if path else str(key))
    elif isinstance(plain, list) and any(isinstance(each, dict) for each in plain):
        for place, value in enumerate(plain):
            yield from _settings(value, f"{path}.{place}")
    elif path and live_problem(path) is None:
        yield path, plain


def _refusal(run: OpenedRun) -> str:
    try:
        read_door_file(run.folder)
    except NoDoor as error:
        return str(error)
    return ""


def _names(run: OpenedRun, settings: dict[str, object]) -> dict[str, tuple[str, ...]]:
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
        "at": ("latest", *(f"snapshot:{name}" for name in snapshots)),
        "key": (*settings, *(f"players.{name}.step_weight" for name in players[:20])),
    }


def _changes(run: OpenedRun) -> list[ChangeRow]:
    undone = {event.event.undoes for event in run.notable if isinstance(event.event, SettingsChanged)}
    rows: list[ChangeRow] = []
    overtaken: set[str] = set()  # keys that a later event changed again
    for noted in reversed(run.notable):
        event = noted.event
        if isinstance(event, SettingsChanged | ConfigChanged) and event.changes:
            text = change_text(event.changes)
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
