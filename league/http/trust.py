"""Trust of clients: certificates of the system or of a file, and plain HTTP on this machine alone."""

from __future__ import annotations

import ssl
from urllib.parse import urlsplit

from league.http.address import AddressError, is_loopback


def trust_of(url: str, *, ca_file: str = "", key: str = "--tls-ca") -> ssl.SSLContext | bool:
    """The argument `verify` of an HTTP client for a server that wants a token.

    Args:
      url: of the server. ca_file: certificates to trust in the place of the system's, in PEM; empty for the system's.
      key: name of that setting, for errors.
    Raises:
      AddressError: it is no URL, would carry the token in the clear, or the file cannot be read.
    """
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        parts, host = None, None
    if parts is None or parts.scheme not in ("http", "https") or not host:
        raise AddressError(f"{url} is no URL of a server: write http://127.0.0.1:PORT or https://HOST:PORT.")
    if parts.scheme == "http":
        if not is_loopback(host):
            raise AddressError(f"{url} would carry the token in the clear: use https, or a tunnel to 127.0.0.1.")
        if ca_file:
            raise AddressError(f"{key} is for https, and {url} is not.")
        return True
    try:
        context = ssl.create_default_context(cafile=ca_file or None)
    except OSError as error:  # of the file system, or of TLS
        raise AddressError(f"{key} {ca_file} cannot be used: {error}.") from error
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context
