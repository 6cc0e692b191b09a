"""Remarks for a user whose configuration overrides parts of its preset."""

from __future__ import annotations

from league.core.state.league_config import LeagueConfig


def preset_remarks(config: LeagueConfig) -> tuple[str, ...]:
    """A sentence where `players` stand beside a preset, whose own players they replace."""
    if not config.preset:
        return ()
    own = LeagueConfig(preset=config.preset, population=config.population).players
    if config.players == own:
        return ()
    names = ", ".join(dict.fromkeys(group.role for group in own))
    return (
        f"league.players replaces the players of the preset {config.preset} ({names}): leave it out to have those.",
    )
