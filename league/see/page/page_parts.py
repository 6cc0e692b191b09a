"""The registries of the page: its sections in the order of the navigation, and its routes beyond them."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class NoQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The query of a section without parameters."""


SECTIONS: Mapping[str, str] = {
    "overview": "league.see.page.sections.overview",
    "table": "league.see.page.sections.table",
    "strength": "league.see.page.sections.strength",
    "probes": "league.see.page.sections.probes",
    "payoff": "league.see.page.sections.payoff",
    "lineage": "league.see.page.sections.lineage",
    "meta_game": "league.see.page.sections.meta_game",
    "player": "league.see.page.sections.player",
    "fleet": "league.see.page.sections.fleet",
    "doctor": "league.see.page.sections.doctor",
    "replays": "league.see.page.sections.replays",
    "play": "league.see.page.sections.play",
    "compare": "league.see.page.sections.compare",
    "events": "league.see.page.sections.events",
    "operations": "league.see.page.sections.operations",
}
"""Name -> module whose `read(run, query)` makes the section; the annotation of `query` is the record of its parameters.
The page draws it by assets/sections/NAME.js."""

ROUTES: Mapping[str, str] = {
    "session": "league.see.page.routes.session",
    "operations": "league.see.page.routes.operations",
    "deeds": "league.see.page.routes.deeds",
    "pools": "league.see.page.routes.pools",
    "sweeps": "league.see.page.routes.sweeps",
    "course": "league.see.page.routes.course",
    "compare": "league.see.page.routes.compare",
    "games": "league.see.page.routes.games",
}
"""Name -> module whose `add_routes(router, library, keys)` adds them to the application."""
