"""When the first probe of a run is expected, for whoever looks for one before."""

from __future__ import annotations

from league.config.run_config import ProbesConfig
from league.envs.text.number_text import number_text
from league.processes.processor_time import num_cores
from league.wording import duration_text

START_CORE_SECONDS = 3.0
"""Processor time of starting the process of the probes, until it has been measured."""
MIN_CORE_SECONDS = 1.0
"""Of one measurement: what the built-in probes ask for at least."""

NOTHING = (
    "Nothing fixed measures this league: name bots in league.ratings.bots, or probes in probes.kinds. Ratings can rise "
    "while a league goes in circles."
)


def first_probe_text(config: ProbesConfig, *, has_ended: bool) -> str:
    """A sentence for a run that has no reading yet.

    Args:
      has_ended: whether the run trains no more.
    """
    if not config.kinds:
        return NOTHING
    own_s = max(len(config.kinds) * MIN_CORE_SECONDS, START_CORE_SECONDS + MIN_CORE_SECONDS)
    due_s = own_s / config.max_share
    cores = num_cores()
    when = f"{number_text(due_s, 2)} core-seconds of training, {duration_text(due_s / cores)} where {cores} cores work"
    share = f"probes.max_share, {config.max_share:.0%} of the run's processor time, pays for it"
    if has_ended:
        return f"The run ended before its first probe, which is due after about {when}: {share}."
    return f"The first probe of the newest snapshot is expected after about {when}: {share}."
