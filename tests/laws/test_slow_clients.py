"""Clients that wait, drip, lie about lengths or leave: the page answers others, and holds few."""

from __future__ import annotations

import socket
import threading
import time
import urllib.request
from contextlib import ExitStack

import numpy as np
import pytest

import mlestruct.roommates.server as serving
from mlestruct.roommates.project import LARGEST, Project
from mlestruct.roommates.server import Server

SECONDS, MOST = 0.4, 8


@pytest.fixture
def server(tmp_path):
    with Server(Project.own(tmp_path / "project"), seconds=SECONDS, most=MOST) as found:
        threading.Thread(target=found.serve_forever, args=(0.02,), daemon=True).start()
        yield found
        found.shutdown()


def connected(server):
    return socket.create_connection(server.server_address, timeout=5)


def head(server, path, *lines, method="POST"):
    own = [f"{method} /{server.token}/{path} HTTP/1.1", f"Host: 127.0.0.1:{server.server_port}"]
    return "\r\n".join([*own, f"X-Mlestruct: {server.token}", *lines, "", ""]).encode()


def answer(client):
    """All that comes until the server ends the connection, and how many answers it is."""
    found = b""
    while more := client.recv(1 << 16):
        found += more
    return found, found.count(b"HTTP/1.1 ")


def sent(server, data, last=False):
    with connected(server) as client:
        client.sendall(data)
        if last:
            client.shutdown(socket.SHUT_WR)
        return answer(client)


def responds(server, within=1.0):
    before = time.monotonic()
    with urllib.request.urlopen(server.address, timeout=5) as reply:
        assert reply.read().startswith(b"<!DOCTYPE")
    assert time.monotonic() - before < within


def until(true):
    end = time.monotonic() + 5
    while not true() and time.monotonic() < end:
        time.sleep(0.01)
    assert true()


@pytest.mark.parametrize("start", [b"", b"GET /", b"POST / HTTP/1.1\r\nHost: x\r\nA: "])
def test_half_open_requests_hold_few_threads_and_end(server, start):
    before = threading.active_count()
    with ExitStack() as stack:
        for _ in range(100):
            client = stack.enter_context(connected(server))
            client.sendall(start)
        until(lambda: threading.active_count() <= before + MOST + 1)
        responds(server)
        until(lambda: threading.active_count() <= before)  # although nobody has hung up
        responds(server)


@pytest.mark.nightly
def test_a_page_as_it_is_started_survives_300_half_open_requests(tmp_path):
    before = threading.active_count()
    with Server(Project.own(tmp_path / "project")) as server, ExitStack() as stack:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        for _ in range(300):
            stack.enter_context(connected(server)).sendall(b"GET /")
        until(lambda: threading.active_count() <= before + serving.MOST + 2)
        responds(server)
        server.shutdown()


@pytest.mark.parametrize("body", [False, True])
def test_a_request_that_drips_ends_in_time(server, body):
    """Each byte comes in time, and all of them never."""
    start = head(server, "undo", "Content-Length: 100") if body else b"GET / HTTP/1.1\r\nA: "
    before = time.monotonic()
    with connected(server) as client:
        client.sendall(start)
        client.settimeout(0.05)
        while time.monotonic() - before < 3:
            try:
                client.sendall(b" ")
                if client.recv(1 << 16) == b"":
                    break
            except TimeoutError:
                continue
            except OSError:
                break
        assert time.monotonic() - before < 3 * SECONDS + 0.5


LENGTHS = [
    ("", b"411"),
    ("Transfer-Encoding: chunked", b"411"),
    ("Content-Length: 2\r\nTransfer-Encoding: chunked", b"411"),
    ("Transfer-Encoding: identity\r\nContent-Length: 2", b"411"),
    ("Content-Length: ", b"400"),
    ("Content-Length: two", b"400"),
    ("Content-Length: -2", b"400"),
    ("Content-Length: +2", b"400"),
    ("Content-Length: 2.0", b"400"),
    ("Content-Length: 0x2", b"400"),
    ("Content-Length: 1_0", b"400"),
    ("Content-Length: ²", b"400"),
    ("Content-Length: 2, 2", b"400"),
    ("Content-Length: 2\r\nContent-Length: 3", b"400"),
    ("Content-Length: 2\r\nContent-Length: 2", b"400"),
    (f"Content-Length: {'9' * 30}", b"400"),
    (f"Content-Length: {LARGEST + 1}", b"413"),
    ("Content-Length: 99999999999999999999", b"413"),
]


@pytest.mark.parametrize(("line", "status"), LENGTHS)
@pytest.mark.parametrize("path", ["undo", "file?kind=people&name=p.csv"])
def test_a_body_of_no_known_length_is_refused_and_the_connection_ends(server, path, line, status):
    """What follows is never a second request, although it is one word for word."""
    more = head(server, "", method="GET")
    found, count = sent(server, head(server, path, *filter(None, [line])) + more)
    assert found.split(b" ")[1] == status
    assert count == 1
    assert b"connection: close" in found.lower()
    assert found.partition(b"\r\n\r\n")[2]
    assert server.session.project.choices().files == {}


