"""Serves the page of a live run beside its daemon: `python -m league.see.page.beside RUN`, started by the daemon.

The address lies in RUN/page.json and its tokens in RUN/tokens, which only the run's user may read. They stay over
restarts.
"""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from league.config.loading import parse_config
from league.errors import LeagueError
from league.http.address import Listening
from league.http.token_file import tokens_in
from league.see.page.page_file import PAGE_FILE, PageAddress, PageFile
from league.see.page.server import serve
from league.store.lock import this_process
from league.store.run_folder import RunFolder


def main() -> int:
    """Serve the page of the run in the arguments until a signal ends it; returns the exit code."""
    folder = RunFolder.open(Path(sys.argv[1]))

    def ready(address: PageAddress) -> None:
        page = PageFile(this_process(folder.path), address.base)
        payload = msgspec.json.encode(page)
        folder.storage.atomic_write_bytes(folder.path / PAGE_FILE, payload, durable=False, private=True)

    try:
        tokens, command = tokens_in(folder.tokens_path), f"league up {folder.path}"
        serve(folder.path, where=where_of(folder), tokens=tokens, command=command, ready=ready)
    except LeagueError as error:
        print(f"league: {error}", file=sys.stderr)
        return error.exit_code
    return 0


def where_of(folder: RunFolder) -> Listening | None:
    """The address that `control.page_listen` of the run asks for; None for a free port of loopback.

    Raises:
      ConfigError: the configuration cannot be read. AddressError: the address is not safe.
    """
    control = parse_config(folder.read_config(), source=str(folder.config_path)).control
    if not control.page_listen:
        return None
    keys = ("control.page_listen", "control.tls_cert", "control.tls_key")
    tls_cert, tls_key = control.tls_cert, control.tls_key
    return Listening.at(control.page_listen, tls_cert=tls_cert, tls_key=tls_key, hosts=control.hosts, keys=keys)


if __name__ == "__main__":
    sys.exit(main())
