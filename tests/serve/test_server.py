"""The page's server: from files to a plan over HTTP; what is not from the page is refused."""

import json
import re
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from mlestruct import data
from mlestruct.roommates.project import Choices, Decided, Project
from mlestruct.roommates.server import Server
from mlestruct.roommates.words import PAGE

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

    def json(self, path: str, body: object = None) -> dict:
        raw = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        status, found = self.ask(path, raw)
        told = json.loads(found) if status == 200 else {}
        assert told, found
        assert "refused" not in told, found
        return told

    def refused(self, path: str, body: object = None) -> str:
        """Why the server does not do it."""
        raw = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        status, found = self.ask(path, raw)
        assert status == 200, found
        return json.loads(found)["refused"]

    def wait(self) -> dict:
        """Until the fit is over."""
        for _ in range(6000):
            state = self.json("state")
            if not state["running"]:
                return state
            time.sleep(0.1)
        raise AssertionError("the fit does not end")


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
        client.json(f"file?kind={kind}&name={kind}.csv", text)
    state = client.json("state")
    client.json("choose", {"roles": state["roles"], "planned": "2"})
    client.json("fit", {})
    assert client.wait()["fault"] == ""
    return client


def test_roles_are_proposed_from_names_and_values(client, files) -> None:
    client.json("file?kind=people&name=people.csv", files["people"])
    state = client.json("file?kind=pairs&name=pairs.csv", files["pairs"])
    roles = state["roles"]
    assert (roles["id"], roles["cohort"], roles["partners"]) == ("id", "year", ["id_a", "id_b"])
    assert roles["same"] == ["gender"]
    assert roles["ordinal"] + roles["binary"] == [f"q{k}" for k in range(1, 15)]
    assert state["cohorts"] == ["1", "2"]
    assert state["planned"] == "2"
    assert not state["files"]["people"]["said"].startswith("(")  # words, not a tuple's


def one_group(client: Client) -> list[list[str]]:
    """Who shares, of one group."""
    homes = client.json("plan")["homes"]
    return [home["who"] for home in homes if home["group"] == homes[0]["group"]]


def cost(kind: str, *who: str) -> str:
    return f"cost?kind={kind}" + "".join(f"&who={urllib.parse.quote(one)}" for one in who)


def test_the_plan_its_files_and_what_a_change_costs(planned) -> None:
    plan = planned.json("plan")
    assert len(plan["homes"]) == 20
    assert len(plan["lines"]) == 3
    assert NASTY in plan["names"].values()
    (a, _), (b, _) = one_group(planned)[:2]
    told = planned.json(cost("together", a, b))
    assert told["new"]
    assert "times as probable" in told["words"][0] or told["words"][0] == PAGE["cost same"]
    after = planned.json("change", {"kind": "together", "who": [a, b]})
    assert {a, b} in [set(h["who"]) for h in after["homes"]]
    assert not any(h["locked"] for h in after["homes"])
    planned.json("let_go", {"kind": "together", "who": [a, b]})
    assert planned.json("plan") == plan
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
    told = planned.json(cost("swap", a, b))
    assert set(map(frozenset, told["new"])) >= {frozenset((a, other)), frozenset((b, mine))}
    after = planned.json("change", {"kind": "swap", "who": [a, b]})
    made = [set(h["who"]) for h in after["homes"]]
    assert {a, other} in made
    assert {b, mine} in made
    assert not any(h["locked"] for h in after["homes"])
    assert "share already" in planned.refused(cost("swap", a, other))


def test_who_is_locked_is_not_moved_in_silence(planned) -> None:
    (a, _), (b, _) = one_group(planned)[:2]
    planned.json("change", {"kind": "lock", "who": [a]})
    for kind in ("together", "swap"):
        said = planned.refused(cost(kind, a, b))
        assert "are locked together: let that go first" in said


def test_forbidden_and_locked_exclude_each_other(planned) -> None:
    a, b = one_group(planned)[0]
    planned.json("change", {"kind": "lock", "who": [a]})
    rule = {"kind": "apart", "who": [b, a]}
    assert "are locked together: let that go first" in planned.refused("change", rule)
    planned.json("change", {"kind": "unlock", "who": [a]})
    after = planned.json("change", rule)
    (made,) = planned.json("state")["decisions"]
    assert (made["kind"], set(made["who"])) == ("forbid", {a, b})
    assert not any(home["locked"] for home in after["homes"])
    assert "kept apart" in planned.refused("change", {"kind": "together", "who": [a, b]})
    assert all(set(home["who"]) != {a, b} for home in after["homes"])


