"""A request of the daemon to the process that measures; a file that loads nothing heavy."""

from __future__ import annotations

import msgspec

from league.core.state.records import ProbeTask


class ProbeRequest(msgspec.Struct):
    """One probe. limit_s: processor seconds that it may take. digests: snapshot -> sha256 of its weights."""

    task: ProbeTask
    limit_s: float
    digests: dict[str, str]
