"""Bytes behind the sha256 of their content, for files of the run folder that no other record names."""

from __future__ import annotations

import hashlib

DIGEST_BYTES = 32


def with_digest(payload: bytes) -> bytes:
    """The payload behind its sha256."""
    return hashlib.sha256(payload).digest() + payload


def payload_in(content: bytes) -> bytes | None:
    """The payload that `with_digest` was given; None where the content is damaged."""
    digest, payload = content[:DIGEST_BYTES], content[DIGEST_BYTES:]
    return payload if hashlib.sha256(payload).digest() == digest else None
