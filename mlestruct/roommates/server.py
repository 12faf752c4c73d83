"""``mlestruct roommates serve``: a page from files to an accepted plan, on this machine only.

The standard library's server on 127.0.0.1, a random token in every address, the host checked,
nothing asked from outside: what people answered never leaves the machine.
"""

from __future__ import annotations

import json
import re
import secrets
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from mlestruct.roommates.observed import Crossed
from mlestruct.roommates.office import EXAMINED, Json, Office
from mlestruct.roommates.page import EXPECTED, decisions, dropped, overview, page, readable, sent
from mlestruct.roommates.project import (
    LARGEST,
    SINGLE,
    WAYS,
    Choices,
    Decisions,
    Project,
    Settings,
)

HOST = "127.0.0.1"
JSON, HTML = "application/json; charset=utf-8", "text/html; charset=utf-8"
TAKEN = {
    "report.html": HTML,
    "pairs.xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}
HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
REQUEST = 4 << 20  # bytes of a request that is no file
SECONDS = 20.0  # for all of a request to arrive, and for its answer to be taken
MOST = 32  # connections at a time
NEVER = float("inf")
PATIENCE = 0.5  # seconds that a change waits while a file is read
LATER = 1.0  # seconds in which what was sent beyond an answer is read, so that it can arrive

POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'nonce-{nonce}'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'"
)


class Session:
    """One project, the fit that runs in the background, and the plan on the page.

    Whoever reads files or changes choices has the turn, which may take seconds; others see what was
    known before, or are asked to wait.
    """

    def __init__(self, project: Project) -> None:
        self.project, self._turn = project, threading.RLock()
        self._planning = threading.RLock()  # who has the turn may take this too, not the reverse
        self._shown: Json = {}
        self._office: Office | None = None
        self._fit: threading.Thread | None = None
        self._began, self._fault = 0.0, ""
        self._progress: Json = {"round": 0, "relative": None}
        self._before: list[Decisions] = []  # the last changes can be taken back

    def office(self) -> Office:
        """The case under the choices of now."""
        with self._planning:
            if self._office is None:
                self._office = Office(self.project)
            return self._office

    def state(self) -> Json:
        """What the page shows: files, findings, roles, and how far a fit is."""
        if self._turn.acquire(blocking=not self._shown):
            try:
                self._shown = overview(self.office())
            finally:
                self._turn.release()
        return self._shown | {
            "undo": bool(self._before),
            "running": self._learning,
            "seconds": time.monotonic() - self._began,
            "progress": self._progress,
            "fault": self._fault,
        }

    @contextmanager
    def _alone(self) -> Iterator[Choices]:
        """Files and choices change while nobody else reads them or learns."""
        if not self._turn.acquire(timeout=PATIENCE):
            raise ValueError("wait until the file before is read")
        try:
            if self._learning:
                raise ValueError("wait until learning is over")
            yield self.project.choices()
        finally:
            self._turn.release()

    def put(self, kind: str, name: str, data: bytes) -> Json:
        """A dropped file; what was learned from an older one is not kept.

        One that cannot be read does not take the place of one that can.
        """
        with self._alone() as old:
            good = kind in old.files and kind not in self.office().faults
            kept = self.project.put(kind, name, data, partial(readable, kind) if good else None)
            return self._keep(dropped(self.project, kind, kept), kind)

    def sheet(self, asked: Mapping[str, Any]) -> Json:
        """Another sheet of a dropped workbook."""
        with self._alone() as old:
            kind = asked["kind"]
            if kind not in old.files:
                raise ValueError(f"no file of {kind!r}; there are {', '.join(old.files) or 'none'}")
            files = {**old.files, kind: old.files[kind]._replace(sheet=asked["sheet"])}
            return self._keep(replace(old, files=files), kind)

    def choose(self, asked: Mapping[str, Any]) -> Json:
        """What columns are for, and the cohort to pair up."""
        with self._alone() as old:
            office, roles = self.office(), dict(asked["roles"])
            way = roles.pop("way", "partners")
            same = {n: getattr(office.settings, n) for n in ("fit", "trust", "spelled")}
            new = Settings.of(same | {n: v for n, v in roles.items() if n not in WAYS or n == way})
            if old.settings is not None:
                gone = [name for name, _ in office.columns_gone]
                new = new.with_those(old.settings.keeping(gone.__contains__))
            people, said = office.tables.get("people"), {*new.uses(), *new.shares}
            rest = [n for n in people.names if n not in said] if people else []
            new = replace(new, ignore=(*new.ignore, *rest))
            return self._keep(replace(old, settings=new, planned=asked["planned"]))

    def _keep(self, choices: Choices, kind: str = "people") -> Json:
        """Other choices; the model is of the old ones, unless only rooms or rules are new."""
        self._decide(choices)
        self._fault = ""
        if kind in EXAMINED:
            self.project.model.unlink(missing_ok=True)
        return self.state()

    def _decide(self, choices: Choices) -> None:
        with self._planning:
            self.project.keep(choices)
            self._office = None

    @property
    def _learning(self) -> bool:
        return self._fit is not None and self._fit.is_alive()

    def fit(self, _: object = None) -> Json:
        """Fit in the background, unless that is already going on."""
        if not self._learning:
            with self._alone():
                self._began, self._fault = time.monotonic(), ""
                self._progress = {"round": 0, "relative": None}
                self._fit = threading.Thread(target=self._learn, daemon=True)
                self._fit.start()
        return self.state()

    def _learn(self) -> None:
        try:
            office = self.office()
            office.fit(self._told).set_params(progress=None).save(self.project.model)
            with self._planning:
                for name in ("model", "plan", "shown"):  # those of the model before
                    vars(office).pop(name, None)
        except Exception as error:
            self._fault = str(error) or type(error).__name__

    def _told(self, state: Any) -> None:
        """A round of the fit, for whoever asks how far it is."""
        relative = state.certificate.relative
        known = relative if 0.0 <= relative < 1.0 else None
        self._progress = {"round": self._progress["round"] + 1, "relative": known}

    def planned(self) -> Office:
        """The case with a plan."""
        with self._planning:
            if not self.project.model.exists():
                raise ValueError("nothing is learned yet: choose the columns and learn first")
            office = self.office()
            _ = office.plan
            return office

    def cost(self, kind: str, who: Sequence[str]) -> Json:
        """What a change would cost."""
        office = self.planned()
        return office.cost(office.changed(kind, who))

    def change(self, asked: Mapping[str, Any]) -> Json:
        """Decide about people; what leaves no plan, or does not fit, is not kept."""
        with self._alone() as old:
            office = self.planned().changed(asked["kind"], asked["who"])
            self._before += [old.decided] if office.choices.decided != old.decided else []
            self._decide(office.choices)
            with self._planning:
                self._office = office
            return office.shown | decisions(office) | {"undo": bool(self._before)}

    def undo(self, _: object = None) -> Json:
        """Take the last change of decisions about people back."""
        with self._alone() as old:
            if not self._before:
                raise ValueError("there is nothing to take back")
            self._decide(replace(old, decided=self._before.pop()))
        return self.state()

    def let_go(self, asked: Mapping[str, Any]) -> Json:
        """Forget one decision, or what was chosen for a column that is not there any more."""
        kind, who = asked["kind"], asked["who"]
        with self._alone() as old:
            if kind == "planned":
                new = replace(old, planned=None)
            elif kind == "column" and old.settings is not None:
                kept, now = old.settings.keeping(lambda n: n not in who), self.office().settings
                lost = [name for name in SINGLE if getattr(kept, name) in who]
                lost += WAYS if set(kept.shares) & set(who) else []
                more: Json = {name: getattr(now, name) for name in lost}
                new = replace(old, settings=replace(kept, **more))
            else:
                made = tuple(part for part in old.decided if part[:2] != (kind, tuple(who)))
                if len(made) == len(old.decided):
                    raise ValueError(f"there is no such decision about {' and '.join(who)}")
                self._before.append(old.decided)
                new = replace(old, decided=made)
            self._decide(new)
        return self.state()


