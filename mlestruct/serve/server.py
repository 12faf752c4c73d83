"""The page's server: 127.0.0.1 only, a random token in every address, the host checked."""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from mlestruct.serve.actions import Json, Planned, fit, overview, ruled
from mlestruct.serve.page import PAGE
from mlestruct.serve.project import LARGEST, Project

HOST = "127.0.0.1"
JSON, HTML = "application/json; charset=utf-8", "text/html; charset=utf-8"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'nonce-{nonce}'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'"
)


class Session:
    """One project and what is going on with it: the fit in the background, the plan at hand."""

    def __init__(self, project: Project) -> None:
        self.project, self.lock = project, threading.RLock()
        self._planned: Planned | None = None
        self._fit: threading.Thread | None = None
        self._began, self._fault = 0.0, ""

    def state(self) -> Json:
        """What the page shows: files, roles, the fit, and the plan once there is one."""
        running = self._fit is not None and self._fit.is_alive()
        with self.lock:
            found = overview(self.project)
        return found | {
            "running": running,
            "seconds": time.monotonic() - self._began if running else 0.0,
            "fault": self._fault,
        }

    def put(self, kind: str, name: str, data: bytes) -> Json:
        """A dropped file; what was learned from an older one is not kept."""
        with self.lock:
            choices = self.project.choices()
            kept = self.project.put(kind, name, data)
            files = {**choices.files, kind: kept}
            again = {} if kind != "rooms" else {"roles": choices.roles, "planned": choices.planned}
            self._forget(kind != "rooms")
            self.project.keep(replace(choices, files=files, require=(), forbid=(), **_none(again)))
        return self.state()

    def choose(self, asked: Mapping[str, Any]) -> Json:
        """Roles and the cohort to pair up."""
        roles, planned = asked.get("roles"), asked.get("planned")
        if not isinstance(roles, dict) or not isinstance(planned, str | None):
            raise ValueError("expected roles and the cohort that is planned")
        with self.lock:
            self._forget(True)
            old = self.project.choices()
            new = replace(old, roles=roles, planned=planned, require=(), forbid=())
            self.project.keep(new)
        return self.state()

    def begin(self) -> Json:
        """Fit in the background, unless that is already going on."""
        if self._fit is None or not self._fit.is_alive():
            self._began, self._fault = time.monotonic(), ""
            self._fit = threading.Thread(target=self._learn, daemon=True)
            self._fit.start()
        return self.state()

    def _learn(self) -> None:
        try:
            fit(self.project)
        except Exception as error:
            self._fault = str(error) or type(error).__name__
        self._planned = None

    def planned(self) -> Planned:
        """The plan at hand, made where there is none."""
        with self.lock:
            if not self.project.model.exists():
                raise ValueError("nothing is learned yet: choose the columns and learn first")
            if self._planned is None:
                self._planned = Planned(self.project)
            return self._planned

    def rule(self, asked: Mapping[str, Any]) -> Json:
        """Keep or drop a rule about two people; a rule that leaves no plan is not kept."""
        a, b = int(asked["a"]), int(asked["b"])
        with self.lock:
            old = self.project.choices()
            self.project.keep(ruled(old, str(asked["kind"]), a, b, bool(asked["keep"])))
            self._planned = None
            try:
                return self.planned().shown()
            except ValueError:
                self.project.keep(old)
                self._planned = None
                raise

    def _forget(self, learned: bool) -> None:
        self._planned = None
        if learned:
            self.project.model.unlink(missing_ok=True)


def _none(given: Mapping[str, Any]) -> dict[str, Any]:
    """Roles and cohort as given, else none: other files have other columns."""
    return {"roles": given.get("roles", {}), "planned": given.get("planned")}


