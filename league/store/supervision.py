"""The record of a supervisor, RUN/supervisor.json: which process keeps a run alive, and how often it had to.

It is for people and for `league down`; a run works without it.
"""

from __future__ import annotations

import msgspec

from league.errors import StorageError
from league.store.lock import Holder, is_holding
from league.store.run_folder import RunFolder

MAX_BYTES = 1 << 16


class Supervision(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The record of one supervisor.

    Fields:
      supervisor: the process. started_at: wall time of its start, seconds since 1970.
      restarts: how often it started the run again after a crash.
      last_crash: what ended the run at the last crash, such as "signal 9"; empty before the first.
      last_crash_at: wall time of that, seconds since 1970; 0 before the first.
      gave_up: why it starts the run no more; empty while it does.
      stopping: whether it was asked to end the run.
      no_eval, no_restart: as `league up` was given them; `league restart` keeps them.
    """

    supervisor: Holder
    started_at: float
    restarts: int = 0
    last_crash: str = ""
    last_crash_at: float = 0.0
    gave_up: str = ""
    stopping: bool = False
    no_eval: bool = False
    no_restart: bool = False

    def is_alive(self, folder: RunFolder) -> bool:
        """True while that very process lives and supervises this folder."""
        return is_holding(self.supervisor, folder.path)


def write_supervision(folder: RunFolder, record: Supervision) -> None:
    """Replace the record.

    Raises:
      StorageError: it cannot be written.
    """
    folder.storage.atomic_write_bytes(folder.supervisor_path, msgspec.json.encode(record), durable=False)


def read_supervision(folder: RunFolder) -> Supervision | None:
    """The record of the last supervisor; None where there was none, or where the file is not one."""
    try:
        return msgspec.json.decode(
            folder.storage.read_bytes(folder.supervisor_path, max_bytes=MAX_BYTES), type=Supervision
        )
    except (FileNotFoundError, StorageError, msgspec.DecodeError, UnicodeDecodeError):
        return None
