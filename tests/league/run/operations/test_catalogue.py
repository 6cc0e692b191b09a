"""Every operation has a command and is described to those who operate a league."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer

from league.cli.main import app
from league.run.operations.catalogue import OPERATIONS

OF_HOSTS = {"actor_hosts": "--count", "park": "--park", "unpark": "--unpark", "drain": "--drain"}
GUIDE = Path(__file__).parents[4] / "docs" / "operating.md"


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_has_a_command_that_the_guide_shows(name: str) -> None:
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    option = OF_HOSTS.get(name)
    guide = GUIDE.read_text()
    if option is None:
        assert name in commands
        assert f"league {name}" in guide
    else:
        assert any(option in parameter.opts for parameter in commands["hosts"].params)
        assert option in guide


def test_every_command_is_under_a_head_of_the_help() -> None:
    panels = [*(command.rich_help_panel for command in app.registered_commands)]
    panels += [group.rich_help_panel for group in app.registered_groups]
    assert all(isinstance(panel, str) for panel in panels) and len(set(panels)) <= 9
