"""Addresses of HTTP servers, and the rule for those that other machines reach: only with a certificate."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Self

from league.errors import LeagueError


class AddressError(LeagueError):
    """An address cannot be listened on or called as asked."""


@dataclass(frozen=True)
class Listening:
    """A TCP address to listen on.

    Fields:
      host, port: port 0 takes a free one. tls_cert, tls_key: files in PEM, both or neither.
      hosts: names by which the server may be called, beside loopback's and `host`.
      keys: names of the settings of the address, the certificate and its key, for errors.
    """

    host: str = "127.0.0.1"
    port: int = 0
    tls_cert: str = ""
    tls_key: str = ""
    hosts: tuple[str, ...] = ()
    keys: tuple[str, str, str] = ("--listen", "--tls-cert", "--tls-key")

    @classmethod
    def at(
        cls,
        text: str,
        *,
        tls_cert: str = "",
        tls_key: str = "",
        hosts: tuple[str, ...] = (),
        keys: tuple[str, str, str] = keys,
    ) -> Self:
        """The address that "HOST:PORT" says.

        Raises:
          AddressError: it says none, or one that is not safe.
        """
        try:
            host, port = host_and_port(text)
        except ValueError as error:
            raise AddressError(f"{keys[0]}: {error}.") from error
        found = cls(host, port, tls_cert, tls_key, hosts, keys)
        found.require_safe()
        return found

    @property
    def names(self) -> tuple[str, ...]:
        """Names by which the server may be called."""
        return ("localhost", "127.0.0.1", "[::1]", _shown(self.host), *self.hosts)

    def require_safe(self) -> None:
        """Refuse an address that other machines reach without a certificate.

        Raises:
          AddressError: the token would travel in the clear.
        """
        listen, cert, key = self.keys
        if bool(self.tls_cert) != bool(self.tls_key):
            raise AddressError(f"{cert} needs {key}, and the key its certificate: give both or neither.")
        if not self.tls_cert and not is_loopback(self.host):
            raise AddressError(
                f"{listen}: other machines reach {self.host}, and tokens would travel in the clear; give {cert} and "
                f"{key}, or listen on 127.0.0.1."
            )

    def url(self, port: int) -> str:
        """The URL of the server, whose port is known once it listens."""
        return f"{'https' if self.tls_cert else 'http'}://{_shown(self.host)}:{port}"


def host_and_port(text: str) -> tuple[str, int]:
    """Host and port of "HOST:PORT"; an IPv6 host stands in brackets there.

    Raises:
      ValueError: it is not of that form.
    """
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not (port.isascii() and port.isdecimal()) or int(port) >= 1 << 16:
        raise ValueError(f"{text!r} is not HOST:PORT, as in 127.0.0.1:8700")
    return host, int(port)


def is_loopback(host: str) -> bool:
    """True if only this machine reaches that host."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.removeprefix("[").removesuffix("]")).is_loopback
    except ValueError:
        return False


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host
