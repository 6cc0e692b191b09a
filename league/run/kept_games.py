"""The games in flight of a deterministic runtime, kept from a stop to the next start."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from league.core.state.state import LeagueState
from league.errors import CorruptSnapshot, MissingSnapshot, StorageError
from league.hosts.actors.actor_state_file import decode_actor_state, encode_actor_state
from league.hosts.protocol import DeterministicRuntime, Runtime
from league.policies.policy_store import PolicyStore
from league.run.resume_files import read_noted
from league.store.run_folder import HOSTS_FILE, RunFolder


def save_games(runtime: Runtime, folder: RunFolder, state: LeagueState) -> None:
    """Keep the games in flight of a deterministic runtime, so that the run continues as if it had not stopped."""
    saved = runtime.save_hosts() if isinstance(runtime, DeterministicRuntime) else None
    if saved is not None:
        payload = encode_actor_state(saved, next_lease_id=state.next_lease_id)
        folder.write_resume_file(HOSTS_FILE, payload)


def restore_games(
    runtime: Runtime,
    folder: RunFolder,
    policies: PolicyStore,
    state: LeagueState,
    noted: Mapping[str, str],
    *,
    say: Callable[[str], object],
) -> None:
    """Take the games in flight up again where they fit the league as it stands; after a crash they do not.

    Losing them costs exactness, not a result: it is reported, and new games begin.

    Args:
      noted: content of the files by the journal's mark, as it was before this start.
      say: tells the user one sentence.
    """
    if not isinstance(runtime, DeterministicRuntime):
        return
    try:
        hosts, next_lease_id = decode_actor_state(read_noted(folder, noted, HOSTS_FILE))
    except FileNotFoundError:
        return
    except StorageError as error:
        say(f"{folder.hosts_path} cannot be used ({error}): the games that were in flight start again.")
        return
    if next_lease_id == state.next_lease_id:
        try:
            frozen = {name: policies.snapshot(info) for name, info in state.snapshots.items() if name in hosts.policies}
        except (CorruptSnapshot, MissingSnapshot) as error:
            say(f"{error} The games that were in flight start again.")
            return
        runtime.load_hosts(hosts, frozen)