def test_a_rule_that_leaves_no_plan_is_not_kept(planned) -> None:
    groups: dict[str, str] = {}
    for home in planned.json("plan")["homes"]:
        groups.setdefault(home["group"], home["who"][0])
    assert planned.refused("change", {"kind": "together", "who": list(groups.values())[:2]})
    assert not any(home["locked"] for home in planned.json("plan")["homes"])


@pytest.mark.parametrize(
    ("asked", "body", "why"),
    [
        ("change", b"[1]", r"change: expected an object with kind, who, not \[1\]"),
        ("change", b"{", "Expecting property name"),
        ("change", b"\xff", "no JSON"),
        ("change", b"[" * 100_000, "nested too deeply"),
        ("change", {"kind": "swap"}, "expected an object with kind, who"),
        ("change", {"kind": "swap", "who": [1]}, r"who is \[1\]; expected a list of texts"),
        ("change", {"kind": "lock", "who": ["nobody"]}, "nobody who is planned has id 'nobody'"),
        ("change", {"kind": "hate", "who": ["0", "1"]}, "hate: name two people for together"),
        ("change", {"kind": "swap", "who": ["0"]}, "name two people"),
        ("change", {"kind": "swap", "who": ["0", "1"], "c": 2}, "expected an object with kind"),
        ("sheet", {"kind": "cats", "sheet": "1"}, "no file of 'cats'"),
        ("choose", {"roles": [], "planned": None}, r"roles is \[\]; expected an object"),
        ("choose", {"roles": {}, "planned": 7}, "planned is 7; expected a text or null"),
        ("choose", {"roles": {"id": "id", "tidy": 1}, "planned": None}, "unknown role 'tidy'"),
        ("choose", {"roles": {"id": 3}, "planned": None}, "id is a name, not 3"),
        ("fit", {"alpha": 1}, "expected an object with no entries"),
    ],
)
def test_what_is_sent_is_checked(planned, asked, body, why) -> None:
    before = planned.json("plan")
    assert re.search(why, planned.refused(asked, body))
    assert planned.json("plan") == before


def test_a_new_start_loses_nothing(planned) -> None:
    who = planned.json("plan")["homes"][0]["who"]
    kept = planned.json("change", {"kind": "apart", "who": who})
    for again in served(planned.server.session.project.folder):
        assert again.json("plan")["homes"] == kept["homes"]


def test_only_this_host_with_the_token_is_answered(planned) -> None:
    """Another name in the Host header (DNS rebinding), no token, a form of another page."""
    token = planned.server.token
    assert planned.ask("state", Host="evil.example")[0] == 403
    assert planned.ask("state", Host=f"{planned.server.server_port}")[0] == 403
    assert planned.ask("fit", b"", **{"X-Mlestruct": "x"})[0] == 403
    planned.server.token = "another"
    assert planned.ask("state")[0] == 200
    address = planned.server.address
    planned.server.token = token
    request = urllib.request.Request(address + "state")
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(request, timeout=10)
    assert planned.ask("nothing")[0] == 404
    assert planned.ask("../state")[0] in (403, 404)
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
    state = planned.json(f"file?kind={kind}&name=list.csv", files["people"])
    assert "list.csv: there is no column" in state["files"][kind]["fault"]


def test_names_never_leave_the_folder(client, files, tmp_path) -> None:
    client.json("file?kind=people&name=..%2F..%2Fpeople.csv", files["people"])
    assert not list(tmp_path.glob("*.csv"))
    assert (tmp_path / "project" / "people.csv").exists()


def test_a_fit_that_cannot_be_says_why(client, files) -> None:
    client.json("file?kind=people&name=people.csv", files["people"])
    state = client.json("file?kind=pairs&name=pairs.csv", files["pairs"])
    roles = state["roles"] | {"partners": ["id_a", "id_a"]}
    client.json("choose", {"roles": roles, "planned": "2"})
    client.json("fit", {})
    assert "choose the columns" in client.wait()["fault"]


def test_a_damaged_project_says_so(tmp_path) -> None:
    project = Project(tmp_path)
    decided = (Decided("require", ("1", "2")),)
    project.keep(replace(Choices(), decided=decided))
    assert project.choices().decided == decided
    (tmp_path / "roommates.toml").write_text("[")
    with pytest.raises(ValueError, match="not a project of room-mates"):
        project.choices()
