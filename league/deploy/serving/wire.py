"""The messages of a served policy: requests, answers and refusals as JSON."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

ACT, POLICY, SESSIONS, HEALTH, METRICS = "/v1/act", "/v1/policy", "/v1/sessions", "/healthz", "/metrics"


class State(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The part of a game that lasts from one decision of a seat to its next.

    Fields:
      core: memory of the network, empty without one. member: the one of a mixture that plays this game.
    """

    core: list[float] = msgspec.field(default_factory=list)
    member: int = 0


class ActRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A request for an action.

    Fields:
      observation: as the game shows it to a seat: an array as nested lists, or an object of them by field.
      mask: true or 1 where an action is legal; without it all are.
      seat: name or number, where seats differ and the observation does not tell them apart.
      session: whose game it is, for a policy with memory; the server keeps its state.
      state: instead of a session: null at the first decision of a game, then the state of the last answer.
      greedy: takes the likeliest action; without it as the server was started.
      seed: of the draw; without it the server's own stream.
      probs: whether the answer is to have the probability of every action.
    """

    observation: Any
    mask: Any = None
    seat: str | int | None = None
    session: str = ""
    state: State | msgspec.UnsetType | None = msgspec.UNSET
    greedy: bool | None = None
    seed: int | None = None
    probs: bool = False


class ActAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """An action.

    Fields:
      action: as the game takes it. value: expected discounted return of the seat.
      probs: of every action, where asked for. state: for the next decision, where no session keeps it.
    """

    action: Any
    value: float
    probs: list[float] | None = None
    state: State | None = None


class SessionAnswer(msgspec.Struct, frozen=True):
    """A new session. expires_s: seconds without a request after which it is forgotten."""

    session: str
    expires_s: float


class PolicyFacts(msgspec.Struct, frozen=True):
    """The policy that is served.

    Fields:
      name: of the policy. identity: sha256 (hex) over its weights. game: that it plays.
      observations: field -> [shape, dtype]. actions: facts.
      has_mask: whether masks matter. seats: names. core_size: numbers of memory. members: policies of a mixture.
      greedy: whether it takes the likeliest action unless asked otherwise. max_batch: decisions computed together.
      league_version: of the server.
    """

    name: str
    identity: str
    game: str
    observations: dict[str, Any]
    actions: dict[str, Any]
    has_mask: bool
    seats: list[str]
    core_size: int
    members: int
    greedy: bool
    max_batch: int
    league_version: str


class ServingRefusal(msgspec.Struct, frozen=True):
    """The refusal of a request. error: one sentence on its reason."""

    error: str


def to_json(message: object) -> bytes:
    """A message as JSON; arrays and numbers of numpy as lists and plain numbers."""
    return msgspec.json.encode(message, enc_hook=_plain)


def _plain(value: object) -> object:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise NotImplementedError(f"an action holds {value!r}, which JSON does not know")
