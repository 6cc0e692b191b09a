"""The state of a deterministic runtime's actor hosts as one file of arrays, behind the sha256 of its content."""

from __future__ import annotations

import json

import numpy as np

from league.core.state.records import Assignment
from league.errors import StorageError
from league.hosts.protocol import HostState
from league.store.checked_bytes import payload_in, with_digest
from league.store.weights_file import ArraysError, decode_arrays, encode_arrays

_TEXT = "__text__"


def encode_actor_state(state: HostState, *, next_lease_id: int) -> bytes:
    """The state, and the lease that would come next: it fits a league that stands exactly there and no other."""
    tables = {
        arena: [{"policies": row.policies, "records": row.records, "share": row.probability} for row in table]
        for arena, table in state.assignments.items()
    }
    inner = json.dumps({"tables": tables, "generations": state.generations})
    text = json.dumps({"next_lease_id": next_lease_id, "text": inner})
    payload = encode_arrays({**state.arrays, _TEXT: np.frombuffer(text.encode(), np.uint8)})
    return with_digest(payload)


def decode_actor_state(content: bytes) -> tuple[HostState, int]:
    """State and next lease id.

    Raises:
      StorageError: the bytes are not what `encode_actor_state` wrote.
    """
    payload = payload_in(content)
    if payload is None:
        raise StorageError("the state of the actor hosts is damaged: its sha256 is another")
    try:
        arrays = decode_arrays(payload)
        head = json.loads(arrays.pop(_TEXT).tobytes())
        inner = json.loads(head["text"])
        assignments = {
            arena: tuple(
                Assignment(tuple(row["policies"]), tuple(row["records"]), float(row["share"])) for row in table
            )
            for arena, table in inner["tables"].items()
        }
        generations = {arena: int(number) for arena, number in inner["generations"].items()}
        return HostState(arrays, assignments, generations), int(head["next_lease_id"])
    except (ArraysError, AttributeError, KeyError, ValueError, TypeError) as error:
        raise StorageError(f"the state of the actor hosts cannot be read: {error}") from error
