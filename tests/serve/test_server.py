"""The page's server: from files to a plan over HTTP; what is not from the page is refused."""

import html
import re
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mlestruct import data
from mlestruct.roommates.project import Choices, Decided, Project
from mlestruct.roommates.server import Server

NASTY = "<img src=x onerror=alert(1)>"


class Client:
    """What the page does, without the page."""

    def __init__(self, server: Server) -> None:
        self.server = server

    def ask(self, path: str, body: bytes | None = None, **headers: str) -> tuple[int, bytes]:
        own = {"X-Mlestruct": self.server.token} | headers
        request = urllib.request.Request(self.server.address + path, data=body, headers=own)
        try:
            with urllib.request.urlopen(request, timeout=60) as reply:
                return reply.status, reply.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def refused(self, path: str, sent: Any = b"", **fields: object) -> str:
        """Why the server does not do it, as the page says it; nothing where it does."""
        body = sent if isinstance(sent, bytes) else urllib.parse.urlencode(sent, True).encode()
        status, found = self.ask(path, body or urllib.parse.urlencode(fields, True).encode())
        assert status == 200, found
        (said,) = re.findall('id="fault" data-part role="alert">([^<]*)<', found.decode())
        return html.unescape(said)

    def send(self, path: str, sent: Any = b"", **fields: object) -> dict:
        """What the page shows then."""
        said = self.refused(path, sent, **fields)
        assert not said, said
        return self.state()

    def state(self) -> dict:
        return self.server.session.state()

    def plan(self) -> dict:
        return self.state()["plan"]

    def learn(self, roles: dict | None = None, **more: str) -> dict:
        """As proposed, or by these roles, until the fit is over."""
        said = self.refused("learn", form(self.state(), roles) | more)
        state = self.wait()
        assert said in ("", state["fault"])
        return state

    def drop(self, kind: str, text: bytes, name: str = "") -> dict:
        said = self.refused(f"file?kind={kind}&name={name or kind}.csv", text)
        state = self.state()
        assert said in ("", state["fault"])
        return state

    def wait(self) -> dict:
        """Until the fit is over."""
        for _ in range(6000):
            state = self.state()
            if not state["running"]:
                return state
            time.sleep(0.1)
        raise AssertionError("the fit does not end")


def form(state: dict, roles: dict | None = None) -> dict[str, object]:
    """The fields of the page's form of columns, as they are filled."""
    roles = state["roles"] if roles is None else roles
    fields = {n: roles[n] or "" for n in ("id", "cohort", "names", "missing", "unknown", "larger")}
    fields[roles["way"]] = [*roles[roles["way"]]]
    for role in ("ignore", "same", "ordinal", "categorical", "binary"):
        fields |= {f"use:{name}": role for name in roles[role]}
    for role in ("mix", "protected"):
        fields |= {f"{role}:{name}": "on" for name in roles[role]}
    fields |= {f"no_answer:{name}": [*codes] for name, codes in roles["no_answer"].items()}
    return fields | {"planned": state["planned"] or ""}


