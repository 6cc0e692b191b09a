"""Remarks for a user whose configuration overrides parts of its preset, or settings of the run for some players."""

from __future__ import annotations

from league.config.player_settings import own_values
from league.config.run_config import RunConfig
from league.core.state.league_config import LeagueConfig
from league.wording import setting_text

MAX_SHOWN = 6
"""Settings of one group of players that are shown."""


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


def player_remarks(config: RunConfig) -> tuple[str, ...]:
    """A line for each group of players that differs from the run, with the settings in which it does."""
    found: dict[int, list[str]] = {}
    for value in own_values(config):
        text = f"{value.key} {setting_text(value.own)} (run: {setting_text(value.run)})"
        found.setdefault(value.place, []).append(text)
    return tuple(
        f"{config.league.players[place].prefix}: {', '.join(texts[:MAX_SHOWN])}"
        + (f" and {len(texts) - MAX_SHOWN} more" if len(texts) > MAX_SHOWN else "")
        for place, texts in found.items()
    )
