"""What the daemon asks of the process that measures. Loads nothing of what measuring needs."""

from __future__ import annotations

import msgspec

from league.core.state.records import ProbeTask


class ProbeRequest(msgspec.Struct):
    """One probe. limit_s: processor seconds that it may take. digests: snapshot -> sha256 of its weights."""

    task: ProbeTask
    limit_s: float
    digests: dict[str, str]