def test_lengths_drawn_at_random_are_numbers_or_refused(server):
    draws = np.random.default_rng(5)
    for _ in range(100):
        text = "".join(draws.choice(list("0123456789+-._ eExX,;\t"), draws.integers(1, 6)))
        found, count = sent(server, head(server, "undo", f"Content-Length: {text}"), last=True)
        told = text.strip(" \t")
        nothing = told.isascii() and told.isdigit() and int(told) == 0
        assert (found.split(b" ")[1], count) == (b"200" if nothing else b"400", 1), text


@pytest.mark.parametrize(
    "lines", [["Content-Length: 90"], ["Transfer-Encoding: chunked"], ["Content-Length: x"]]
)
def test_a_page_is_asked_for_without_a_body(server, lines):
    more = head(server, "", method="GET")
    found, count = sent(server, head(server, "", *lines, method="GET") + more)
    assert found.split(b" ")[1] in (b"400", b"411")
    assert count == 1


def test_requests_behind_one_another_are_not_read(server):
    once = head(server, "", method="GET")
    found, count = sent(server, once * 3)
    assert found.startswith(b"HTTP/1.1 200")
    assert count == 1


def test_an_upload_that_breaks_off_is_not_kept(server):
    with connected(server) as client:
        client.sendall(head(server, "file?kind=people&name=p.csv", "Content-Length: 100"))
        client.sendall(b"id,q1\n1,2\n")
        client.shutdown(socket.SHUT_WR)
        found, _ = answer(client)
    assert found.split(b" ")[1] == b"400"
    assert not list(server.session.project.folder.glob("*people*"))


def test_the_refusal_of_a_large_body_arrives(server):
    """Also where its client sends on: a reset would overtake the answer."""
    with connected(server) as client:
        client.sendall(head(server, "undo", f"Content-Length: {serving.REQUEST + 1}"))
        client.sendall(b" " * (serving.REQUEST + 1))
        found, _ = answer(client)
    assert found.split(b" ")[1] == b"413"


def test_who_does_not_take_an_answer_holds_nobody_up(server, monkeypatch):
    monkeypatch.setattr(server.session, "page", lambda *_: b"x" * (64 << 20))
    before = threading.active_count()
    with connected(server) as client:
        client.sendall(head(server, "", method="GET"))
        until(lambda: threading.active_count() > before)
        until(lambda: threading.active_count() <= before)


@pytest.mark.parametrize("asked", ["", "report.html", "cost", "learn"])
def test_others_are_answered_while_a_file_is_read(server, monkeypatch, asked):
    """Reading waits until the other answer is there, so the two happen at once by construction."""
    begun, answered = threading.Event(), threading.Event()
    with urllib.request.urlopen(server.address, timeout=5) as reply:
        reply.read()  # a page that is open has asked for this
    original = Project.put

    def slow(*given):
        begun.set()
        assert answered.wait(5)
        return original(*given)

    monkeypatch.setattr(Project, "put", slow)
    text = b"id,q1,q2\n1,2,3\n2,3,4\n"
    upload = head(server, "file?kind=people&name=p.csv", f"Content-Length: {len(text)}") + text
    found = []
    thread = threading.Thread(target=lambda: found.append(sent(server, upload)))
    thread.start()
    assert begun.wait(5)
    before = time.monotonic()
    post = asked in ("cost", "learn")
    body = "id=id&kind=swap&who=1&who=2"
    lines = [f"Content-Length: {len(body)}"] if post else []
    more = head(server, asked, *lines, method="POST" if post else "GET")
    reply, count = sent(server, more + body.encode() * post)
    assert time.monotonic() - before < 1.0
    answered.set()
    thread.join()
    assert (reply[:12], count) == (b"HTTP/1.1 200", 1)
    assert not post or b"wait until" in reply
    assert b"UTF-8, commas" in found[0][0]


BAD = {
    "people": [b"", b"PK\x03\x04rubbish", b"id,q1\n1,2\n2,3,4,5\n", b'id,q1\n1,"2\n', b"\0" * 50],
    "rooms": [b"", b"id,q1\n1,2\n", b"PK\x03\x04"],
    "rules": [b"", b"id,q1\n1,2\n"],
}


@pytest.mark.parametrize(("kind", "bad"), [(k, b) for k, listed in BAD.items() for b in listed])
def test_a_file_that_cannot_be_read_does_not_replace_one_that_can(server, kind, bad):
    good = {"people": b"id,q1\n1,2\n2,3\n", "rooms": b"room,size\nA,2\n"}.get(kind)
    good = good or b"id_a,id_b,rule\n1,2,forbid\n"

    def put(text, name):
        lines = [f"Content-Length: {len(text)}"]
        found, _ = sent(server, head(server, f"file?kind={kind}&name={name}", *lines) + text)
        return found.decode()

    put(good, "good.csv")
    before = server.session.state()["files"]
    assert "fault" not in before[kind], before
    choices = server.session.project.choices()
    for name in ("bad.csv", "bad.xlsx"):
        said = put(bad, name)
        assert name in said
        assert "the file that was there stays" in said
    assert server.session.project.choices() == choices
    assert [p.read_bytes() for p in server.session.project.folder.glob(f"*{kind}*")] == [good]
    assert server.session.state()["files"] == before
