"""Events as (kind, JSON body), refused before they are written if they would not come back the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from league.errors import JournalError


class EventCodec:
    """Events as (kind, JSON body): kind is the class name in the registry it is given."""

    def __init__(self, events: Mapping[str, type]) -> None:
        self._kinds = {event_type: kind for kind, event_type in events.items()}
        self._encoder = msgspec.json.Encoder()
        self._decoders: dict[str, msgspec.json.Decoder[Any]] = {
            kind: msgspec.json.Decoder(event_type) for kind, event_type in events.items()
        }

    def encode(self, event: object) -> tuple[str, bytes]:
        """Kind and body.

        Raises:
          JournalError: the event is of no registered kind, or would not be read back the same, such as a NaN, a numpy
            scalar, or a list for a tuple. It is refused before it is written, since afterwards it is too late.
        """
        kind = self._kinds.get(type(event))
        if kind is None:
            raise JournalError(f"{type(event).__name__} is not a registered event; register it before it is recorded.")
        try:
            body = self._encoder.encode(event)
            same = self._decoders[kind].decode(body) == event
        except (TypeError, ValueError, msgspec.MsgspecError) as error:
            raise JournalError(f"an event {kind} cannot be recorded: {error}.") from error
        if not same:
            raise JournalError(
                f"an event {kind} cannot be recorded: its fields are not of their declared types ({event!r:.300})."
            )
        return kind, body

    def decode(self, kind: str, body: bytes, *, seq: int) -> object:
        """The event again.

        Raises:
          JournalError: this version knows no such event.
        """
        decoder = self._decoders.get(kind)
        if decoder is None:
            raise JournalError(
                f"event {seq} of the journal is of the kind {kind!r}, "
                "which this version does not know: use the version that wrote it, or a newer one."
            )
        try:
            return decoder.decode(body)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise JournalError(
                f"event {seq} of the journal ({kind}) cannot be read by this version: {error}. "
                "Use the version that wrote it."
            ) from error
