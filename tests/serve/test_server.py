"""The page's server: from files to a plan over HTTP; what is not from the page is refused."""

import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from mlestruct import data
from mlestruct.serve.project import Choices, Project
from mlestruct.serve.server import Server

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
        assert status == 200, found
        return json.loads(found)

    def wait(self) -> dict:
        """Until the fit is over."""
        for _ in range(600):
            state = self.json("state")
            if not state["running"]:
                return state
            time.sleep(0.1)
        raise AssertionError("the fit does not end")


def served(folder) -> Iterator[Client]:
    with Server(Project(folder)) as server:
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
    client.json("fit", b"")
    assert client.wait()["fault"] == ""
    return client


def test_roles_are_proposed_from_names_and_values(client, files) -> None:
    client.json("file?kind=people&name=people.csv", files["people"])
    state = client.json("file?kind=pairs&name=pairs.csv", files["pairs"])
    roles = state["roles"]
    assert (roles["id"], roles["cohort"], roles["partners"]) == ("id", "year", ["id_a", "id_b"])
    assert roles["same"] == ["gender"]
    assert roles["ordinal"] == [f"q{k}" for k in range(1, 15)]
    assert state["cohorts"] == ["1", "2"]
    assert state["planned"] == "2"
    assert not state["files"]["people"]["said"].startswith("(")  # words, not a tuple's


def test_the_plan_its_files_and_what_a_change_costs(planned) -> None:
    plan = planned.json("plan")
    assert len(plan["pairs"]) == 20
    assert len(plan["lines"]) == 3
    assert NASTY in plan["names"].values()
    first, second = plan["pairs"][:2]
    a, b = first["a"]["row"], second["a"]["row"]
    cost = planned.json(f"cost?a={a}&b={b}")
    assert cost["loss"] >= -1e-9
    assert cost["new"]
    after = planned.json("rule", {"kind": "require", "a": a, "b": b, "keep": True})
    together = [{p["a"]["row"], p["b"]["row"]} for p in after["pairs"] if p["locked"]]
    assert together == [{a, b}]
    back = planned.json("rule", {"kind": "require", "a": a, "b": b, "keep": False})
    assert back == plan
    for name, start in (("pairs.csv", b"a,b,"), ("report.html", b"<!DOCTYPE")):
        status, body = planned.ask(name)
        assert status == 200
        assert body.startswith(start)
        assert NASTY.encode() not in body or name == "pairs.csv"


def test_the_workbook_opens(planned) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    import io

    status, body = planned.ask("pairs.xlsx")
    assert status == 200
    sheet = openpyxl.load_workbook(io.BytesIO(body)).active
    assert sheet.max_row == 21


def test_forbidden_and_locked_exclude_each_other(planned) -> None:
    first = planned.json("plan")["pairs"][0]
    a, b = first["a"]["row"], first["b"]["row"]
    planned.json("rule", {"kind": "require", "a": a, "b": b, "keep": True})
    after = planned.json("rule", {"kind": "forbid", "a": b, "b": a, "keep": True})
    assert after["forbid"] == [[b, a]]
    assert after["require"] == []
    assert all({p["a"]["row"], p["b"]["row"]} != {a, b} for p in after["pairs"])


def test_a_rule_that_leaves_no_plan_is_not_kept(planned) -> None:
    groups: dict[str, int] = {}
    for pair in planned.json("plan")["pairs"]:
        groups.setdefault(pair["group"], pair["a"]["row"])
    a, b = list(groups.values())[:2]
    status, said = planned.ask(
        "rule", json.dumps({"kind": "require", "a": a, "b": b, "keep": True}).encode()
    )
    assert status == 400
    assert "fault" in json.loads(said)
    assert planned.json("plan")["require"] == []


def test_a_new_start_loses_nothing(planned) -> None:
    first = planned.json("plan")["pairs"][0]
    rule = {"kind": "forbid", "a": first["a"]["row"], "b": first["b"]["row"], "keep": True}
    kept = planned.json("rule", rule)
    for again in served(planned.server.session.project.folder):
        assert again.json("plan") == kept


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
    status, body = client.ask(f"file?kind={kind}&name={name}", text)
    assert status == 400
    assert said in json.loads(body)["fault"]


def test_names_never_leave_the_folder(client, files, tmp_path) -> None:
    client.json("file?kind=people&name=..%2F..%2Fpeople.csv", files["people"])
    assert not list(tmp_path.glob("*.csv"))
    assert (tmp_path / "project" / "people.csv").exists()


def test_a_fit_that_cannot_be_says_why(client, files) -> None:
    client.json("file?kind=people&name=people.csv", files["people"])
    state = client.json("file?kind=pairs&name=pairs.csv", files["pairs"])
    roles = state["roles"] | {"partners": ["id_a", "id_a"]}
    client.json("choose", {"roles": roles, "planned": "2"})
    client.json("fit", b"")
    assert "choose the two columns" in client.wait()["fault"]


def test_a_damaged_project_says_so(tmp_path) -> None:
    project = Project(tmp_path)
    project.keep(replace(Choices(), require=((1, 2),)))
    assert project.choices().require == ((1, 2),)
    (tmp_path / "project.json").write_text("[]")
    with pytest.raises(ValueError, match="not a project of this page"):
        project.choices()
