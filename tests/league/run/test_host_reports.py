"""The reports of hosts; that each is taken to the right place is tested with the daemon."""

from __future__ import annotations

import typing

from league.hosts.protocol import Report
from league.run.host_reports import TAKERS


def test_every_kind_of_report_is_taken() -> None:
    assert set(TAKERS) == set(typing.get_args(Report))
