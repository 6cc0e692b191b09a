"""Takes secrets out of text: values that are known to be secret here, and those that their place gives away."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from league.http.token_file import known_tokens
from league.store.known_runs import state_folder
from league.store.run_folder import RunFolder

GONE = "[removed]"
MIN_SECRET = 8
"""Shortest value that is looked for in text; a shorter one would take harmless words with it."""

_NAMES = (
    r"(?:api|access|private|secret|wandb)[_-]?key|token|secret|passw(?:or)?d|credential|authori[sz]ation|cookie|hmac"
)
_SECRET_NAME = re.compile(_NAMES + r"|key$|_key_|auth$", re.IGNORECASE)
_ASSIGNED = re.compile(
    rf"""((?<![a-z])[\w.-]*(?:{_NAMES})[\w.-]*["']?\s*[:=]\s*(?:bearer\s+|basic\s+)?)(\\?["'])?([^\s"',;}}\]\\]+)""",
    re.IGNORECASE,
)
_HARMLESS = re.compile(r"\d{1,12}|null|None|true|false|True|False|~")
_BEARER = re.compile(r"\b(bearer|basic)\s+[\w.~+/=-]{8,}", re.IGNORECASE)
_USER_OF_URL = re.compile(r"(?<=://)[^/\s@]+@")
_REST_OF_URL = re.compile(r"(https?://(?!127\.0\.0\.1|localhost|\[::1\])[^/\s\"'<>]+)/[^\s\"'<>]+")
_WANDB_KEY = re.compile(r"(?<![0-9a-zA-Z_])(?:wandb_v1_\w{20,}|local-[0-9a-f]{40}|[0-9a-f]{40})(?![0-9a-zA-Z])")
_KNOWN_FORMS = re.compile(
    r"\b(?:AKIA[0-9A-Z]{16}|gh[opsu]_\w{30,}|github_pat_\w{20,}|hf_\w{20,}|xox[abpr]-[\w-]{10,}|sk-[\w-]{20,}"
    r"|eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]*)"
)
_PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL)


class Redactor:
    """Removes secrets from text.

    Args:
      secrets: values that are secret wherever they stand. Those shorter than `MIN_SECRET` are passed over.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        known = sorted({secret for secret in secrets if len(secret) >= MIN_SECRET}, key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, known))) if known else None

    def clean(self, text: str) -> str:
        """The text with `GONE` in the place of each secret, and without paths and users of addresses elsewhere."""
        if self._known is not None:
            text = self._known.sub(GONE, text)
        for pattern in (_PRIVATE_KEY, _KNOWN_FORMS, _WANDB_KEY):
            text = pattern.sub(GONE, text)
        text = _USER_OF_URL.sub(f"{GONE}@", text)
        text = _REST_OF_URL.sub(rf"\1/{GONE}", text)
        text = _BEARER.sub(rf"\1 {GONE}", text)
        return _ASSIGNED.sub(_without_value, text)


def _without_value(found: re.Match[str]) -> str:
    """The assignment of a secret without its value; a fencing token of the journal is a number, and stays."""
    name, quote, value = found[1], found[2] or "", found[3]
    is_harmless = _HARMLESS.fullmatch(value) or value.startswith(GONE) or re.search(r"_from\b", name)
    return found[0] if is_harmless else f"{name}{quote}{GONE}"


def secrets_here(folder: RunFolder, environment: Mapping[str, str] = os.environ) -> set[str]:
    """Values that are secret on this machine, as far as this user can see them.

    Those of environment variables with such a name, the run's tokens, the user's key, Ray's token, and .netrc.
    """
    found = {value for name, value in environment.items() if _SECRET_NAME.search(name)}
    tokens = known_tokens(folder.tokens_path)
    found |= set() if tokens is None else {tokens.operator, tokens.reader}
    home = Path("~").expanduser()
    for path in (state_folder() / "secret", home / ".ray" / "auth_token"):
        content = _content(path)
        found |= {content.hex(), content.decode(errors="replace").strip()}
    words = _content(home / ".netrc").decode(errors="replace").split()
    found |= {word for before, word in itertools.pairwise(words) if before == "password"}
    return found


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()[:4096]
    except OSError:
        return b""
