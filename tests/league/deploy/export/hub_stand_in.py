"""A stand-in for a model hub on this machine: it answers what huggingface_hub asks to make a repository and fill it.

Small files come within the commit, weights by the LFS protocol; reading weights is redirected, as hubs do.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit


class Hub(ThreadingHTTPServer):
    """Fields: files: repository -> path -> content. blobs: digest -> content. asked: methods and paths so far."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files: dict[str, dict[str, bytes]] = {}
        self.blobs: dict[str, bytes] = {}
        self.asked: list[str] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, *args: object) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        body, path = self._body(), self._path()
        if path == "/api/repos/create":
            asked = json.loads(body)
            name = f"{asked['organization']}/{asked['name']}" if asked.get("organization") else asked["name"]
            self.server.files.setdefault(name, {})
            return self._answer({"url": f"{self.server.address}/{name}", "name": name, "id": name})
        if path == "/api/validate-yaml":  # of the model card
            return self._answer({"errors": [], "warnings": []})
        if re.fullmatch(r"/api/models/(.+)/preupload/main", path):
            names = [each["path"] for each in json.loads(body)["files"]]
            modes = {name: "lfs" if _is_large(name) else "regular" for name in names}
            files = [{"path": name, "uploadMode": mode, "shouldIgnore": False} for name, mode in modes.items()]
            return self._answer({"files": files})
        if path.endswith(".git/info/lfs/objects/batch"):
            asked = json.loads(body)["objects"]
            upload = [
                {**each, "actions": {"upload": {"href": f"{self.server.address}/blobs/{each['oid']}"}}}
                for each in asked
            ]
            return self._answer({"transfer": "basic", "objects": upload})
        if found := re.fullmatch(r"/api/models/(.+)/commit/main", path):
            return self._commit(found[1], body)
        self._answer({"error": "unknown"}, code=404)

    def do_PUT(self) -> None:
        content = self._body()
        digest = self._path().rpartition("/")[2]
        assert hashlib.sha256(content).hexdigest() == digest
        self.server.blobs[digest] = content
        self._answer({})

    def do_GET(self) -> None:
        path = self._path()
        if found := re.fullmatch(r"/blobs/(\w+)", path):
            return self._send(self.server.blobs[found[1]])
        found = re.fullmatch(r"/([^/]+/[^/]+)/resolve/[^/]+/(.+)", path)
        content = self.server.files.get(found[1], {}).get(found[2]) if found else None
        if found and content is not None and _is_large(found[2]):
            digest = hashlib.sha256(content).hexdigest()
            self.server.blobs[digest] = content
            return self._send(b"", code=302, Location=f"{self.server.address}/blobs/{digest}")
        if content is not None:
            return self._send(content)
        self._answer({"error": "Entry not found"}, code=404)

    def _commit(self, repository: str, body: bytes) -> None:
        files = self.server.files[repository]
        for line in map(json.loads, body.splitlines()):
            value = line["value"]
            if line["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "lfsFile":
                files[value["path"]] = self.server.blobs[value["oid"]]
        oid = hashlib.sha1(body).hexdigest()
        self._answer({"commitUrl": f"{self.server.address}/{repository}/commit/{oid}", "commitOid": oid})

    def _path(self) -> str:
        path = urlsplit(self.path).path
        self.server.asked.append(f"{self.command} {path}")
        return path

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            parts = []
            while size := int(self.rfile.readline(), 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def _answer(self, value: object, *, code: int = 200) -> None:
        self._send(json.dumps(value).encode(), code=code)

    def _send(self, content: bytes, *, code: int = 200, **headers: str) -> None:
        self.send_response(code)
        for name, value in {**headers, "Content-Length": str(len(content)), "Content-Type": "application/json"}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)


def _is_large(path: str) -> bool:
    return path.endswith(".safetensors")
