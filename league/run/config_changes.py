"""Changes of a run's configuration after its start: which keys may change, and the errors for a file edited by hand.

The journal holds the text of config.yaml (`ConfigChanged`); the file is a copy of it for people. A change is written to
the journal first. After a crash between the two the file holds the text before, and is brought up to date.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from league.config.changes import differences, fixed_problem
from league.config.commented import recommented
from league.config.loading import parse_config
from league.config.run_config import RunConfig, config_plain
from league.core.state.commands import ChangeConfig, ChangeLeague
from league.core.state.events import ConfigChange
from league.core.state.state import LeagueState
from league.errors import ConfigError, LeagueError
from league.policies.trust import open_config
from league.store.journaled_league import JournaledLeague
from league.store.known_runs import this_user
from league.store.run_folder import HOSTS_FILE, RunFolder

PLAYS_ON = ("env", "network", "learner", "teacher", "actors", "seed")
"""Sections on which games in flight and the unrolls in hand depend."""

MAX_SHOWN = 6


def settled_config(
    folder: RunFolder, league: JournaledLeague, *, overrides: Sequence[str] = (), restore: bool = False
) -> RunConfig:
    """The configuration that a run resumes with; journal and file agree on it afterwards.

    Args:
      folder: locked by the caller.
      overrides: "dotted.key=value" each, over the configuration in the journal.
      restore: rewrite config.yaml as the journal has it, regardless of its present content.
    Raises:
      ConfigError: an override does not fit, or changes what is fixed.
      Untrusted: it names code that may not be loaded.
      LeagueError: the file was edited by hand; the sentence names the keys.
    """
    state = league.state
    if restore and state.config_text:
        folder.write_config(state.config_text)
    file_text = folder.read_config()
    if file_text == state.config_text_before:  # the daemon died after the journal had the change
        folder.write_config(state.config_text)
        file_text = state.config_text
    text = state.config_text or file_text
    opened = open_config(folder, text=text)
    before, config = opened.config(), opened.config(overrides)
    if file_text != text:
        _require_the_same(folder, file_text, config)
    changes = tuple(differences(config_plain(before), config_plain(config)))
    if problems := [*_fixed_problems(changes)]:
        raise ConfigError(f"{folder.path}", problems)
    new_text = recommented(config, text) if changes else text
    if new_text != state.config_text and state.config is not None:
        own = any(change.key.startswith("league.") for change in changes)
        league.execute(
            ChangeLeague(changes, new_text, this_user()) if own else ChangeConfig(new_text, changes, this_user())
        )
        league.commit()
    if new_text != file_text:
        folder.write_config(new_text)
    if not plays_the_same(config, before):
        folder.write_resume_file(HOSTS_FILE, None)
        league.noted_files.pop(HOSTS_FILE, None)
    return config


def noted_config(text: str, changes: Sequence[ConfigChange] = ()) -> ChangeConfig:
    """The command that journals the text of a configuration, with what it changes."""
    return ChangeConfig(text, tuple(changes), this_user())


def config_problem(folder: RunFolder, state: LeagueState) -> str | None:
    """One sentence where config.yaml is not what the journal says, None where it is or no event says it.

    Raises:
      StorageError: the file cannot be read.
    """
    if not state.config_text or folder.read_config() in (state.config_text, state.config_text_before):
        return None
    return f"{folder.config_path} is not the configuration in the journal: it was changed by hand or damaged"


def plays_the_same(config: RunConfig, before: RunConfig) -> bool:
    """True if games in flight can continue under the other configuration: the settings they depend on are equal."""
    return config.runtime.kind == before.runtime.kind and all(
        getattr(config, section) == getattr(before, section) for section in PLAYS_ON
    )


def _require_the_same(folder: RunFolder, file_text: str, config: RunConfig) -> None:
    """Refuse a file whose values are not those that the run resumes with.

    Raises:
      LeagueError: naming them.
    """
    back = f"`league resume {folder.path} --restore-config` puts the file back"
    try:
        found = parse_config(file_text, source=str(folder.config_path))
    except ConfigError as error:
        raise LeagueError(
            f"{folder.config_path} was changed by hand or damaged ({error.problems[0]}): {back}."
        ) from error
    edits = [*differences(config_plain(config), config_plain(found))]
    if not edits:
        return
    shown = ", ".join(f"{edit.key} ({edit.old} -> {edit.new})" for edit in edits[:MAX_SHOWN])
    more = f" and {len(edits) - MAX_SHOWN} more" if len(edits) > MAX_SHOWN else ""
    free = [edit for edit in edits if fixed_problem(edit.key) is None]
    how = f"; `league resume {folder.path} -s {free[0].key}={free[0].new}` makes such a change" if free else ""
    raise LeagueError(f"{folder.config_path} was changed by hand in {shown}{more}: {back}{how}.")


def _fixed_problems(changes: Sequence[ConfigChange]) -> Iterator[str]:
    for change in changes:
        reason = fixed_problem(change.key)
        if reason is not None:
            yield f"{change.key}: cannot change from {change.old} to {change.new} in this run: {reason}"
