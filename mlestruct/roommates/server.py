"""``mlestruct roommates serve``: a page from files to an accepted plan, on this machine only.

The standard library's server on 127.0.0.1, a random token in every address, the host checked,
nothing asked from outside: what people answered never leaves the machine. What the page sends are
the fields of its forms, and every answer is the page.
"""

from __future__ import annotations

import io
import re
import secrets
import socket
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from mlestruct.roommates.observed import Crossed
from mlestruct.roommates.office import EXAMINED, Json, Office, opened
from mlestruct.roommates.project import (
    ENDINGS,
    LARGEST,
    SINGLE,
    WAYS,
    Choices,
    Decided,
    Decisions,
    Project,
    Settings,
)
from mlestruct.roommates.reading import sheets
from mlestruct.roommates.report import HERE, STYLE, rendered
from mlestruct.roommates.words import PAGE

HOST = "127.0.0.1"
HTML, TEXT = "text/html; charset=utf-8", "text/plain; charset=utf-8"
ASKED = {
    "": HTML,
    "report.html": HTML,
    "page.js": "text/javascript; charset=utf-8",
    "pairs.xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}
SENT = ("file", "sheet", "learn", "cost", "done", "change", "undo", "let_go")
REFUSED = (ValueError, LookupError, TypeError, ImportError, OSError)
HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'self'; "
        "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'"
    ),
    "Connection": "close",
}
KEPT = ("fit", "trust", "spelled", "levels", "words")  # settings that the page does not show
REQUEST = 4 << 20  # bytes of a request that is no file
SECONDS = 20.0  # for all of a request to arrive, and for its answer to be taken
TRIED = 8  # sheets of a workbook that are looked into
MOST = 32  # connections at a time that wait for a request
PATIENCE = 0.5  # seconds that a change waits while a file is read
LATER = 1.0  # seconds in which what was sent beyond an answer is read, so that it can arrive
STYLED, SCRIPT = STYLE + (HERE / "page.css").read_text("utf-8"), (HERE / "page.js").read_bytes()


class Form(dict[str, list[str]]):
    """The fields that the page sent, each with its values."""

    def __missing__(self, name: str) -> list[str]:
        raise ValueError(f"the request lacks {name}")


