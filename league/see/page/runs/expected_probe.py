"""The sentence on the first probe of an opened run."""

from __future__ import annotations

import functools

from league.config.loading import parse_config
from league.config.run_config import ProbesConfig
from league.judge.probes.first_probe import first_probe_text
from league.see.page.runs.opened_run import OpenedRun


def expected_probe(run: OpenedRun) -> str:
    """When the first probe is expected, see `first_probe_text`; empty once there was one."""
    if run.state.probes.results:
        return ""
    text = run.state.config_text or run.folder.read_config()
    return first_probe_text(_probes(text), has_ended=not run.account.live)


@functools.lru_cache(maxsize=16)
def _probes(text: str) -> ProbesConfig:
    """The probes of a configuration, which takes longer to read than all the rest of a request."""
    return parse_config(text, source="config.yaml").probes