class Handler(BaseHTTPRequestHandler):
    """Answers one request; whatever is not asked for with the token on this host is refused."""

    server: Server
    protocol_version = "HTTP/1.1"

    def setup(self) -> None:
        super().setup()
        self.connection.settimeout(self.server.seconds)

    def do_GET(self) -> None:
        self._answer(("", "state", "plan", "cost", *TAKEN))

    def do_POST(self) -> None:
        self._answer(("file", *EXPECTED))

    def _answer(self, known: Sequence[str]) -> None:
        """One answer a connection: what is sent behind a request is never read as another one."""
        self.close_connection = True
        url = urlsplit(self.path)
        self._parts, self._query = url.path.split("/"), parse_qs(url.query)
        status, why = self._refused(known) or self._received() or (200, "")
        self.server.received(self.request)
        nonce, kind = secrets.token_urlsafe(12), JSON
        found: Any = {"refused": why}
        if status == 200:
            try:
                found, kind = self._found(self._parts[2], nonce)
            except Crossed as error:
                found = {"refused": error.words("page")}
            except (ValueError, LookupError, TypeError, ImportError, OSError) as error:
                found = {"refused": str(error) or type(error).__name__}  # no fault of the page
        body = found if isinstance(found, bytes) else json.dumps(found).encode()
        self.send_response(status)
        own = {"Content-Type": kind, "Content-Length": str(len(body)), "Connection": "close"}
        own["Content-Security-Policy"] = POLICY.format(nonce=nonce)
        for name, value in (HEADERS | own).items():
            self.send_header(name, value)
        self.end_headers()
        with suppress(OSError):  # of who does not wait for the answer
            self.wfile.write(body)

    def _refused(self, known: Sequence[str]) -> tuple[int, str] | None:
        """Why this is not answered: another host's name, no token, not from the page, unknown."""
        parts, token = self._parts, self.server.token
        if self.headers.get("Host") not in self.server.hosts:
            return 403, "not here"
        if len(parts) != 3 or not secrets.compare_digest(parts[1].encode(), token.encode()):
            return 403, "this address lacks its token"
        if self.command == "POST" and self.headers.get("X-Mlestruct") != token:
            return 403, "not from the page"
        return None if parts[2] in known else (404, "there is no such thing")

    def _received(self) -> tuple[int, str] | None:
        """Read the body, of which the length must be known; or why it is refused."""
        told = self.headers.get_all("Content-Length", [])
        if "Transfer-Encoding" in self.headers or (self.command == "POST" and not told):
            return 411, "a body needs a Content-Length"
        number = told[0].strip() if told else "0"
        if len(told) > 1 or not re.fullmatch("[0-9]{1,20}", number):
            return 400, "the Content-Length is no number"
        length = int(number)
        if self.command == "GET" and length:
            return 400, "this request has no body"
        largest = LARGEST if self._parts[2] == "file" else REQUEST
        if length > largest:
            return 413, f"at most {largest} bytes are read, not {length}"
        try:
            self._body = self.rfile.read(length)
        except OSError:
            self._body = b""
        return None if len(self._body) == length else (400, "the body came in part only")

    def _found(self, name: str, nonce: str) -> tuple[Any, str]:
        """What is answered, and its type."""
        session, asked = self.server.session, self._query
        if name in TAKEN:
            office = session.planned()
            if name == "report.html":
                return office.report().html().encode(), HTML
            return office.xlsx(), TAKEN[name]
        if name == "":
            return page(self.server.token, nonce).encode(), HTML
        if name == "plan":
            return session.planned().shown, JSON
        for wanted in {"file": ("kind", "name"), "cost": ("kind", "who")}.get(name, ()):
            if wanted not in asked:
                raise ValueError(f"the address lacks {wanted}")
        if name == "file":
            return session.put(asked["kind"][0], asked["name"][0], self._body), JSON
        if name == "cost":
            return session.cost(asked["kind"][0], asked["who"]), JSON
        if name in EXPECTED:
            return getattr(session, name)(sent(name, self._body)), JSON
        return session.state(), JSON

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is logged: addresses hold the token."""


class Server(ThreadingHTTPServer):
    """A project's page on a port of this machine."""

    daemon_threads = True
    request_queue_size = 4 * MOST

    def __init__(
        self, project: Project, port: int = 0, seconds: float = SECONDS, most: int = MOST
    ) -> None:
        super().__init__((HOST, port), Handler)
        self.session, self.token = Session(project), secrets.token_urlsafe(16)
        self.hosts = {f"{name}:{self.server_port}" for name in (HOST, "localhost")}
        self.seconds, self.most = seconds, most
        self._turn = threading.Lock()
        self._open: dict[socket.socket, float] = {}  # until when its request must have arrived

    def process_request(self, request: Any, client_address: Any) -> None:
        """A thread for a connection; where there are too many, the longest waiting one ends."""
        with self._turn:
            oldest = min(self._open, key=self._open.__getitem__) if self._open else request
            full = len(self._open) >= self.most
            refused = full and self._open[oldest] == NEVER  # all are being answered
            if full and not refused:
                del self._open[oldest]
                _end(oldest)
            if not refused:
                self._open[request] = time.monotonic() + self.seconds
        if refused:
            self.close_request(request)
        else:
            super().process_request(request, client_address)

    def received(self, request: socket.socket) -> None:
        """All of a request is here, and its answer may take as long as it takes."""
        with self._turn:
            if request in self._open:
                self._open[request] = NEVER

    def service_actions(self) -> None:
        """End connections whose request does not arrive in time, however slowly it drips."""
        with self._turn:
            for request in [r for r, until in self._open.items() if until < time.monotonic()]:
                del self._open[request]
                _end(request)

    def shutdown_request(self, request: Any) -> None:
        """End a connection; what its client still sends is read for a moment.

        Else the system would answer it with a reset, which can overtake the answer.
        """
        end = time.monotonic() + min(self.seconds, LATER)
        with self._turn:
            if request in self._open:
                self._open[request] = end
        with suppress(OSError):
            request.shutdown(socket.SHUT_WR)
            request.settimeout(min(self.seconds, LATER) / 4)
            while time.monotonic() < end and request.recv(1 << 16):
                pass
        with self._turn:
            self._open.pop(request, None)
        self.close_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that has gone is no fault to report."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)

    @property
    def address(self) -> str:
        """Where the page is, token included."""
        return f"http://{HOST}:{self.server_port}/{self.token}/"


def _end(request: socket.socket) -> None:
    """Wake the thread that waits for a client."""
    with suppress(OSError):
        request.shutdown(socket.SHUT_RDWR)


def serve(folder: str, port: int = 0, ready: Callable[[str], None] = print) -> None:
    """Serve a project's folder until Ctrl-C; ``ready`` is told the address."""
    page("", "")  # or what is missing for it is named at once
    with Server(Project.own(folder), port) as server:
        ready(server.address)
        with suppress(KeyboardInterrupt):
            server.serve_forever()
