"""Remarks for a user whose configuration overrides parts of its preset."""

from __future__ import annotations

from league.core.state.league_config import LeagueConfig
from league.core.state.registry import PRESETS, load


def preset_remarks(settings: LeagueConfig) -> tuple[str, ...]:
    """A sentence where `players` stand beside a preset, whose own players they replace."""
    if not settings.preset:
        return ()
    preset = load(PRESETS, settings.preset, what="preset")
    own = preset(settings.population).players  # type: ignore[operator]  # the registry's protocol
    if settings.players == own:
        return ()
    names = ", ".join(dict.fromkeys(group.role for group in own))
    return (
        f"league.players replaces the players of the preset {settings.preset} ({names}): leave it out to have those.",
    )
