"""A client of a served policy, for scripts: one game at a time, its session kept."""

from __future__ import annotations

from types import TracebackType
from typing import Any

import httpx
import msgspec

from league.deploy.serving.wire import ACT, POLICY, SESSIONS, to_json
from league.errors import LeagueError
from league.http.trust import trust_of

WAIT_S = 30.0
UNIX = "unix:"


class ServedPolicyError(LeagueError):
    """A served policy refused a request or cannot be reached. status: of the answer, 0 where there was none."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class PolicyClient:
    """Plays by a served policy.

    Args:
      address: "http://127.0.0.1:PORT", "https://HOST:PORT" or "unix:PATH". token: for TCP.
      ca_file: certificates to trust in the place of the system's, in PEM; empty for the system's.
      timeout_s: longest wait for an answer.
    Raises:
      AddressError: the token would travel in the clear, or the file cannot be used.
    """

    def __init__(self, address: str, *, token: str = "", ca_file: str = "", timeout_s: float = WAIT_S) -> None:
        is_unix = address.startswith(UNIX)
        if is_unix:
            transport = httpx.HTTPTransport(uds=address.removeprefix(UNIX))
        else:  # a transport of our own leaves out the proxies of the environment, which would see the token
            transport = httpx.HTTPTransport(verify=trust_of(address, ca_file=ca_file, key="ca_file"))
        self._http = httpx.Client(
            base_url="http://localhost" if is_unix else address,
            headers={"authorization": f"Bearer {token}"} if token else {},
            transport=transport,
            timeout=timeout_s,
        )
        self._session = ""

    def facts(self) -> dict[str, Any]:
        """The policy that is served, see `league.deploy.serving.wire.PolicyFacts`. Raises ServedPolicyError."""
        return self._ask("GET", POLICY)

    def reset(self) -> None:
        """Begin a game: opens a session, or restarts it. Raises ServedPolicyError."""
        if self._session:
            self._ask("POST", f"{SESSIONS}/{self._session}/restart")
        else:
            self._session = str(self._ask("POST", SESSIONS)["session"])

    def act(self, observation: Any, mask: Any = None, **options: Any) -> Any:
        """The action for an observation, as `LoadedPolicy.act` gives it.

        Args:
          observation, mask: arrays, lists, or a dict of them by field.
          options: seat, greedy, seed and probs, see `league.deploy.serving.wire.ActRequest`.
        Raises:
          ServedPolicyError: the request does not fit the policy, or the server does not answer.
        """
        return self.decide(observation, mask, **options)["action"]

    def decide(self, observation: Any, mask: Any = None, **options: Any) -> dict[str, Any]:
        """As `act`, with the value and whatever else was asked for."""
        request = {"observation": observation, "mask": mask, **options}
        if self._session and "state" not in options:
            request["session"] = self._session
        return self._ask("POST", ACT, request)

    def close(self) -> None:
        """Close the session and the connection."""
        try:
            if self._session:
                self._ask("DELETE", f"{SESSIONS}/{self._session}")
        except ServedPolicyError:
            pass  # the server forgets it by itself
        finally:
            self._session = ""
            self._http.close()

    def __enter__(self) -> PolicyClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _ask(self, method: str, path: str, message: object = None) -> dict[str, Any]:
        try:
            answer = self._http.request(method, path, content=None if message is None else to_json(message))
        except httpx.TransportError as error:
            raise ServedPolicyError(0, f"{self._http.base_url} does not answer: {error}.") from error
        try:
            found: Any = msgspec.json.decode(answer.content)
        except msgspec.DecodeError as error:
            raise ServedPolicyError(answer.status_code, f"{self._http.base_url} serves no policy.") from error
        if answer.status_code >= 400 or not isinstance(found, dict):
            raise ServedPolicyError(answer.status_code, f"the policy's server refused: {found.get('error', found)}.")
        return found
