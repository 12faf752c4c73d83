"""What an office decided holds until somebody says otherwise: groups, locks, who is kept apart.

The tables are drawn: people of two years, of whom the pairs of the first agree in one column. By
the page's requests and by the command line, whatever is done in whatever order, (1) no plan crosses
that column unless somebody said so, (2) no lock is broken, (3) no decision vanishes: it holds, or
is listed as one that does not fit, and (4) what a change costs is said before it is done.
"""

import json
import re
import shlex
import threading
import tomllib
from contextlib import contextmanager

import numpy as np
import pytest

from mlestruct.cli import main
from mlestruct.roommates.project import Project
from mlestruct.roommates.server import Server
from tests.serve.test_server import Client

HEADERS = ("gender", "I am …", "Geschl.", "Sex (f, m)", "wing", "Muttersprache", "q_flat", "x")
VALUES = {
    "two": (("f",), ("m",)),
    "three": (("north",), ("south",), ("east",)),
    "numbers": (("1",), ("2",)),
    "case": (("Haus A", "haus a"), ("Haus B", "HAUS B")),
    "spelled": (("f", "F", "female", "w", "weiblich", "W"), ("m", "M", "male", "Mann")),
}


class Office:
    """Drawn tables that can be corrected: people in rows, and the pairs of the first year."""

    def __init__(self, rng, kind="two", header="gender", noise=0, size=16):
        self.rng, self.header = rng, header
        self.blocks = VALUES[kind]
        self.block_of = {text: k for k, texts in enumerate(self.blocks) for text in texts}
        per = 2 * -(-size // len(self.blocks))
        self.rows, self.made = [], 0
        for year in (1, 2):
            for block in range(len(self.blocks)):
                for _ in range(per):
                    self.add(year, block)
        first = [row for row in self.rows if row["year"] == "1"]
        self.pairs = []
        for block in range(len(self.blocks)):
            own = [row["id"] for row in first if self.of(row) == block]
            self.pairs += np.array(own)[rng.permutation(len(own))].reshape(-1, 2).tolist()
        for k in range(noise):
            one, other = self.pairs[k], self.pairs[-1 - k]
            one[1], other[1] = other[1], one[1]

    def of(self, row):
        return self.block_of[row[self.header]]

    def add(self, year, block):
        self.made += 1
        self.rows.append({
            "id": f"p{self.made:03d}",
            "year": str(year),
            self.header: str(self.rng.choice(self.blocks[block])),
            **{f"q{k}": str(self.rng.integers(1, 6)) for k in (1, 2, 3)},
            "smokes": str(self.rng.integers(2)),
        })  # fmt: skip

    @property
    def new(self):
        return {row["id"]: row for row in self.rows if row["year"] == "2"}

    def people(self):
        names = list(self.rows[0])
        table = [names, *([row[name] for name in names] for row in self.rows)]
        return "\n".join("\t".join(line) for line in table)

    def files(self, folder):
        folder.mkdir(exist_ok=True)
        (folder / "people.tsv").write_text(self.people())
        (folder / "pairs.tsv").write_text(self.shared())
        return [str(folder / "people.tsv"), str(folder / "pairs.tsv")]

    def shared(self):
        return "\n".join("\t".join(two) for two in [("id_a", "id_b"), *self.pairs])


def crossing(office, pairs):
    """Pairs of ids of different blocks."""
    by_id = {row["id"]: row for row in office.rows}
    return [two for two in pairs if len({office.of(by_id[who]) for who in two}) > 1]


# --- the command line ----------------------------------------------------------------------------


def planned(out):
    """The pairs of a run with --json."""
    return [(pair["a"], pair["b"]) for pair in json.loads(out)["pairs"]]


def by_command_line(seed, folder, capsys, monkeypatch):
    rng = np.random.default_rng(seed)
    kind = list(VALUES)[seed % len(VALUES)]
    header = HEADERS[int(rng.integers(len(HEADERS)))]
    noise = int(rng.integers(2)) if kind in ("two", "numbers") else 0
    office = Office(rng, kind, header, noise, size=40 if noise else 16)
    files, model = office.files(folder), str(folder / "m.npz")
    monkeypatch.chdir(folder)
    marked = f'"{header}"'

    def run(*words):
        code = main(list(words))
        said = capsys.readouterr()
        return code, said.out, said.err

    asked = ["--cohort", "year", "--ordinal", "q1,q2,q3", "--binary", "smokes"]
    asked += ["--alpha", "10", "--only", "1", "--model", model, "--force"]
    assert run("roommates", "fit", *files, *asked)[0] == 0
    plan = ["--only", "2", "--model", model, "--json", "--out", str(folder / "out"), "--force"]
    code, out, said = run("roommates", "assign", files[0], *plan)
    if code == 0:
        assert not crossing(office, planned(out))
    else:
        assert code == 2
        for part in (header, f" of {len(office.pairs)} pairs agree", "--same", "--mix"):
            assert part in said
        assert not (folder / "out").exists()
        code, out, _ = run("roommates", "assign", files[0], *plan, "--mix", marked)
        assert code == 0
        assert crossing(office, planned(out))
    if said:
        assert run("roommates", "explain", files[0], next(iter(office.new)), *plan[:5])[0] == 2
    found = run("check", *files, "--json", "--separator", "tab")
    learn = shlex.split(json.loads(found[1])["fit"])[1:]
    spelled = kind in ("case", "spelled")
    proposed = tomllib.loads((folder / "roommates.toml").read_text())
    assert (header in proposed["groups"].get("same", [])) != spelled
    code = run(*learn, "--only", "1", "--model", model, "--force")[0]
    if code == 0:
        code, out, said = run("roommates", "assign", files[0], *plan)
        assert code == 2 if spelled and said else not crossing(office, planned(out))
    else:
        assert found[0] == 1


@pytest.mark.parametrize("seed", range(5))
def test_no_plan_of_the_command_line_crosses_what_all_pairs_agree_in(
    seed, tmp_path, capsys, monkeypatch
):
    by_command_line(seed, tmp_path / "t", capsys, monkeypatch)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(5, 205))
