"""Serves the page of a live run beside its daemon: `python -m league.page.beside RUN`, started by the daemon.

The address with its token lies in RUN/page.json, which only the run's user may read. It stays over restarts.
"""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from league.errors import LeagueError
from league.page.guard import new_token
from league.page.page_file import PAGE_FILE, PageAddress, PageFile, read_page_file
from league.page.server import serve
from league.store.lock import this_process
from league.store.run_folder import RunFolder


def main() -> int:
    """Serve the page of the run in the arguments until a signal ends it; returns the exit code."""
    folder = RunFolder.open(Path(sys.argv[1]))
    known = read_page_file(folder.path)
    token = new_token() if known is None else known.token

    def ready(address: PageAddress) -> None:
        page = PageFile(this_process(), address.port, address.token)
        payload = msgspec.json.encode(page)
        folder.storage.atomic_write_bytes(folder.path / PAGE_FILE, payload, durable=False, private=True)

    try:
        serve(folder.path, token=token, ready=ready)
    except LeagueError as error:
        print(f"league: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