class Handler(BaseHTTPRequestHandler):
    """Answers one request; whatever is not asked for with the token on this host is refused."""

    server: Server
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer({
            "": self._page,
            "state": lambda: self._json(self.server.session.state()),
            "plan": lambda: self._json(self.server.session.planned().shown()),
            "cost": self._cost,
            "report.html": lambda: self._send(self._planned().report().html().encode(), HTML),
            "pairs.csv": lambda: self._send(self._planned().csv(), "text/csv; charset=utf-8"),
            "pairs.xlsx": lambda: self._send(self._planned().xlsx(), XLSX),
        })  # fmt: skip

    def do_POST(self) -> None:
        session = self.server.session
        self._answer({
            "file": self._file,
            "choose": lambda: self._json(session.choose(self._sent())),
            "fit": lambda: self._json(session.begin()),
            "rule": lambda: self._json(session.rule(self._sent())),
        })  # fmt: skip

    def _answer(self, actions: Mapping[str, Callable[[], None]]) -> None:
        refused = self._refused(actions)
        if refused is not None:
            self._send(refused[1].encode(), "text/plain", refused[0])
            return
        try:
            actions[self._parts()[2]]()
        except (ValueError, KeyError, TypeError, ImportError) as error:
            self._json({"fault": str(error) or type(error).__name__}, 400)

    def _parts(self) -> list[str]:
        return urlsplit(self.path).path.split("/")

    def _refused(self, actions: Mapping[str, Any]) -> tuple[int, str] | None:
        """Why this is not answered: another host's name, no token, not from the page, unknown."""
        parts, token = self._parts(), self.server.token
        if self.headers.get("Host") not in self.server.hosts:
            return 403, "not here"
        if len(parts) != 3 or not secrets.compare_digest(parts[1].encode(), token.encode()):
            return 403, "this address lacks its token"
        if self.command == "POST" and self.headers.get("X-Mlestruct") != token:
            return 403, "not from the page"
        return None if parts[2] in actions else (404, "there is no such thing")

    def _page(self) -> None:
        nonce = secrets.token_urlsafe(12)
        text = PAGE.replace("{nonce}", nonce).replace("{token}", self.server.token)
        self._send(text.encode(), HTML, policy=POLICY.format(nonce=nonce))

    def _file(self) -> None:
        kind, name, body = self._asked("kind"), self._asked("name"), self._body()
        self._json(self.server.session.put(kind, name, body))

    def _cost(self) -> None:
        self._json(self._planned().cost(int(self._asked("a")), int(self._asked("b"))))

    def _planned(self) -> Planned:
        return self.server.session.planned()

    def _asked(self, name: str) -> str:
        """A value of the address."""
        found = parse_qs(urlsplit(self.path).query).get(name)
        if not found:
            raise ValueError(f"the address lacks {name}")
        return found[0]

    def _body(self) -> bytes:
        length = int(self.headers.get("Content-Length", "0"))
        if not 0 <= length <= LARGEST:
            self.close_connection = True
            raise ValueError(f"at most {LARGEST} bytes are read, not {length}")
        return self.rfile.read(length)

    def _sent(self) -> dict[str, Any]:
        found = json.loads(self._body() or b"{}")
        if not isinstance(found, dict):
            raise ValueError("expected an object")
        return found

    def _json(self, found: Json, status: int = 200) -> None:
        self._send(json.dumps(found).encode(), JSON, status)

    def _send(self, body: bytes, kind: str, status: int = 200, policy: str = "") -> None:
        self.send_response(status)
        own = {"Content-Type": kind, "Content-Length": str(len(body))}
        own |= {"Content-Security-Policy": policy} if policy else {}
        for name, value in (HEADERS | own).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is logged: addresses hold the token."""


class Server(ThreadingHTTPServer):
    """A project's page on a port of this machine."""

    daemon_threads = True

    def __init__(self, project: Project, port: int = 0) -> None:
        super().__init__((HOST, port), Handler)
        self.session, self.token = Session(project), secrets.token_urlsafe(16)
        self.hosts = {f"{name}:{self.server_port}" for name in (HOST, "localhost")}

    @property
    def address(self) -> str:
        """Where the page is, token included."""
        return f"http://{HOST}:{self.server_port}/{self.token}/"


def serve(folder: str, port: int = 0, ready: Callable[[str], None] = print) -> None:
    """Serve a project's folder until Ctrl-C; ``ready`` is told the address."""
    with Server(Project(folder), port) as server:
        ready(server.address)
        with suppress(KeyboardInterrupt):
            server.serve_forever()
