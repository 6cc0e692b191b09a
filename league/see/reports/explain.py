"""`league explain`: the value of a setting, and the reason why it has that value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from league.config.auto.resolve import resolve
from league.config.auto.rules_league import CHOICE
from league.config.commented import reasons_in
from league.config.dotted_keys import dotted_key, generic_key, value_at
from league.config.loading import parse_config
from league.config.player_settings import own_values
from league.config.reference import KeyEntry, explain
from league.config.run_config import BudgetConfig, RunConfig, config_plain
from league.core.scouting import population_of
from league.core.state.events import EVENTS
from league.envs.protocol import EnvConfig
from league.errors import LeagueError
from league.json_report import JsonReport
from league.store.journal_reader import JournalReader
from league.store.journaled_league import read_state
from league.store.run_folder import RunFolder
from league.wording import setting_text

GIVEN, DEFAULT = "given", "the default of every game"


@dataclass(frozen=True)
class SettingRow:
    """One setting. origin: "given", "auto: " and the reason, or that it is the default; meaning: of the key."""

    key: str
    value: object
    origin: str
    meaning: str

    def text(self) -> str:
        lines = [f"{self.key} = {setting_text(self.value)}", f"    {self.origin}", f"    {self.meaning}".rstrip()]
        return "\n".join(line for line in lines if line)


@dataclass(frozen=True)
class Explanation(JsonReport):
    """The settings under a key."""

    settings: tuple[SettingRow, ...]

    def text(self) -> str:
        return "\n".join(row.text() for row in self.settings)


def explain_setting(source: Path, key: str, *, limit: BudgetConfig | None = None) -> Explanation:
    """Explain a setting of a run, of a configuration, or of a game with nothing set.

    Args:
      source: a run folder, a YAML file, or the id of an env.
      key: dotted, of a setting or a whole section; a number, also in brackets, stands for the place in a list.
      limit: budget where the configuration has none.
    Raises:
      LeagueError: there is no such key; the sentence names the nearest.
      EnvError: the game cannot be made.
    """
    known, key = explain(key), dotted_key(key)
    if RunFolder(source).config_path.is_file():
        text = RunFolder.open(source).read_config()
        config, reasons = parse_config(text, source=str(source)), reasons_in(text)
        given = _unlike_default(config)
        reasons |= _found_since(RunFolder.open(source), reasons)
    else:
        found = resolve(str(source), limit=limit)
        config, reasons, given = found.config, found.reasons, found.given
    plain = config_plain(config)
    is_there, value = value_at(plain, key)
    if not is_there:
        raise LeagueError(f"{source} has no {key}.")
    rows = _rows(key, value, known, reasons, given)
    of_run = {f"league.players.{value.place}.{value.key}": value.run for value in own_values(config)}
    return Explanation(tuple(_beside_run(row, of_run) for row in rows))


def _found_since(folder: RunFolder, reasons: Mapping[str, str]) -> dict[str, str]:
    """The reason of a population that is chosen by measurement, with what the run has chosen since."""
    if not folder.journal_path.is_file():
        return {}
    with JournalReader.open_readonly(folder.journal_path, events=EVENTS) as journal:
        population, why = population_of(read_state(journal))
    return {CHOICE: f"{reasons.get(CHOICE, GIVEN)}; now {population}: {why}"} if population else {}


def _rows(
    key: str, value: object, known: list[KeyEntry], reasons: Mapping[str, str], given: frozenset[str]
) -> Iterator[SettingRow]:
    """One row for each setting under a key. A list that was chosen as a whole is one setting, and so are its parts."""
    meanings = {entry.key: entry.meaning for entry in known}
    if isinstance(value, Mapping) and value and key not in reasons:
        for name, item in value.items():
            yield from _rows(f"{key}.{name}", item, known, reasons, given)
        return
    if isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
        if key in reasons:
            yield SettingRow(key, value, f"auto: {reasons[key]}", meanings.get(generic_key(key), ""))
        for place, item in enumerate(value):
            yield from _rows(f"{key}.{place}", item, known, reasons, given)
        return
    yield SettingRow(key, value, _origin(key, reasons, given), meanings.get(generic_key(key), ""))


def _beside_run(row: SettingRow, of_run: Mapping[str, object]) -> SettingRow:
    """A setting of some players' own, with the value that the other players have. of_run: key -> that value."""
    if row.key not in of_run:
        return row
    return replace(row, origin=f"given for these players; the run has {setting_text(of_run[row.key])}")


def _origin(key: str, reasons: Mapping[str, str], given: frozenset[str]) -> str:
    """The reason of a chosen setting, or the section that was chosen as a whole and holds it."""
    if key in reasons:
        return f"auto: {reasons[key]}"
    parts = key.split(".")
    whole = next((held for end in range(len(parts) - 1, 0, -1) if (held := ".".join(parts[:end])) in reasons), "")
    if whole:
        return f"auto: chosen with {whole}"
    return GIVEN if _covers(given, key) else DEFAULT


def _covers(given: frozenset[str], key: str) -> bool:
    """True if a key, or a section that holds it, is among the given ones."""
    parts = key.split(".")
    return any(".".join(parts[: depth + 1]) in given for depth in range(len(parts)))


def _unlike_default(config: RunConfig) -> frozenset[str]:
    """Keys of a run whose value is not the default: with no reason beside it, such a value was given."""
    default = config_plain(RunConfig(env=EnvConfig("")))
    return frozenset(_different(config_plain(config), default, ""))


def _different(one: object, other: object, path: str) -> Iterator[str]:
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        for name, item in one.items():
            yield from _different(item, other.get(name), f"{path}.{name}" if path else str(name))
    elif one != other:
        yield path
