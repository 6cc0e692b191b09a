"""The client of a control door, for the command line and for scripts: by the run's folder, over its unix socket."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import httpx

from league.errors import LeagueError
from league.run.control.door_file import NoDoor, read_door_file
from league.store.known_runs import this_user
from league.store.run_folder import RunFolder

WAIT_S = 40.0


class ControlRefused(LeagueError):  # noqa: N818
    """The run refused an operation; the sentence says by which rule."""


def operate(run: Path, name: str, arguments: Mapping[str, object], *, reason: str = "") -> Mapping[str, object]:
    """Have a live run carry out an operation.

    Args:
      name, arguments: see `league.run.operations.catalogue`. reason: for the journal.
    Returns:
      `words` for people, `first_event` and `last_event` in the journal, and whether it is `undoable`.
    Raises:
      NoDoor: the run is not live or cannot be reached. ControlRefused: it refused.
    """
    door = read_door_file(RunFolder.open(run))
    body = {**arguments, "by": this_user(), "reason": reason}
    try:
        with httpx.Client(transport=httpx.HTTPTransport(uds=door.socket), timeout=WAIT_S) as client:
            answer = client.post(f"http://localhost/api/v1/operations/{name}", json=body)
    except httpx.TimeoutException as error:
        raise NoDoor(f"{run} has not answered within {WAIT_S:g} s: `league status {run}` says how it is.") from error
    except httpx.TransportError as error:
        raise NoDoor(f"the control door of {run} does not answer ({error}): is the run just ending?") from error
    try:
        found = answer.json()
    except ValueError:
        found = {"error": f"the control door of {run} answered {answer.status_code}"}
    if answer.status_code != httpx.codes.OK:
        raise ControlRefused(str(found["error"]))
    assert isinstance(found, dict)
    return found
