"""The command that serves the web page: serve."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from league.errors import LeagueError


def serve(
    path: Annotated[
        Path, typer.Argument(metavar="RUN|FOLDER", help="Run folder, or a folder of several.", show_default=False)
    ],
    port: Annotated[
        int | None,
        typer.Option(min=1, max=65535, help="Of 127.0.0.1; by default 8420, or a free one.", show_default=False),
    ] = None,
    listen: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="In the place of --port; beyond this machine with a certificate.")
    ] = "",
    tls_cert: Annotated[str, typer.Option(metavar="FILE", help="Certificate in PEM.")] = "",
    tls_key: Annotated[str, typer.Option(metavar="FILE", help="Its key in PEM.")] = "",
    host: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A name of this machine in the address; may be repeated.")
    ] = None,
    open_browser: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
) -> None:
    """Show runs in a web page until Ctrl-C, on this machine by default; prints the address of a run's own page."""
    import webbrowser

    from league.http.address import Listening
    from league.see.page.page_file import PageAddress, page_beside
    from league.see.page.server import serve as serve_page

    def ready(address: PageAddress) -> None:
        typer.echo(f"{address.url}\nopens the page of {path}; the address is yours alone. Ctrl-C ends it.")
        typer.echo(f"{address.reader_url}\nis read-only, for others.")
        if open_browser:
            webbrowser.open(address.url)

    if listen and port is not None:
        raise LeagueError("give --listen or --port, not both.")
    where = None if port is None else Listening(port=port, keys=("--port", "", ""))
    if listen or tls_cert or tls_key or host:
        address = listen or f"127.0.0.1:{port or 0}"
        where = Listening.at(address, tls_cert=tls_cert, tls_key=tls_key, hosts=tuple(host or ()))
    beside = page_beside(path) if where is None else None
    if beside is not None:
        typer.echo(f"{beside.url}\nopens the page that is served beside the run, until it ends.")
        typer.echo(f"{beside.reader_url}\nis read-only, for others.")
        if open_browser:
            webbrowser.open(beside.url)
        return
    serve_page(path, where=where, ready=ready)
