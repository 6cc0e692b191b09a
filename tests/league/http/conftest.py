"""Certificates for all tests of this folder."""

from __future__ import annotations

import pytest

from tests.league.http.certificates import Certificates, make_certificates


@pytest.fixture(scope="package")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """An authority and a server's certificate."""
    return make_certificates(tmp_path_factory.mktemp("certificates"))
