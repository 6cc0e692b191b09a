"""The command that serves the web page: serve."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def add_page(app: typer.Typer) -> None:
    """Adds the command to the `league` command."""
    app.command("serve")(serve)


def serve(
    path: Annotated[
        Path, typer.Argument(metavar="RUN|FOLDER", help="Run folder, or a folder of several.", show_default=False)
    ],
    port: Annotated[
        int | None,
        typer.Option(min=1, max=65535, help="Of 127.0.0.1; by default 8420, or a free one.", show_default=False),
    ] = None,
    open_browser: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
) -> None:
    """Show runs in a web page on this machine until Ctrl-C; prints the address where a run serves its own."""
    import webbrowser

    from league.page.page_file import PageAddress, live_page
    from league.page.server import serve as serve_page

    def ready(address: PageAddress) -> None:
        typer.echo(f"{address.url}\nopens the page of {path}; the address is yours alone. Ctrl-C ends it.")
        if open_browser:
            webbrowser.open(address.url)

    beside = live_page(path) if port is None else None
    if beside is not None:
        typer.echo(f"{beside.url}\nopens the page that is served beside the run, until it ends.")
        if open_browser:
            webbrowser.open(beside.url)
        return
    serve_page(path, port=port, ready=ready)