class Session:
    """One project, the fit that runs in the background, and the change that is thought of.

    Whoever reads files or changes choices has the turn, which may take seconds; others see what was
    known before, or are asked to wait.
    """

    def __init__(self, project: Project) -> None:
        self.project, self._turn = project, threading.RLock()
        self._shown: Json = {}
        self._office: Office | None = None
        self._fit = threading.Thread()
        self._began, self._fault = 0.0, ""
        self._round = 0
        self._before: list[Decisions] = []  # the last changes can be taken back
        self._asked: tuple[Json, Office] | None = None

    def office(self) -> Office:
        """The case under the choices of now, which somebody may write in an editor."""
        choices = self.project.choices()
        if self._office is None or self._office.choices != choices:
            self._office, self._asked = Office(self.project), None
        return self._office

    @property
    def _learning(self) -> bool:
        return self._fit.is_alive()

    def state(self, fault: str = "") -> Json:
        """What the page shows: files, findings, roles, the plan, or how far a fit is."""
        if self._turn.acquire(blocking=not self._shown):
            try:
                self._shown = overview(self.office(), self._learning)
            finally:
                self._turn.release()
        return self._shown | {
            "round": self._round,
            "undo": bool(self._before),
            "running": self._learning,
            "seconds": time.monotonic() - self._began,
            "fault": fault or self._fault or self._shown["fault"],
            "asked": self._asked[0] if self._asked else {"who": ("", ""), "words": ()},
        }

    def page(self, fault: str = "") -> bytes:
        """The page, with why the last request was refused."""
        known = {"style": STYLED, "accepted": ",".join(ENDINGS), "words": PAGE}
        return rendered("page.html", **known, **self.state(fault)).encode()

    @contextmanager
    def _alone(self) -> Iterator[Office]:
        """Files and choices change while nobody else reads them or learns."""
        if not self._turn.acquire(timeout=PATIENCE):
            raise ValueError("wait until the file before is read")
        try:
            if self._learning:
                raise ValueError("wait until learning is over")
            yield self.office()
        finally:
            self._turn.release()

    def _keep(self, choices: Choices, kind: str = "people") -> None:
        """Other choices; the model is of the old ones, unless only rooms or rules are new."""
        self.project.keep(choices)
        self._office, self._asked, self._fault = None, None, ""
        if kind in EXAMINED:
            self.project.model.unlink(missing_ok=True)

    def _decide(self, old: Office, new: Office) -> None:
        """Other decisions about people, which can be taken back."""
        self._before.append(old.choices.decided)
        self.project.keep(new.choices)
        new.choices = self.project.choices()
        self._office, self._asked = new, None

    def file(self, sent: Form, data: bytes) -> None:
        """A dropped file; what was learned from an older one is not kept.

        One that cannot be read does not take the place of one that can.
        """
        (kind,), (name,) = sent["kind"], sent["name"]
        with self._alone() as office:
            good = kind in office.choices.files and kind not in office.faults
            kept = self.project.put(kind, name, data, partial(readable, kind) if good else None)
            self._keep(replace(office.choices, files={**office.choices.files, kind: kept}), kind)

    def sheet(self, sent: Form) -> None:
        """Another sheet of a dropped workbook."""
        with self._alone() as office:
            (kind,), (sheet,), files = sent["kind"], sent["sheet"], office.choices.files
            if kind not in files:
                raise ValueError(f"no file of {kind!r}; there are {', '.join(files) or 'none'}")
            files = {**files, kind: files[kind]._replace(sheet=sheet)}
            self._keep(replace(office.choices, files=files), kind)

    def learn(self, sent: Form) -> None:
        """Keep what columns are for and the cohort to pair up, and fit in the background."""
        with self._alone() as office:
            old, (planned,) = office.choices, sent.pop("planned", [""])
            new = Settings.of({n: getattr(office.settings, n) for n in KEPT} | roles_of(sent))
            if old.settings is not None:
                gone = [name for name, _ in office.columns_gone]
                new = new.with_those(old.settings.keeping(gone.__contains__))
            self._keep(replace(old, settings=new, planned=planned or None))
            self._began, self._round = time.monotonic(), 0
            self._fit = threading.Thread(target=self._learn, args=(self.office(),), daemon=True)
            self._fit.start()

    def _learn(self, office: Office) -> None:
        try:
            office.fit(self._told).set_params(progress=None).save(self.project.model)
        except Exception as error:
            self._fault = str(error) or type(error).__name__

    def _told(self, _: object) -> None:
        """A round of the fit, for whoever asks how far it is."""
        self._round += 1

    @contextmanager
    def planned(self) -> Iterator[Office]:
        """The case with a plan, while nobody changes it."""
        with self._alone() as office:
            if not self.project.model.exists():
                raise ValueError("nothing is learned yet: choose the columns and learn first")
            yield office

    def cost(self, sent: Form) -> None:
        """Say what a change of two people would cost."""
        with self.planned() as office:
            ids = {name: who for who, name in office.shown["names"].items()}
            two, (kind,) = sent["who"], sent["kind"]
            after = office.changed(kind, [ids.get(name, name) for name in two])
            self._asked = {"who": two, "words": office.cost(after)["words"]}, after

    def done(self, _: Form) -> None:
        """Make the change of which the cost was said."""
        with self.planned() as office:
            if self._asked is None:
                raise ValueError("ask first what the change would cost")
            self._decide(office, self._asked[1])

    def change(self, sent: Form) -> None:
        """Lock a home, or unlock it."""
        with self.planned() as office:
            for kind, who in sent.items():
                self._decide(office, office.changed(kind, who))

    def undo(self, _: Form) -> None:
        """Take the last change of decisions about people back."""
        with self._alone() as office:
            if not self._before:
                raise ValueError("there is nothing to take back")
            self._decide(office, office.under(self._before.pop()))
            self._before.pop()

    def let_go(self, sent: Form) -> None:
        """Forget one decision, or what was chosen for a column that is not there any more."""
        with self._alone() as office:
            (text,), old = sent["words"], office.choices
            part = next((one for one in decisions(office) if str(one) == text), None)
            if part is None:
                raise ValueError(f"there is no such decision: {text}")
            if part.kind == "planned":
                self._keep(replace(old, planned=None), "")
            elif part.kind == "column" and old.settings is not None:
                kept = old.settings.keeping(lambda name: name not in part.who)
                lost = [name for name in SINGLE if getattr(kept, name) in part.who]
                lost += WAYS if set(kept.shares) & set(part.who) else []
                now = {name: getattr(office.settings, name) for name in lost}
                self._keep(replace(old, settings=replace(kept, **now)), "")
            else:
                left = tuple(one for one in old.decided if one[:3] != part[:3])
                self._decide(office, office.under(left))