def test_no_plan_of_the_command_line_ever_crosses(seed, tmp_path, capsys, monkeypatch):
    by_command_line(seed, tmp_path / "t", capsys, monkeypatch)


# --- the page ------------------------------------------------------------------------------------


class Desk:
    """The page's requests, and what must be true of the answers after each."""

    def __init__(self, client, office, rooms=False):
        self.client, self.office = client, office
        self.locks, self.apart = {}, []  # (who shares: the room or None)
        client.drop("people", office.people().encode())
        client.drop("pairs", office.shared().encode())
        if rooms:
            lines = [f"room\tsize\t{office.header}"]
            for letter, (text,) in zip("AB", office.blocks, strict=True):
                sizes = enumerate([4, 4, 1, *[2] * 12])
                lines += [f"{letter}{k}\t{size}\t{text}" for k, size in sizes]
            client.drop("rooms", "\n".join(lines).encode())
        self.learn(planned="2")

    def learn(self, **more):
        assert self.client.learn(**more)["fault"] == ""

    def plan(self):
        """The answer, and everybody's home (who shares, or one alone): its room."""
        found = self.client.plan()
        return found, {frozenset(home["who"]): home["room"] for home in found["homes"]}

    def fits(self, who):
        room = self.locks.get(who)
        there = who <= set(self.office.new) and not crossing(self.office, [tuple(who)])
        mine = there and self.office.of(self.office.new[next(iter(who))])
        return there and (room is None or "AB".index(room[0]) == mine)

    def holds(self):
        """(1) to (3), by the plan and by the list of decisions."""
        plan, homes = self.plan()
        assert set(plan["names"]) == set(self.office.new)
        assert not crossing(self.office, map(tuple, homes))
        for who, room in self.locks.items():
            homes_of = {home: where for home, where in homes.items() if who <= home}
            assert not self.fits(who) or (len(who) == 1 or who in homes_of)
            assert not self.fits(who) or room in (None, *homes_of.values())
        for two in self.apart:
            assert not any(two <= home for home in homes)
        if not self.locks and not self.apart:
            return
        found = [d for d in self.client.state()["decisions"] if d.kind != "together"]
        assert len(found) == len(self.locks) + len(self.apart)
        for kinds, made in ((("require", "fixed"), self.locks), (("forbid",), self.apart)):
            for who in made:
                mine = [d for d in found if d.kind in kinds and set(d.who) == who]
                assert len(mine) == 1, (who, found)
                fits = who <= set(self.office.new) if made is self.apart else self.fits(who)
                assert (mine[0].why is None) == fits

    def act(self, rng):
        """One thing that an office does, drawn."""
        plan, homes = self.plan()
        people = self.office.new
        kinds = ("lock", "apart", "together", "swap", "answer", "gender", "remove", "add", "undo")
        kind = kinds[int(rng.choice(9, p=[0.22, 0.22, 0.12, 0.1, 0.08, 0.06, 0.06, 0.06, 0.08]))]
        if kind == "lock":
            given = [one for one in plan["homes"] if len(one["who"]) > 1 or one["room"]]
            home = given[int(rng.integers(len(given)))]
            who = frozenset(home["who"])
            told = {"unlock" if home["locked"] else "lock": home["who"][0]}
            if home["locked"]:
                self.client.send("change", told)
                self.locks = {own: r for own, r in self.locks.items() if not own <= who}
                return
            if any(who & own or home["room"] in (r or "-",) for own, r in self.locks.items()):
                assert "locked" in self.client.refused("change", told)  # what does not fit now
                return
            made = self.client.state()["decisions"]
            if any(d.kind == "together" and d.why and who & set(d.who) for d in made):
                assert "were put together: let that go" in self.client.refused("change", told)
                return
            self.client.send("change", told)
            self.locks[who] = home["room"]
        elif kind in ("apart", "together", "swap"):
            two = frozenset(map(str, rng.choice(sorted(people), 2, replace=False)))
            if kind == "apart" and rng.random() < 0.7:
                shared = sorted(sorted(home) for home in homes if len(home) > 1)
                two = frozenset(
                    rng.permutation(shared[int(rng.integers(len(shared)))])[:2].tolist()
                )
            self.change(kind, two, homes)
        elif kind == "undo":
            if self.locks or self.apart:
                found = self.client.send("undo")["decisions"]
                self.locks = {
                    frozenset(d.who): d.room for d in found if d.kind in ("require", "fixed")
                }
                self.apart = [frozenset(d.who) for d in found if d.kind == "forbid"]
        else:
            self.correct(kind, rng, list(people))

    def change(self, kind, two, homes):
        """(4): the homes that become new are those that were said; and none is locked unasked."""
        locked = {own for who in self.locks if who in homes for own in who}
        told = {"kind": kind, "who": sorted(two)}
        if self.client.refused("cost", told):
            assert self.client.refused("done", kind="")
            assert self.plan()[1] == homes
            return
        words = self.client.state()["asked"]["words"]
        assert not (two & locked if kind != "apart" else any(two <= who for who in self.locks))
        self.client.send("done", kind="")
        after, made = self.plan()
        held = [{*home["who"]} for home in after["homes"] if home["locked"]]
        locks = [who for who in self.locks if self.fits(who)]
        assert all(who in held for who in locks if len(who) > 1)
        assert all(any(who <= home for who in locks) for home in held)
        told = next((line for line in words if line.startswith("New pairs")), "")
        said = {who for who in self.office.new if who in told}
        assert said == {who for home in set(made) - set(homes) if len(home) > 1 for who in home}
        if kind == "apart" and two not in self.apart:
            self.apart.append(two)

    def correct(self, kind, rng, people):
        """A corrected workbook, dropped again."""
        rows = self.office.rows
        who = self.office.new[people[int(rng.integers(len(people)))]]
        if kind == "answer":
            who["q1"] = str(rng.integers(1, 6))
        elif kind == "gender":
            other = 1 - self.office.of(who)
            who[self.office.header] = self.office.blocks[other][0]
        elif kind == "remove":
            rows.remove(who)
        else:
            self.office.add(2, int(rng.integers(len(self.office.blocks))))
        rng.shuffle(rows)
        state = self.client.drop("people", self.office.people().encode())
        assert state["roles"]["same"] == (self.office.header,)
        self.learn()


