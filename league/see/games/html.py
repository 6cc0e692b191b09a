"""One file of HTML that plays a recorded game anywhere, without a server and without anything from outside of it."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path

import msgspec

from league.html_document import PICTURES, SCRIPTS, html_document, json_element
from league.see.games.game_view import GameView

ASSETS = Path(__file__).parent.parent / "page" / "assets" / "replay"
COLOURS = """:root{--ink:#1b1f24;--muted:#57606a;--ground:#f4f6f8;--panel:#fff;--line:#d0d7de;--accent:#0550ae;
--on-accent:#fff;--plain-ground:#eaeef2;--series-1:#0550ae;--series-2:#bc4c00;--series-3:#116329;--series-4:#7a3ed6;
--series-5:#a40e26;--series-6:#0b6478;--series-7:#744600;--series-8:#57606a;color-scheme:light dark}
@media (prefers-color-scheme:dark){:root{--ink:#e6edf3;--muted:#9da7b3;--ground:#0d1117;--panel:#161b22;
--line:#30363d;--accent:#79c0ff;--on-accent:#0d1117;--plain-ground:#2a313a;--series-1:#79c0ff;--series-2:#ffa657;
--series-3:#56d364;--series-4:#d2a8ff;--series-5:#ff7b72;--series-6:#76e3ea;--series-7:#e3b341;--series-8:#9da7b3}}
body{margin:0;padding:1rem;background:var(--ground);color:var(--ink);font:16px/1.5 system-ui,sans-serif}
main{max-width:70rem;margin:auto}.quiet{color:var(--muted)}h1{font-size:1.3rem}h2{font-size:1.1rem}h3{font-size:1rem}
:focus-visible{outline:3px solid var(--accent);outline-offset:2px}
"""


def html_of(view: GameView) -> str:
    """The page of one game; it works from `file://`."""
    script = re.sub(r"^export ", "", (ASSETS / "player.js").read_text(), flags=re.MULTILINE)
    style = COLOURS + (ASSETS / "player.css").read_text()
    holders = ", ".join(
        f"{name}: {holder.name}" + (f" of {holder.source}" if holder.source else "")
        for name, holder in zip(view.seat_names, view.seats, strict=True)
    )
    body = f"""<main>
<h1>{escape(view.title)}</h1>
<p class="quiet">{escape(holders)}. {escape(view.outcome)} Keys: arrows step, space plays, Home and End jump.</p>
<div id="player"></div>
<noscript><p>This page shows the game by a script that it holds itself; allow scripts to see it.</p></noscript>
</main>
{json_element("game", msgspec.json.encode(view).decode())}
<script>
'use strict';
{script}
mountPlayer(document.getElementById('player'), JSON.parse(document.getElementById('game').textContent));
const player = document.querySelector('.player');
document.addEventListener('keydown', (event) => {{
  if (event.target === document.body) player.dispatchEvent(new KeyboardEvent('keydown', event));
}});
</script>"""
    return html_document(view.title, body, style=style, allows=(SCRIPTS, PICTURES))