def roles_of(sent: Mapping[str, Sequence[str]]) -> Json:
    """Roles by the fields of the form: ``id``, or ``use:COLUMN``; empty ones say nothing."""
    found: Json = {"no_answer": {}}
    for name, values in sent.items():
        role, mark, column = name.partition(":")
        if role == "no_answer":
            found[role][column] = values
        elif mark:
            found.setdefault(values[0] if role == "use" else role, []).append(column)
        else:
            told = [value for value in values if value]
            found[role] = told if role in WAYS else "".join(told[:1])
    return found


def overview(office: Office, learning: bool) -> Json:
    """Every dropped file, what the doctor says, what columns are for, decisions, and the plan."""
    files: dict[str, Json] = {}
    for kind, file in office.choices.files.items():
        listed = office.sheets.get(kind, [])
        files[kind] = {"name": file.name, "sheets": listed, "sheet": file.sheet}
        if kind in office.faults:
            files[kind]["fault"] = office.faults[kind]
        else:
            said = "; ".join(office.tables[kind].said) or file.name
            files[kind] |= {"rows": len(office.tables[kind]), "said": said}
    names = {kind: office.tables[kind].names if kind in office.tables else [] for kind in EXAMINED}
    fitted = office.project.model.exists()
    found: Json = {"files": files, "columns": names, "roles": None, "fitted": fitted}
    found |= {"decisions": decisions(office), "plan": None, "fault": ""}
    if not office.ready or any(kind in office.faults for kind in EXAMINED):
        return found
    if fitted and not learning:
        try:
            found["plan"] = office.shown
        except (ValueError, LookupError, OSError) as error:
            found["fault"] = refusal(error)
    return found | {
        "roles": vars(office.settings) | {"way": office.settings.way},
        "offered": office.offered,
        "agreeing": office.agreeing,
        "findings": [
            {"kind": "remark" if one.severity == "note" else "fault", "words": one.on_page}
            for one in sorted(office.examined.findings, key=lambda one: one.severity == "note")
        ],
        "cohorts": office.cohorts,
        "planned": office.planned,
    }


def refusal(error: Exception) -> str:
    """Why something is refused, in the page's words."""
    found = error.words("page") if isinstance(error, Crossed) else str(error)
    return found or type(error).__name__


def decisions(office: Office) -> list[Decided]:
    """What was decided, with the reason why it is out of use; what does not fit comes first."""
    found = [*office.decided]
    for name, roles in office.columns_gone:
        why = PAGE["unfit column"].format(roles=", ".join(PAGE[role] for role in roles))
        found.append(Decided("column", (name,), why=why))
    planned = office.choices.planned
    own = "people" in office.tables and "new" not in office.choices.files
    if own and planned is not None and planned not in office.cohorts:
        found.append(Decided("planned", (planned,), why=PAGE["unfit planned"]))
    return sorted(found, key=lambda part: part.why is None)


def readable(kind: str, path: Path) -> None:
    """ValueError where no sheet of a file is a table of its kind."""
    faults: list[ValueError] = []
    listed: list[str | None] = [*sheets(path)[:TRIED]]
    for sheet in listed or [None]:
        try:
            opened(kind, path, sheet, None)
            return
        except ValueError as error:
            faults.append(error)
    raise faults[0]


