"""The page's server: 127.0.0.1 only, a random token in every address, the host checked."""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from mlestruct.method import Progress
from mlestruct.serve.inputs import Inputs, Json, checked
from mlestruct.serve.overview import LEARNED_FROM, dropped, fresh, overview
from mlestruct.serve.page import page
from mlestruct.serve.planning import Planned, fit, locked, ruled
from mlestruct.serve.project import LARGEST, Choices, Project
from mlestruct.serve.sent import sent
from mlestruct.serve.words import CATALOGUE

HOST = "127.0.0.1"
JSON, HTML = "application/json; charset=utf-8", "text/html; charset=utf-8"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
SILENT: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
Ready = Callable[[], object] | None
"""What a fit waits for, such as the end of compiling."""

POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'nonce-{nonce}'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'"
)


class Session:
    """One project, the fit that runs in the background, and the plan on the page."""

    def __init__(self, project: Project, language: str = "en", ready: Ready = None) -> None:
        self.project, self.lock = project, threading.RLock()
        self._usual, self._ready = language, ready
        self._given: Inputs | None = None
        self._planned: Planned | None = None
        self._fit: threading.Thread | None = None
        self._began, self._fault = 0.0, ""
        self._progress: Json = {"round": 0, "relative": None}

    @property
    def language(self) -> str:
        """As chosen on the page; else as the program was started."""
        return self.project.choices().language or self._usual

    def state(self) -> Json:
        """What the page shows: files, findings, roles, and how far a fit is."""
        running = self._fit is not None and self._fit.is_alive()
        with self.lock:
            if self._given is None:
                self._given = Inputs(self.project)
            found = overview(self._given, self.language)
        return found | {
            "running": running,
            "seconds": time.monotonic() - self._began if running else 0.0,
            "progress": self._progress,
            "fault": self._fault,
        }

    def put(self, kind: str, name: str, data: bytes) -> Json:
        """A dropped file; what was learned from an older one is not kept."""
        with self.lock:
            self._refuse_while_learning()
            self.keep(dropped(self.project, kind, self.project.put(kind, name, data)), kind)
        return self.state()

    def choose_sheet(self, asked: Mapping[str, Any]) -> Json:
        """Another sheet of a dropped workbook."""
        with self.lock:
            self._refuse_while_learning()
            old, kind = self.project.choices(), asked["kind"]
            if kind not in old.files:
                raise ValueError(f"no file of {kind!r}; there are {', '.join(old.files) or 'none'}")
            files = {**old.files, kind: old.files[kind]._replace(sheet=asked["sheet"])}
            self.keep(fresh(replace(old, files=files), kind), kind)
        return self.state()

    def choose(self, asked: Mapping[str, Any]) -> Json:
        """What columns are for, and the cohort to pair up."""
        with self.lock:
            self._refuse_while_learning()
            old = self.project.choices()
            roles, planned = checked(asked["roles"]), asked["planned"]
            self.keep(replace(old, roles=roles, planned=planned).without_rules())
        return self.state()

    def speak(self, asked: Mapping[str, Any]) -> Json:
        """Another language, from now on."""
        language = asked["language"]
        if language not in CATALOGUE:
            raise ValueError(f"no language {language!r}; there are {', '.join(CATALOGUE)}")
        with self.lock:
            self.project.keep(replace(self.project.choices(), language=language))
            self._planned = None
        return {"language": language}

    def keep(self, choices: Choices, kind: str = "people") -> None:
        """Other choices; the model is of the old ones, unless only rooms or rules are new."""
        self.project.keep(choices)
        self._given = self._planned = None
        self._fault = ""
        if kind in LEARNED_FROM:
            self.project.model.unlink(missing_ok=True)

    def _refuse_while_learning(self) -> None:
        if self._fit is not None and self._fit.is_alive():
            raise ValueError("wait until learning is over")

    def begin(self, _: object = None) -> Json:
        """Fit in the background, unless that is already going on."""
        with self.lock:
            if self._fit is None or not self._fit.is_alive():
                self._began, self._fault = time.monotonic(), ""
                self._progress = {"round": 0, "relative": None}
                self._fit = threading.Thread(target=self._learn, daemon=True)
                self._fit.start()
        return self.state()

    def _learn(self) -> None:
        try:
            if self._ready is not None:
                self._ready()
            fit(self.project, self._told)
        except Exception as error:
            self._fault = str(error) or type(error).__name__
        self._planned = None

    def _told(self, state: Progress) -> None:
        """A round of the fit, for whoever asks how far it is."""
        relative = state.certificate.relative
        known = relative if 0.0 <= relative < 1.0 else None
        self._progress = {"round": self._progress["round"] + 1, "relative": known}

    def planned(self) -> Planned:
        """The plan at hand, made where there is none."""
        with self.lock:
            if not self.project.model.exists():
                raise ValueError("nothing is learned yet: choose the columns and learn first")
            if self._planned is None:
                self._planned = Planned(self.project, self.language)
            return self._planned

    def rule(self, asked: Mapping[str, Any]) -> Json:
        """Keep or drop rules about two people."""
        pairs = [(a, b) for a, b in asked["pairs"]]
        return self._under(lambda old: ruled(old, asked["kind"], pairs, asked["keep"]))

    def change(self, asked: Mapping[str, Any]) -> Json:
        """Put two people together, or swap their partners."""
        pairs = self.planned().asked(asked["kind"], asked["a"], asked["b"])
        return self._under(lambda old: ruled(old, "require", pairs, True))

    def hold(self, asked: Mapping[str, Any]) -> Json:
        """Lock a home, or unlock it."""
        rows, room, keep = asked["rows"], asked["room"], asked["keep"]
        return self._under(lambda old: locked(old, rows, room, keep))

    def _under(self, changed: Callable[[Choices], Choices]) -> Json:
        """The plan under other rules; rules that leave no plan are not kept."""
        with self.lock:
            old = self.project.choices()
            self.project.keep(changed(old))
            self._planned = None
            try:
                return self.planned().shown()
            except (ValueError, LookupError):
                self.project.keep(old)
                self._planned = None
                raise


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
            "choose": lambda: self._json(session.choose(self._sent("choose"))),
            "fit": lambda: self._json(session.begin(self._sent("fit"))),
            "sheet": lambda: self._json(session.choose_sheet(self._sent("sheet"))),
            "language": lambda: self._json(session.speak(self._sent("language"))),
            "rule": lambda: self._json(session.rule(self._sent("rule"))),
            "change": lambda: self._json(session.change(self._sent("change"))),
            "lock": lambda: self._json(session.hold(self._sent("lock"))),
        })  # fmt: skip

    def _answer(self, actions: Mapping[str, Callable[[], None]]) -> None:
        refused = self._refused(actions)
        if refused is not None:
            self.close_connection = True  # a body that nobody reads would be the next request
            self._send(refused[1].encode(), "text/plain", refused[0])
            return
        try:
            actions[self._parts()[2]]()
        except (ValueError, LookupError, TypeError, ImportError, OSError) as error:
            self._json({"refused": str(error) or type(error).__name__})  # no fault of the page

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
        text = page(self.server.session.language, self.server.token, nonce)
        self._send(text.encode(), HTML, policy=POLICY.format(nonce=nonce))

    def _file(self) -> None:
        kind, name, body = self._asked("kind"), self._asked("name"), self._body()
        self._json(self.server.session.put(kind, name, body))

    def _cost(self) -> None:
        a, b = int(self._asked("a")), int(self._asked("b"))
        self._json(self._planned().cost(self._asked("kind"), a, b))

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

    def _sent(self, asked: str) -> dict[str, Any]:
        return sent(asked, self._body())

    def _json(self, found: Json) -> None:
        self._send(json.dumps(found).encode(), JSON)

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

    def __init__(
        self, project: Project, port: int = 0, language: str = "en", ready: Ready = None
    ) -> None:
        super().__init__((HOST, port), Handler)
        self.session, self.token = Session(project, language, ready), secrets.token_urlsafe(16)
        self.hosts = {f"{name}:{self.server_port}" for name in (HOST, "localhost")}

    @property
    def address(self) -> str:
        """Where the page is, token included."""
        return f"http://{HOST}:{self.server_port}/{self.token}/"


def serve(
    folder: str, port: int = 0, ready: Callable[[str], None] = print, language: str = "en"
) -> None:
    """Serve a project's folder until Ctrl-C; ``ready`` is told the address.

    Meanwhile a process compiles what the first fit needs, so that it is done, or nearly, when
    files and columns are chosen.
    """
    warming = subprocess.Popen([sys.executable, "-m", "mlestruct", "warm", "roommates"], **SILENT)
    try:
        with Server(Project(folder), port, language, lambda: warming.wait()) as server:
            ready(server.address)
            with suppress(KeyboardInterrupt):
                server.serve_forever()
    finally:
        warming.terminate()
        warming.wait()