def served(folder) -> Iterator[Client]:
    with Server(Project.own(folder)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield Client(server)
        server.shutdown()


@pytest.fixture
def client(tmp_path) -> Iterator[Client]:
    yield from served(tmp_path / "project")


@pytest.fixture(scope="module")
def files() -> dict[str, bytes]:
    """Two years of 40 people, one of whom has markup for an id."""
    people, pairs, _ = data.roommates(n=40, years=2, seed=2)
    first = people["id"][people["year"] == 2][0]

    def written(columns) -> bytes:
        rows = zip(*(column.tolist() for column in columns.values()), strict=True)
        lines = [",".join(columns), *(",".join(map(str, row)) for row in rows)]
        return "\n".join(lines).encode()

    for columns, names in ((people, ["id"]), (pairs, ["id_a", "id_b"])):
        for name in names:
            columns[name] = np.where(columns[name] == first, NASTY, columns[name].astype(object))
    return {"people": written(people), "pairs": written(pairs)}


@pytest.fixture
def planned(client, files) -> Client:
    for kind, text in files.items():
        client.drop(kind, text)
    assert client.learn(planned="2")["fault"] == ""
    return client


def test_roles_are_proposed_from_names_and_values(client, files) -> None:
    client.drop("people", files["people"])
    state = client.drop("pairs", files["pairs"])
    roles = state["roles"]
    assert (roles["id"], roles["cohort"], roles["partners"]) == ("id", "year", ("id_a", "id_b"))
    assert roles["same"] == ("gender",)
    assert [*roles["ordinal"], *roles["binary"]] == [f"q{k}" for k in range(1, 15)]
    assert state["cohorts"] == ["1", "2"]
    assert state["planned"] == "2"
    assert not state["files"]["people"]["said"].startswith("(")  # words, not a tuple's


def one_group(client: Client) -> list[list[str]]:
    """Who shares, of one group."""
    homes = client.plan()["homes"]
    return [home["who"] for home in homes if home["group"] == homes[0]["group"]]


def homes(state: dict) -> list[set[str]]:
    return [set(home["who"]) for home in state["plan"]["homes"]]


def locked(state: dict) -> bool:
    return any(home["locked"] for home in state["plan"]["homes"])


def test_the_plan_its_files_and_what_a_change_costs(planned) -> None:
    plan = planned.plan()
    assert len(plan["homes"]) == 20
    assert len(plan["lines"]) == 3
    assert NASTY in plan["names"].values()
    (a, _), (b, _) = one_group(planned)[:2]
    said = planned.send("cost", kind="together", who=[a, b])["asked"]["words"]
    assert "times as probable" in said[0]
    assert planned.plan() == plan
    after = planned.send("done", kind="")
    assert {a, b} in homes(after)
    assert not locked(after)
    (made,) = after["decisions"]
    planned.send("let_go", words=str(made))
    assert planned.plan() == plan
    status, body = planned.ask("report.html")
    assert status == 200
    assert body.startswith(b"<!DOCTYPE")
    assert NASTY.encode() not in body


def test_the_workbook_opens(planned) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    import io

    status, body = planned.ask("pairs.xlsx")
    assert status == 200
    sheet = openpyxl.load_workbook(io.BytesIO(body)).active
    assert sheet.max_row == 21


def test_two_people_swap_their_partners(planned) -> None:
    """Both new pairs are those that were asked for, and the cost is of just that plan."""
    (a, mine), (b, other) = one_group(planned)[:2]
    said = planned.send("cost", kind="swap", who=[a, b])["asked"]["words"][1]
    assert all(who in said for who in (a, mine, b, other))
    after = planned.send("done", kind="")
    assert {a, other} in homes(after)
    assert {b, mine} in homes(after)
    assert not locked(after)
    assert "share already" in planned.refused("cost", kind="swap", who=[a, other])
    assert "ask first" in planned.refused("done", kind="")


def test_who_is_locked_is_not_moved_in_silence(planned) -> None:
    (a, _), (b, _) = one_group(planned)[:2]
    planned.send("change", lock=a)
    for kind in ("together", "swap"):
        said = planned.refused("cost", kind=kind, who=[a, b])
        assert "are locked together: let that go first" in said


def test_forbidden_and_locked_exclude_each_other(planned) -> None:
    a, b = one_group(planned)[0]
    planned.send("change", lock=a)
    rule = {"kind": "apart", "who": [b, a]}
    assert "are locked together: let that go first" in planned.refused("cost", rule)
    planned.send("change", unlock=a)
    planned.send("cost", rule)
    after = planned.send("done", kind="")
    (made,) = after["decisions"]
    assert (made.kind, set(made.who)) == ("forbid", {a, b})
    assert not locked(after)
    assert "kept apart" in planned.refused("cost", kind="together", who=[a, b])
    assert {a, b} not in homes(after)


def test_a_rule_that_leaves_no_plan_is_not_kept(planned) -> None:
    groups: dict[str, str] = {}
    for home in planned.plan()["homes"]:
        groups.setdefault(home["group"], home["who"][0])
    two = list(groups.values())[:2]
    assert "never share" in planned.refused("cost", kind="together", who=two)
    assert not planned.state()["asked"]["words"]


@pytest.mark.parametrize(
    ("path", "sent", "why"),
    [
        ("cost", b"[" * 100_000, "the request lacks who"),
        ("cost", b"\xff", "can't decode"),
        ("cost", {"kind": "swap"}, "the request lacks who"),
        ("cost", {"kind": "hate", "who": ["0", "1"]}, "hate: name two people for together"),
        ("cost", {"kind": "swap", "who": ["0"]}, "name two people"),
        ("cost", {"kind": "swap", "who": ["0", "1"]}, "nobody who is planned has id '0'"),
        ("change", {"lock": "nobody"}, "nobody who is planned has id 'nobody'"),
        ("sheet", {"kind": "cats", "sheet": "1"}, "no file of 'cats'"),
        ("learn", {"id": "id", "tidy": "1"}, "a project has 'tidy'"),
        ("learn", {"id": ""}, "choose the column that holds the ids"),
        ("learn", {"id": "id", "missing": "?"}, "missing is one of neutral, refuse"),
        ("let_go", {"words": "that"}, "no such decision: that"),
    ],
)
def test_what_is_sent_is_checked(planned, path, sent, why) -> None:
    before = planned.plan()
    assert re.search(why, planned.refused(path, sent))
    assert planned.plan() == before


def test_a_new_start_loses_nothing(planned) -> None:
    planned.send("cost", kind="apart", who=planned.plan()["homes"][0]["who"])
    kept = planned.send("done", kind="")["plan"]
    for again in served(planned.server.session.project.folder):
        assert again.plan()["homes"] == kept["homes"]


def test_what_is_written_in_an_editor_holds_on_the_page(planned) -> None:
    """Decisions in the project's file of people, while the page is open, are not written over."""
    a, b = one_group(planned)[0]
    project = planned.server.session.project
    project.keep(replace(project.choices(), decided=(Decided("forbid", (a, b)),)))
    assert {a, b} not in homes(planned.state())
    other = planned.plan()["homes"][0]["who"]
    after = planned.send("change", lock=other[0])
    assert {part.kind for part in after["decisions"]} == {"forbid", "require"}


def test_only_this_host_with_the_token_is_answered(planned) -> None:
    """Another name in the Host header (DNS rebinding), no token, a form of another page."""
    token = planned.server.token
    assert planned.ask("", Host="evil.example")[0] == 403
    assert planned.ask("", Host=f"{planned.server.server_port}")[0] == 403
    assert planned.ask("undo", b"", **{"X-Mlestruct": "x"})[0] == 403
    planned.server.token = "another"
    assert planned.ask("")[0] == 200
    address = planned.server.address
    planned.server.token = token
    request = urllib.request.Request(address)
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(request, timeout=10)
    assert planned.ask("nothing")[0] == 404
    assert planned.ask("../x")[0] in (403, 404)
    assert planned.server.server_address[0] == "127.0.0.1"


@pytest.mark.parametrize(
    ("kind", "name", "text", "said"),
    [
        ("people", "x.exe", b"", "expected a file that ends in"),
        ("secrets", "x.csv", b"", "a file is one of"),
    ],
)
def test_what_is_no_table_is_refused(client, kind, name, text, said) -> None:
    assert said in client.refused(f"file?kind={kind}&name={name}", text)


@pytest.mark.parametrize("kind", ["rooms", "rules"])
def test_a_table_of_another_kind_is_refused_where_it_was_dropped(planned, files, kind) -> None:
    state = planned.drop(kind, files["people"], "list")
    assert "list.csv: there is no column" in state["files"][kind]["fault"]


def test_names_never_leave_the_folder(client, files, tmp_path) -> None:
    client.send("file?kind=people&name=..%2F..%2Fpeople.csv", files["people"])
    assert not list(tmp_path.glob("*.csv"))
    assert (tmp_path / "project" / "people.csv").exists()


def test_a_fit_that_cannot_be_says_why(client, files) -> None:
    client.drop("people", files["people"])
    roles = client.drop("pairs", files["pairs"])["roles"] | {"partners": ["id_a", "id_a"]}
    assert "choose the columns" in client.learn(roles)["fault"]


def test_a_damaged_project_says_so(tmp_path) -> None:
    project = Project(tmp_path)
    decided = (Decided("require", ("1", "2")),)
    project.keep(replace(Choices(), decided=decided))
    assert project.choices().decided == decided
    (tmp_path / "roommates.toml").write_text("[")
    with pytest.raises(ValueError, match="not a project of room-mates"):
        project.choices()
