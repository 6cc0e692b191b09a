"""The exact values of a run's exports as they lie in its folder."""

from __future__ import annotations

import msgspec

from league.errors import StorageError
from league.policies.auto_export import ExactExports
from league.store.run_folder import RunFolder

MAX_BYTES = 1 << 16


def read_exact(folder: RunFolder) -> ExactExports | None:
    """The values that were computed last; None where none were, or the file is not what was written."""
    try:
        payload = folder.storage.read_bytes(folder.exports_path, max_bytes=MAX_BYTES)
        return msgspec.json.decode(payload, type=ExactExports)
    except (FileNotFoundError, StorageError, msgspec.DecodeError, UnicodeDecodeError):
        return None
