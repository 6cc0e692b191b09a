"""A stand-in of wandb's server on this machine: the calls that wandb 0.31 makes, and a record of what arrives."""

from __future__ import annotations

import gzip
import http.server
import json
import re
import threading
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Arrived:
    """One run as the server has it.

    Fields:
      head: variables of its first upsert: name, group, job type, tags, config. rows: history, in order of its offsets.
      alerts: title and text. models: variables of the artifacts of type `model`. files: names.
    """

    head: dict[str, Any]
    rows: list[dict[str, Any]] = field(default_factory=list)
    summary: dict[str, Any] = field(default_factory=dict)
    alerts: list[tuple[str, str]] = field(default_factory=list)
    models: list[dict[str, Any]] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    used: int = 0


class WandbServer:
    """Start it by `with`; `runs` holds what has arrived, `url` is its address."""

    def __init__(self) -> None:
        self.runs: dict[str, Arrived] = {}
        self.uploads: dict[str, int] = {}
        self._lock = threading.Lock()
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._answer({})

            def do_PUT(self) -> None:
                server.uploads[self.path.removeprefix("/upload/")] = len(self._body())
                self._answer({})

            def do_POST(self) -> None:
                body = self._body()
                if self.path == "/graphql":
                    asked = json.loads(body)
                    with server._lock:
                        answer = server.answer(asked["query"], asked.get("variables") or {})
                    self._answer({"data": answer})
                    return
                if self.path.endswith("/file_stream"):
                    with server._lock:
                        server.take_rows(self.path.split("/")[4], json.loads(body))
                self._answer({})

            def _body(self) -> bytes:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                return gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body

            def _answer(self, answer: object) -> None:
                content = json.dumps(answer).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *arguments: object) -> None:
                """Nothing on the terminal."""

        class Quiet(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request: object, client_address: object) -> None:
                """A client that goes is no error."""

        self._server = Quiet(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> WandbServer:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def take_rows(self, run: str, body: dict[str, Any]) -> None:
        """Lines of the files that a run streams; a line at an offset that is there takes its place."""
        history = body.get("files", {}).get("wandb-history.jsonl")
        if history is not None:
            rows = [json.loads(line) for line in history["content"]]
            kept = self.runs[run].rows
            kept[history["offset"] : history["offset"] + len(rows)] = rows
        summary = body.get("files", {}).get("wandb-summary.json")
        if summary is not None:
            self.runs[run].summary = json.loads(summary["content"][-1])

    def answer(self, query: str, given: dict[str, Any]) -> dict[str, Any]:
        """What the server says to a query of GraphQL."""
        found = re.search(r"(?:query|mutation) (\w+)", query)
        assert found is not None, query
        make = getattr(self, f"_{found[1].lower()}", None)
        return make(given) if make is not None else {}

    def _viewer(self, given: dict[str, Any]) -> dict[str, Any]:
        return {"viewer": {"id": "v", "entity": "team", "username": "u", "flags": "{}", "teams": {"edges": []}}}

    def _runresumestatus(self, given: dict[str, Any]) -> dict[str, Any]:
        run = self.runs.get(given["name"])
        bucket = None
        if run is not None:
            bucket = {
                "id": f"b-{given['name']}",
                "name": given["name"],
                "summaryMetrics": json.dumps(run.summary),
                "displayName": run.head["displayName"],
                "logLineCount": 0,
                "historyLineCount": len(run.rows),
                "eventsLineCount": 0,
                "historyTail": json.dumps([json.dumps(row) for row in run.rows[-1:]]),
                "eventsTail": "[]",
                "config": run.head["config"],
                "tags": [],
                "wandbConfig": json.dumps({"t": 1}),  # else the run counts as made but not begun
            }
        return {"model": {"id": "p", "name": "games", "entity": {"id": "e", "name": "team"}, "bucket": bucket}}

    def _upsertbucket(self, given: dict[str, Any]) -> dict[str, Any]:
        name = given["name"]
        is_new = name not in self.runs
        if is_new:
            self.runs[name] = Arrived(given)
        project = {"id": "p", "name": "games", "entity": {"id": "e", "name": "team"}}
        bucket = {
            "id": f"b-{name}",
            "name": name,
            "displayName": self.runs[name].head["displayName"],
            "description": "",
            "config": "{}",
            "sweepName": None,
            "project": project,
            "historyLineCount": len(self.runs[name].rows),
        }
        return {"upsertBucket": {"bucket": bucket, "inserted": is_new}}

    def _notifyscriptablerunalert(self, given: dict[str, Any]) -> dict[str, Any]:
        self.runs[given["runName"]].alerts.append((given["title"], given["text"]))
        return {"notifyScriptableRunAlert": {"success": True}}

    def _createrunfiles(self, given: dict[str, Any]) -> dict[str, Any]:
        self.runs[given["run"]].files += given["files"]
        files = [{"name": name, "uploadUrl": self._upload(name)} for name in given["files"]]
        return {"createRunFiles": {"runID": "b", "uploadHeaders": [], "files": files}}

    def _artifacttype(self, given: dict[str, Any]) -> dict[str, Any]:
        return {"project": {"artifact": None}}

    def _createartifact(self, given: dict[str, Any]) -> dict[str, Any]:
        asked = given["input"]
        if asked["artifactTypeName"] == "model":
            self.runs[asked["runName"]].models.append(asked)
        made = {"id": "art", "state": "PENDING", "artifactSequence": {"id": "seq", "latestArtifact": None}}
        return {"createArtifact": {"artifact": made}}

    def _createartifactmanifest(self, given: dict[str, Any]) -> dict[str, Any]:
        file = {
            "id": "file",
            "name": "wandb_manifest.json",
            "displayName": "wandb_manifest.json",
            "uploadUrl": self._upload("manifest"),
            "uploadHeaders": [],
        }
        return {"createArtifactManifest": {"artifactManifest": {"id": "man", "file": file}}}

    def _createartifactfiles(self, given: dict[str, Any]) -> dict[str, Any]:
        nodes = [
            {
                "id": "file",
                "name": file["name"],
                "displayName": file["name"],
                "uploadUrl": self._upload(f"artifact/{file['name']}"),
                "uploadHeaders": [],
                "storagePath": "s",
                "uploadMultipartUrls": None,
                "artifact": {"id": "art"},
            }
            for file in given["input"]["artifactFiles"]
        ]
        return {"createArtifactFiles": {"files": {"edges": [{"node": node} for node in nodes]}}}

    def _commitartifact(self, given: dict[str, Any]) -> dict[str, Any]:
        return {"commitArtifact": {"artifact": {"id": "art", "digest": "d", "state": "COMMITTED"}}}

    def _upload(self, name: str) -> str:
        return f"{self.url}/upload/{name}"
