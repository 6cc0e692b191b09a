"""`league zoo`: trained policies on a shelf, packages of `league export` that are played by name as zoo:NAME."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from league.config.contender_names import ZOO, zoo_places
from league.errors import LeagueError
from league.json_report import JsonReport
from league.policies.frozen import MANIFEST_FILE, MAX_PACKAGE_MANIFEST_BYTES
from league.policies.package import PackageManifest
from league.store.storage import Storage
from league.text_table import TextTable
from league.wording import short_count, size_text


@dataclass(frozen=True)
class ZooRow:
    """A policy on the shelf.

    Fields:
      name: by which it is played. game: id of its env. folder: of the package.
      trained_steps: env steps. bytes: of its files.
      scores: opponent -> score, as measured at the export. trouble: why it cannot be read, else empty.
    """

    name: str
    game: str
    folder: str
    trained_steps: int
    bytes: int
    scores: dict[str, float]
    trouble: str = ""


@dataclass(frozen=True)
class ZooReport(JsonReport):
    """The shelf. places: folders that were looked into, in order. rows: by name; the first of a name counts."""

    places: tuple[str, ...]
    rows: tuple[ZooRow, ...]

    def text(self) -> str:
        if not self.rows:
            return f"no trained policy lies in {' or '.join(self.places)}; `make zoo` trains some."
        cells = []
        for row in self.rows:
            scores = ", ".join(f"{name} {score:.2f}" for name, score in row.scores.items())
            size = size_text(row.bytes) if row.bytes else ""
            steps = short_count(row.trained_steps) if row.trained_steps else ""
            cells.append((row.name, row.game, steps, size, row.trouble or scores))
        lines = TextTable(("name", "game", "env steps", "size", "score against"), cells, (0, 1, 4)).lines()
        return "\n".join([*lines, f"`league play {self.rows[0].name}` plays one."])


def read_shelf(places: Sequence[Path] = ()) -> ZooReport:
    """The policies of some folders, by default of all shelves; weights are not read.

    Raises:
      LeagueError: a folder that was given is none.
    """
    for place in places:
        if not place.is_dir():
            raise LeagueError(f"{place} is no folder of trained policies.")
    looked = tuple(places) or zoo_places()
    found: dict[str, ZooRow] = {}
    for place in looked:
        for file in sorted(place.glob(f"*/{MANIFEST_FILE}")):
            found.setdefault(file.parent.name, _row(file.parent))
    return ZooReport(tuple(map(str, looked)), tuple(found[name] for name in sorted(found)))


def shelf_bytes(rows: Iterable[ZooRow]) -> int:
    """Bytes of all packages."""
    return sum(row.bytes for row in rows)


def _row(folder: Path) -> ZooRow:
    name = f"{ZOO}{folder.name}"
    try:
        payload = Storage().read_bytes(folder / MANIFEST_FILE, max_bytes=MAX_PACKAGE_MANIFEST_BYTES)
        manifest = msgspec.json.decode(payload, type=PackageManifest)
    except (msgspec.DecodeError, UnicodeDecodeError, LeagueError, OSError) as error:
        return ZooRow(name, "", str(folder), 0, 0, {}, f"cannot be read: {error}")
    strength = manifest.strength
    return ZooRow(
        name=name,
        game=manifest.game.id,
        folder=str(folder),
        trained_steps=int(strength.get("trained_steps", 0)),
        bytes=len(payload) + sum(facts.bytes for facts in manifest.files.values()),
        scores={str(one["opponent"]): float(one["score"]) for one in strength.get("scores", ())},
    )
