"""Names of plug-ins in a configuration, and which of them refer to code outside this project.

Works on plain values (the YAML of a configuration, `config_plain`, the network of a snapshot), so that nothing need be
loaded to find the names.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from league.config.contender_names import runs_outside_code, with_absolute_folder
from league.core.state.records import BOT_PREFIX, bot_name, is_bot
from league.envs.bots import is_own_bot
from league.envs.own_code.places import absolute, place_of, present
from league.envs.registry import ADAPTERS

OF_PLAYERS: Mapping[tuple[str, ...], str] = {
    ("network", "encoder"): "encoder",
    ("network", "core"): "core",
    ("network", "head"): "head",
    ("actors", "acting"): "acting",
    ("actors", "acting_frozen"): "acting",
    ("learner", "algorithm"): "algorithm",
    ("learner", "optimizer"): "optimizer",
    ("learner", "row_source"): "row_source",
    ("learner", "pipeline", "backend"): "backend",
    ("learner", "pipeline", "update_mode"): "update_mode",
    ("learner", "pipeline", "update_mode", "compression"): "compression",
    ("learner", "pipeline", "update_mode", "topology"): "topology",
}
"""As `PLACES`, in sections that a player may have of its own too."""

PLACES: Mapping[tuple[str, ...], str] = {
    ("env", "id"): "env",
    **OF_PLAYERS,
    **{("league", "players", "*", *path): kind for path, kind in OF_PLAYERS.items()},
    ("trainer", "loader"): "loader",
    ("league", "preset"): "preset",
    ("league", "players", "*", "role"): "matchmaker",
    ("league", "players", "*", "matchmaker"): "matchmaker",
    ("league", "players", "*", "gate", "test"): "gate",
    ("league", "meta_game", "solver"): "solver",
    ("league", "pbt", "selection"): "selection",
    ("league", "ratings", "bots", "*"): "bot",
    ("league", "fixed_opponents", "*", "policy"): "bot",
    ("evaluation", "bots", "*"): "bot",
    ("monitor", "sinks", "*"): "sink",
    ("alerts", "conditions", "*"): "condition",
    ("alerts", "sinks", "*"): "alert_sink",
    ("probes", "kinds", "*"): "probe",
    ("probes", "kinds", "*", "against", "*"): "yardstick",
}
"""Path in a configuration ("*" is any place of a list) -> what is named there: text, or a mapping with a `kind`."""


@dataclass(frozen=True)
class OutsideName:
    """A name of code from outside.

    Fields:
      path: dotted, in the configuration. kind: as in `PLACES`. name: as `league.envs.plugins.load` takes it.
      entry: what trust is given to: the name, with its options, since they are the arguments of a call.
    """

    path: str
    kind: str
    name: str
    entry: str


def outside_names(plain: object) -> Iterator[OutsideName]:
    """The names in plain values that stand for code from outside."""
    options = _options(plain)
    found: list[OutsideName] = []

    def note(path: Sequence[str], kind: str, text: str, own: object) -> str:
        name = bot_name(text) if kind in ("bot", "yardstick") else text
        given = options if kind == "env" else own
        if _is_imported(kind, name, text, options):
            entry = f"{name} {json.dumps(given, sort_keys=True, default=str)}" if kind == "env" or given else name
            found.append(OutsideName(".".join(path), kind, name, entry))
        return text

    for place, kind in PLACES.items():
        _visit(plain, place, kind, (), note)
    yield from found


def with_absolute_files(plain: object, folders: Iterable[Path]) -> None:
    """Replace every name of a file, in place, by the absolute path of the file in the first folder that has it."""
    starts = tuple(folders)

    def replace(path: Sequence[str], kind: str, text: str, own: object) -> str:
        del own
        prefix = BOT_PREFIX if kind in ("bot", "yardstick") and is_bot(text) else ""
        name = with_absolute_folder(text, starts) if kind == "yardstick" else text.removeprefix(prefix)
        return absolute_game(name, starts) if kind == "env" else prefix + absolute(name, starts)

    for place, kind in PLACES.items():
        _visit(plain, place, kind, (), replace)


def with_present_places(plain: object) -> None:
    """Replace the place in every name, in place, by the one from which its code is read now."""

    def replace(path: Sequence[str], kind: str, text: str, own: object) -> str:
        del path, kind, own
        place = place_of(text)
        if place is None or not place.is_absolute():
            return text
        return str(present(place)) + text[len(str(place)) :]

    for place, kind in PLACES.items():
        _visit(plain, place, kind, (), replace)


def absolute_game(env_id: str, folders: Iterable[Path]) -> str:
    """The id of a game, with the file that it names by its absolute path, so that it stands in any current folder."""
    return env_id if env_id.partition(":")[0] in ADAPTERS else absolute(env_id, folders)


def _is_imported(kind: str, name: str, text: str, options: object) -> bool:
    if kind == "bot":
        return not text.startswith("imported:") and is_own_bot(name)
    if kind == "yardstick":
        return runs_outside_code(text)
    if kind == "alert_sink":
        return name != "log"  # the others run a program, or send variables of the environment to an address
    if kind != "env":
        return ":" in name
    prefix, colon, rest = name.partition(":")
    if prefix not in ADAPTERS:
        return bool(colon)
    # Gymnasium imports the module of "module:Env-v0", also where the id is an option of a wrapping env; a path is read.
    return ":" in rest or any(set(text) & set(":/\\") for text in _texts(options))


def _options(plain: object) -> object:
    env = plain.get("env") if isinstance(plain, dict) else None
    return (env.get("kwargs") or {}) if isinstance(env, dict) else {}


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _texts(key)
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)


def _visit(
    value: object,
    place: Sequence[str],
    kind: str,
    path: tuple[str, ...],
    change: Callable[[Sequence[str], str, str, object], str],
) -> None:
    """Call `change` with every name at a place and its own options, and put its answer there."""
    head, rest = place[0], place[1:]
    keys: Iterable[object] = ()
    if isinstance(value, dict):
        keys = (head,) if head in value else ()
    elif isinstance(value, list) and head == "*":
        keys = range(len(value))
    for key in keys:
        item = value[key]  # type: ignore[index]  # a dict or a list, see above
        here = (*path, str(key))
        if rest:
            _visit(item, rest, kind, here, change)
        elif isinstance(item, str):
            value[key] = change(here, kind, item, {})  # type: ignore[index]  # as above
        elif isinstance(item, dict) and isinstance(item.get("kind"), str):
            own = {name: option for name, option in item.items() if name != "kind"}
            item["kind"] = change((*here, "kind"), kind, item["kind"], own)