@contextmanager
def page(folder):
    with Server(Project.own(folder)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield Client(server)
        server.shutdown()


def on_the_page(seed, steps, folder):
    rng = np.random.default_rng(seed)
    header = HEADERS[int(rng.integers(len(HEADERS)))]
    with page(folder) as client:
        desk = Desk(client, Office(rng, "two", header), rooms=seed % 2 == 1)
        desk.holds()
        for _ in range(steps):
            desk.act(rng)
            desk.holds()


@pytest.mark.parametrize("seed", range(6))
def test_decisions_on_the_page_hold_whatever_is_done(seed, tmp_path):
    on_the_page(seed, 6, tmp_path)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(6, 46))
def test_decisions_on_the_page_always_hold(seed, tmp_path):
    on_the_page(seed, 40, tmp_path)


@pytest.mark.parametrize("kind", list(VALUES))
def test_the_page_stops_a_plan_until_somebody_decides(kind, tmp_path):
    """Roles sent without the rule: the plan names column and figure; a decision lets it be made."""
    rng = np.random.default_rng(7)
    office = Office(rng, kind, "I am …")
    with page(tmp_path) as client:
        client.drop("people", office.people().encode())
        state = client.drop("pairs", office.shared().encode())
        assert (state["roles"]["same"] == ("I am …",)) == (kind not in ("spelled", "case"))
        roles = state["roles"] | {"same": [], "ignore": ["I am …"]}
        said = client.learn(roles, planned="2")["fault"]
        assert "I am …" in said
        assert f" of {len(office.pairs)} " in said
        state = client.state()
        found = [f for f in state["findings"] if "I am …" in f["words"]]
        assert any(f["kind"] == "fault" for f in found)
        assert "I am …" in state["agreeing"]
        state = client.learn(roles | {"mix": ["I am …"]}, planned="2")
        assert crossing(office, [tuple(home["who"]) for home in state["plan"]["homes"]])


