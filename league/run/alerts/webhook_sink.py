"""The alert sink that posts news to a URL as JSON, in the form that chat services take: the sentence is in `text`."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from urllib.parse import urlsplit

import httpx

from league.run.alerts.sink import AlertContext, AlertNews, AlertSinkFailed

for _name in ("httpx", "httpcore"):  # they log whole URLs, which may hold a token
    logging.getLogger(_name).setLevel(logging.WARNING)


@dataclass(frozen=True)
class WebhookOptions:
    """Options. A URL with a token in it and a bearer token are taken from the environment, never from a file.

    Fields:
      url: where to; url_from: name of the environment variable that holds it instead.
      token_from: name of the environment variable that holds a bearer token; empty for none.
      deadline_s: seconds to connect, and to wait for the answer.
    """

    url: str = ""
    url_from: str = ""
    token_from: str = ""
    deadline_s: float = 5.0

    def problems(self) -> Iterator[str]:
        if bool(self.url) == bool(self.url_from):
            yield "url: give it, or the environment variable that holds it as url_from"
        for field in ("url_from", "token_from"):
            name = getattr(self, field)
            if name and not os.environ.get(name):
                yield f"{field}: the environment variable {name} is not set"
        if urlsplit(self.address).scheme not in ("http", "https") and (self.url or os.environ.get(self.url_from)):
            yield f"{'url' if self.url else 'url_from'}: it is no URL that starts with http:// or https://"
        if not 0.0 < self.deadline_s <= 60.0:
            yield f"deadline_s: {self.deadline_s} must be above 0 and at most 60"

    @property
    def address(self) -> str:
        """The URL; empty where its variable is not set."""
        return self.url or os.environ.get(self.url_from, "")


class WebhookSink:
    """One POST for each news; any answer below 400 is good, and its content is not read."""

    def __init__(self, context: AlertContext, options: WebhookOptions) -> None:
        del context
        self._url = options.address
        token = os.environ.get(options.token_from, "")
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._client = httpx.Client(headers=headers, timeout=options.deadline_s, trust_env=False)

    def deliver(self, news: AlertNews) -> None:
        host = urlsplit(self._url).hostname
        try:
            request = self._client.build_request("POST", self._url, json=asdict(news))
            answer = self._client.send(request, stream=True)
            answer.close()
        except (httpx.HTTPError, httpx.InvalidURL, RuntimeError) as error:  # RuntimeError: closed meanwhile
            raise AlertSinkFailed(f"{host} does not take it ({type(error).__name__})") from error
        if answer.status_code >= httpx.codes.BAD_REQUEST:
            raise AlertSinkFailed(f"{host} answered {answer.status_code}")

    def close(self) -> None:
        self._client.close()