class Arriving(io.RawIOBase):
    """What a client sends: all of it must arrive in time, however slowly it drips."""

    def __init__(self, connection: socket.socket, seconds: float) -> None:
        self.connection, self.until = connection, time.monotonic() + seconds

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self.connection.settimeout(max(self.until - time.monotonic(), 1e-3))
        return self.connection.recv_into(buffer)


class Handler(BaseHTTPRequestHandler):
    """Answers one request; whatever is not asked for with the token on this host is refused."""

    server: Server
    protocol_version = "HTTP/1.1"

    def setup(self) -> None:
        super().setup()
        self.rfile = io.BufferedReader(Arriving(self.connection, self.server.seconds))

    def do_GET(self) -> None:
        self._answer(ASKED)

    def do_POST(self) -> None:
        self._answer(SENT)

    def _answer(self, known: Collection[str]) -> None:
        """One answer a connection: what is sent behind a request is never read as another one."""
        self.close_connection = True
        url = urlsplit(self.path)
        self._parts, self._query = url.path.split("/"), Form(parse_qs(url.query))
        status, why = self._refused(known) or self._received() or (200, "")
        self.server.arrived(self.request)
        body, kind = why.encode(), TEXT
        if status == 200:
            try:
                body, kind = self._found(self._parts[2])
            except REFUSED as error:
                body = refusal(error).encode()
        self.connection.settimeout(self.server.seconds)
        self.send_response(status)
        for name, value in HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with suppress(OSError):  # of who does not wait for the answer
            self.wfile.write(body)

    def _refused(self, known: Collection[str]) -> tuple[int, str] | None:
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

    def _found(self, name: str) -> tuple[bytes, str]:
        """What is answered, and its type."""
        session, fault = self.server.session, ""
        if name == "page.js":
            return SCRIPT, ASKED[name]
        if name in ("report.html", "pairs.xlsx"):
            with session.planned() as office:
                found = office.xlsx() if name == "pairs.xlsx" else office.report().html().encode()
                return found, ASKED[name]
        if self.command == "POST":
            try:
                if name == "file":
                    session.file(self._query, self._body)
                else:
                    sent = parse_qs(self._body.decode(), keep_blank_values=True)
                    getattr(session, name)(Form(sent))
            except REFUSED as error:
                fault = refusal(error)
        return session.page(fault), HTML

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
        self._waiting: dict[socket.socket, None] = {}  # for their requests, the oldest first

    def process_request(self, request: Any, client_address: Any) -> None:
        """A thread for a connection; where too many wait, the longest waiting one ends."""
        with self._turn:
            self._waiting[request] = None
            if len(self._waiting) > self.most:
                oldest = next(iter(self._waiting))
                del self._waiting[oldest]
                with suppress(OSError):
                    oldest.shutdown(socket.SHUT_RDWR)  # which wakes the thread that waits for it
        super().process_request(request, client_address)

    def arrived(self, request: socket.socket) -> None:
        """All of a request is here, and its answer may take as long as it takes."""
        with self._turn:
            self._waiting.pop(request, None)

    def shutdown_request(self, request: Any) -> None:
        """End a connection; what its client still sends is read for a moment.

        Else the system would answer it with a reset, which can overtake the answer.
        """
        self.arrived(request)
        end = time.monotonic() + min(self.seconds, LATER)
        with suppress(OSError):
            request.shutdown(socket.SHUT_WR)
            request.settimeout(min(self.seconds, LATER) / 4)
            while time.monotonic() < end and request.recv(1 << 16):
                pass
        self.close_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that has gone is no fault to report."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)

    @property
    def address(self) -> str:
        """Where the page is, token included."""
        return f"http://{HOST}:{self.server_port}/{self.token}/"


def serve(folder: str, port: int = 0, ready: Callable[[str], None] = print) -> None:
    """Serve a project's folder until Ctrl-C; ``ready`` is told the address."""
    with Server(Project.own(folder), port) as server:
        server.session.page()  # or what is missing for it is named at once
        ready(server.address)
        with suppress(KeyboardInterrupt):
            server.serve_forever()