def test_a_renamed_column_is_listed_and_comes_back(tmp_path):
    """What was chosen for it waits; the new name is no silent exception from the rule."""
    office = Office(np.random.default_rng(3), "two", "Geschl.")
    with page(tmp_path) as client:
        desk = Desk(client, office)
        before = client.state()["roles"]
        client.learn(before | {"protected": ["q1"]}, planned="2")
        for row in office.rows:
            row["Gender"], row["tidy"] = row.pop("Geschl."), row.pop("q1")
        office.header = "Gender"
        state = client.drop("people", office.people().encode())
        gone = {d.who[0]: d.why for d in state["decisions"] if d.kind == "column"}
        assert set(gone) == {"Geschl.", "q1"}
        assert all(gone.values())
        assert state["roles"]["same"] == ("Gender",)
        desk.learn()
        desk.holds()
        for row in office.rows:
            row["Geschl."], row["q1"] = row.pop("Gender"), row.pop("tidy")
        office.header = "Geschl."
        state = client.drop("people", office.people().encode())
        assert "Geschl." in state["roles"]["same"]
        assert state["roles"]["protected"] == ("q1",)


def test_columns_that_pairs_do_not_agree_in_stop_no_plan(tmp_path, capsys):
    """Chance, tastes, constants, rare answers and unique values are no rules."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        office = Office(rng, "two", "gender")
        for k, row in enumerate(office.rows):
            row |= {"name": f"n{k}", "town": "here", "rare": "no" if k % 25 else "yes"}
            row |= {"coin": str(rng.choice(list("ab"))), "die": str(rng.choice(list("abcdef")))}
        by_id = {row["id"]: row for row in office.rows}
        for a, b in office.pairs:  # a taste: four in five pairs agree
            if rng.random() < 0.6:
                by_id[b]["coin"] = by_id[a]["coin"]
        files, model = office.files(tmp_path / str(seed)), str(tmp_path / "m.npz")
        asked = ["--cohort", "year", "--same", "gender", "--ordinal", "q1,q2,q3", "--force"]
        asked += ["--alpha", "10", "--only", "1", "--model", model]
        assert main(["roommates", "fit", *files, *asked]) == 0
        out = ["--out", str(tmp_path / f"out{seed}")]
        assert main(["roommates", "assign", files[0], "--only", "2", "--model", model, *out]) == 0
        assert "agree in it" not in capsys.readouterr().out


def september(seed, folder, capsys, monkeypatch):
    """An office's September by the command line; what was decided after every corrected table."""
    rng = np.random.default_rng(seed)
    office = Office(rng, "two", "Geschl.")
    folder.mkdir()
    monkeypatch.chdir(folder)
    office.files(folder)

    def run(*words, code=0):
        assert main(list(words)) == code, capsys.readouterr()
        return capsys.readouterr().out

    def plan():
        out = run("roommates", "assign", "--json", "--out", "out", "--force")
        made = planned(out)
        assert {who for two in made for who in two} <= set(office.new)
        assert not crossing(office, made)
        return {frozenset(two) for two in made}, json.loads(out)["unused"]

    def learn():
        run("roommates", "fit", "--alpha", "10", "--force")

    run("check", "people.tsv", "pairs.tsv")
    file = folder / "roommates.toml"
    assert tomllib.loads(file.read_text())["groups"] == {
        "cohort": "year", "same": ["Geschl."], "plan": "2",
    }  # fmt: skip
    text = "# ours\n" + file.read_text().replace("[columns.q3]", "[columns.q3]\nprotected = true")
    text = text.replace("[columns.smokes]", "[columns.smokes] # ask them again")
    file.write_text(text)
    learn()
    homes, _ = plan()
    locks = sorted(map(sorted, homes))[:3]
    for a, _ in locks:
        run("roommates", "change", "lock", a, "--yes")
    free = [sorted(home) for home in homes if sorted(home) not in locks]
    apart = free[:2]
    for a, b in apart:
        said = run("roommates", "change", "apart", a, b)
        assert "nothing is changed" in said
        assert plan()[0] == homes
        said = run("roommates", "change", "apart", a, b, "--yes")
        new = plan()[0] - homes
        assert all(who in said for home in new for who in home)
        homes = plan()[0]
    said = run("roommates", "change", "together", locks[0][0], free[3][0], code=2)
    assert plan()[0] == homes
    decided = (folder / "roommates.people.toml").read_text()
    assert (folder / "roommates.people.toml").stat().st_mode & 0o077 == 0

    def holds(gone=()):
        homes, unused = plan()
        for kind, made in (("require", locks), ("forbid", apart)):
            for two in made:
                out = [
                    part for part in unused if part["kind"] == kind and set(part["who"]) == set(two)
                ]
                assert len(out) == bool(set(two) & set(gone))
                assert out or (frozenset(two) in homes) == (kind == "require")

    by_id = {row["id"]: row for row in office.rows}
    by_id[locks[0][0]]["q1"] = str(rng.integers(1, 6))  # a corrected answer
    office.add(2, 0)
    office.add(2, 1)
    office.files(folder)
    learn()
    holds()
    office.rows.remove(by_id[locks[1][0]])  # somebody is deleted
    office.rows.remove(by_id[apart[0][0]])
    rng.shuffle(office.rows)
    office.files(folder)
    learn()
    holds(gone=(locks[1][0], apart[0][0]))
    for row in office.rows:  # two columns are renamed
        row["tidy"] = row.pop("q1")
    office.files(folder)
    said = run("check", code=0)
    assert "column 'q1': there is no such column now" in said
    assert "column 'tidy' is new" in said
    learn()
    holds(gone=(locks[1][0], apart[0][0]))
    for row in office.rows:
        row["Gender"] = row.pop("Geschl.")
    office.header = "Gender"
    office.files(folder)
    assert "column 'Geschl.'" in run("check", code=1)
    run("roommates", "fit", "--force", code=2)  # it kept people apart: not in silence
    file.write_text(file.read_text().replace("Geschl.", "Gender"))
    learn()
    holds(gone=(locks[1][0], apart[0][0]))
    office.rows += [by_id[locks[1][0]], by_id[apart[0][0]]]  # they come back
    for row in office.rows[-2:]:
        row["Gender"] = row.pop("Geschl.")
        row["tidy"] = row.pop("q1")
    office.files(folder)
    learn()
    holds()
    run("roommates", "change", "left", free[4][0], "--yes")
    assert free[4][0] not in {who for home in plan()[0] for who in home}
    after = (folder / "roommates.people.toml").read_text()
    assert [line for line in decided.splitlines() if line not in after.splitlines()] == []
    assert "\n\n\n" not in after
    text = file.read_text()
    assert text.startswith("# ours")
    assert "# ask them again" in text
    assert tomllib.loads(text)["columns"]["q3"]["protected"]


