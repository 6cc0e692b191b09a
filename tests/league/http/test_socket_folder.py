"""Sockets lie in a folder whose path leaves room for theirs, whatever TMPDIR says."""

from __future__ import annotations

from pathlib import Path

import pytest

from league.errors import LeagueError
from league.http import socket_folder


def test_a_deep_temporary_folder_is_not_used_for_sockets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = tmp_path / ("x" * 100)
    deep.mkdir()
    short = Path("/tmp")
    monkeypatch.setattr("tempfile.tempdir", str(deep))
    assert socket_folder.folder_for_sockets(84) == short
    monkeypatch.setattr(socket_folder, "SHORT", ())
    with pytest.raises(LeagueError, match="set TMPDIR to one of at most 23 letters"):
        socket_folder.folder_for_sockets(84)
