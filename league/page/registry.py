"""The registries of the page: its sections in the order of the navigation, and its routes beyond them."""

from __future__ import annotations

from collections.abc import Mapping

SECTIONS: Mapping[str, str] = {
    "overview": "league.page.sections.overview",
    "table": "league.page.sections.table",
    "strength": "league.page.sections.strength",
    "payoff": "league.page.sections.payoff",
    "lineage": "league.page.sections.lineage",
    "meta_game": "league.page.sections.meta_game",
    "player": "league.page.sections.player",
    "fleet": "league.page.sections.fleet",
    "doctor": "league.page.sections.doctor",
    "replays": "league.page.sections.replays",
    "play": "league.page.sections.play",
    "compare": "league.page.sections.compare",
    "events": "league.page.sections.events",
    "operations": "league.page.sections.operations",
}
"""Name -> module with `Query` and `read`; the page draws it by assets/sections/NAME.js."""

ROUTES: Mapping[str, str] = {
    "session": "league.page.routes.session",
    "operations": "league.page.routes.operations",
    "compare": "league.page.routes.compare",
    "games": "league.page.routes.games",
}
"""Name -> module whose `add_routes(router, library, keys)` adds them to the application."""