def test_answers_have_an_order_and_questions_their_words(tmp_path, capsys, monkeypatch):
    office = Office(np.random.default_rng(5), "two", "gender", size=60)
    for row in office.rows:
        row["often"] = ["never", "now and then", "daily"][(int(row["q1"]) - 1) // 2]
    folder = tmp_path / "tables"
    office.files(folder)
    monkeypatch.chdir(folder)
    assert main(["check", "people.tsv", "pairs.tsv"]) == 0
    file = folder / "roommates.toml"
    more = "role = 'ordinal'\nlevels = ['never', 'now and then', 'daily']\nwords = 'How often?'\n"
    text, _, after = file.read_text().partition("[columns.often]")
    role = after.index("role = ")
    file.write_text(
        text + "[columns.often]" + after[:role] + more + after[after.index("\n", role) :]
    )
    capsys.readouterr()
    assert main(["check"]) == 0
    assert re.search("often +whole numbers", capsys.readouterr().out)
    assert main(["roommates", "fit", "--force"]) == 0
    assert main(["roommates", "assign", "--out", "out"]) == 0
    assert "answers to “How often?” differ by 1" in (folder / "out" / "report.html").read_text()


@pytest.mark.parametrize("seed", range(2))
def test_what_was_decided_by_the_command_line_outlives_corrected_tables(
    seed, tmp_path, capsys, monkeypatch
):
    september(seed, tmp_path / "t", capsys, monkeypatch)
