"""The registries of the page: its sections in the order of the navigation, and its routes beyond them."""

from __future__ import annotations

from collections.abc import Mapping

SECTIONS: Mapping[str, str] = {
    "overview": "league.page.sections.overview",
    "events": "league.page.sections.events",
}
"""Name -> module with `Query` and `read`; the page draws it by assets/sections/NAME.js."""

ROUTES: Mapping[str, str] = {
    "session": "league.page.routes.session",
}
"""Name -> module with `add_routes(router, library)`."""
