"""One HTML file that needs nothing else: it opens from disk, and nothing is fetched from anywhere."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

SCRIPTS, PICTURES = "script-src 'unsafe-inline'", "img-src data:"
"""Allowances: scripts that stand in the document, pictures whose data do."""


def html_document(title: str, body: str, *, style: str, allows: Sequence[str] = ()) -> str:
    """The whole document.

    Args:
      title: plain text. body: HTML. style: CSS. allows: beside styles.
    """
    policy = "; ".join(["default-src 'none'", "style-src 'unsafe-inline'", *allows])
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{escape(title)}</title>
<style>
{style}
</style>
</head>
<body>
{body}
</body>
</html>
"""


def json_element(name: str, text: str) -> str:
    """JSON as an element of that id, which scripts read."""
    # In a script element only "<" could end it, or begin a comment: JSON may write it as an escape.
    safe = text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    return f'<script type="application/json" id="{name}">{safe}</script>'
