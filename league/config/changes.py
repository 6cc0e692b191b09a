"""Changes of a configuration after the start of its run: what differs, what may never change, what may change live."""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Iterator

from league.core.settings import is_live
from league.core.state.events import ConfigChange

FIXED = {
    "env": "its snapshots and learners were made for this game; `league fork RUN NEW --at latest -s ...` takes an "
    "equal one, such as that of a file which was moved",
    "game": "its settings were chosen by it, and the league in the journal was created with it; `league train` starts "
    "a run with another one",
    "name": "the run folder has its name already",
    "seed": "what was drawn so far came from it; `league train` starts a run with another one",
    "network": "its snapshots and learners are of this network; `league train` starts a run with another one",
    "league": "the league in the journal was created with it; `league train` creates another one",
    "trainer": "its snapshots are files of the program that trains it; another one makes a folder of its own",
    "teacher": "the run keeps its own copy of its teacher; `league fork RUN NEW -s ...` takes another one",
}
"""Section that may not change in a run -> why, and what to do instead. All other sections may."""

LIVE = (
    "adapt",
    "learner.learning_rate",
    "learner.learning_rate_end",
    "learner.entropy_cost",
    "learner.entropy_cost_end",
    "learner.teacher_cost",
    "learner.teacher_cost_end",
    "learner.max_policy_lag",
    "learner.rollback_after",
    "runtime.actor_hosts",
    "runtime.snapshot_seconds",
    "runtime.snapshots_per_budget",
    "runtime.expected_decisions",
    "runtime.checkpoint_updates",
    "runtime.checkpoint_seconds",
    "budget.*",
    "retention.snapshots*",
    "retention.floor_gib",
    "evaluation.*",
)
"""Keys that may change while the run goes, as patterns; beside them those of `league.core.settings`."""


def live_problem(key: str) -> str | None:
    """The rule by which a key may not change while the run goes, as the end of a sentence; None where it may."""
    section = key.partition(".")[0]
    if section == "league":
        return None if is_live(key) else FIXED["league"]
    if any(fnmatch.fnmatchcase(key, pattern) for pattern in LIVE):
        return None
    if section in FIXED:
        return FIXED[section]
    return f"hosts are built with it; stop the run, then `league resume RUN -s {key}=VALUE`"


def fixed_problem(key: str) -> str | None:
    """The rule by which a key may not even change between two starts, as the end of a sentence; None where it may."""
    return None if is_live(key) else FIXED.get(key.partition(".")[0])


def differences(one: object, other: object, path: str = "") -> Iterator[ConfigChange]:
    """Differences between two plain records, such as two `config_plain`, one per path.

    A list of another length, or a record that one side lacks, is one difference: a user sets it as a whole.
    """
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted({*one, *other}, key=str):
            yield from differences(one.get(key), other.get(key), f"{path}.{key}" if path else str(key))
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for place, (mine, theirs) in enumerate(zip(one, other, strict=True)):
            yield from differences(mine, theirs, f"{path}.{place}")
    elif one != other:
        yield ConfigChange(path, json.dumps(one), json.dumps(other))
