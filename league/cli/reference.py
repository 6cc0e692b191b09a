"""The commands `league config` and `league presets`, which list what can be set, and the option `--version`."""

from __future__ import annotations

from typing import Annotated

import typer

from league.errors import LeagueError
from league.version import __version__


def config(
    explain: Annotated[
        str | None, typer.Option("--explain", metavar="KEY", help="Meaning, type and default of one key or section.")
    ] = None,
    default: Annotated[
        str | None, typer.Option("--default", metavar="ENV_ID", help="A whole configuration of that game, as YAML.")
    ] = None,
    schema: Annotated[bool, typer.Option("--schema", help="JSON schema, for editors and scripts.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="The whole reference as a Markdown page.")] = False,
) -> None:
    """List the keys of a configuration with their defaults, or print one of the forms that the options name."""
    from league.config import reference

    if sum((explain is not None, default is not None, schema, markdown)) > 1:
        raise LeagueError("give one of --explain, --default, --schema and --markdown.")
    if explain is not None:
        lines = [reference.entry_text(entry) for entry in reference.explain(explain)]
    elif default is not None:
        lines = [reference.default_yaml(default).rstrip()]
    elif schema:
        lines = [reference.schema()]
    elif markdown:
        lines = [reference.markdown().rstrip()]
    else:
        lines = reference.defaults()
    typer.echo("\n".join(lines))


def presets() -> None:
    """List the populations that `league.preset` names."""
    from league.config import reference

    for name, summary in reference.presets():
        typer.echo(f"{name:12} {summary}")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"league {__version__}")
        raise typer.Exit


def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Self-play training with a league of policies."""
