"""The page itself: one document that asks nothing but its own server."""

from __future__ import annotations

import json

from mlestruct.html import Html, element
from mlestruct.report.look import STYLE
from mlestruct.serve.project import KINDS
from mlestruct.serve.script import SCRIPT
from mlestruct.serve.words import TEXTS

NEEDED = ("people", "pairs")
ACCEPTED = ".csv,.tsv,.txt,.xlsx,.xlsm,.parquet"
FETCHED = {"csv": "pairs.csv", "xlsx": "pairs.xlsx", "report": "report.html"}

OWN = """
header p { margin: .2rem 0; }
ol.steps { list-style: none; padding: 0; counter-reset: step; }
ol.steps > li { background: var(--card); border: 1px solid var(--line); border-radius: .5rem;
  padding: .8rem 1.1rem 1rem; margin: 1rem 0; max-width: none; counter-increment: step; }
ol.steps > li > h2 { margin: 0 0 .5rem; }
ol.steps > li > h2::before { content: counter(step) ". "; color: var(--soft); }
h3 { font-size: 1.05rem; margin: 1.3rem 0 .4rem; }
button, input, select { font: inherit; max-width: 100%; }
input:not([type]), input[type=search], select { color: inherit; background: var(--card);
  border: 1px solid var(--soft); border-radius: .35rem; padding: .25rem .45rem; }
input[type=file] { font-size: .85rem; width: 100%; }
button { color: var(--page); background: var(--link);
  border: 1px solid var(--link); border-radius: .35rem; padding: .4rem .9rem; cursor: pointer; }
button.quiet { color: var(--link); background: none; } button:disabled { opacity: .5; }
button.small { padding: .1rem .6rem; font-size: .9rem; }
button:focus-visible, input:focus-visible, select:focus-visible, a:focus-visible,
summary:focus-visible { outline: 3px solid var(--minus); outline-offset: 2px; }
.files { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 17rem), 1fr));
  gap: .8rem; }
.drop { border: 2px dashed var(--line); border-radius: .5rem; padding: .6rem .8rem; }
.drop.needed { border-color: var(--soft); } .drop.have { border-style: solid; }
.drop.over { border-color: var(--link); } .drop p { margin: .25rem 0; font-size: .92rem; }
.drop label { font-weight: 600; }
.fault { color: var(--minus); font-weight: 600; } .fault:empty { display: none; }
.fault { white-space: pre-line; }
.roles { display: grid; grid-template-columns: minmax(0, 15rem) minmax(0, 1fr); gap: .4rem 1rem;
  align-items: center; } .roles select { width: 100%; max-width: 26rem; }
.asked { width: 100%; } .asked select { width: 100%; max-width: 20rem; }
.asked td { vertical-align: middle; } .asked label { white-space: nowrap; margin-right: .8rem; }
.found { margin: .6rem 0; padding: 0; list-style: none; }
.found li { max-width: none; padding: .25rem 0 .25rem .7rem; border-left: 4px solid var(--line);
  margin: .3rem 0; } .found li.first { border-color: var(--minus); }
.found b { margin-right: .4rem; }
.row { display: flex; flex-wrap: wrap; gap: .6rem; align-items: center; margin: .6rem 0; }
.card h3 { margin: 0; font-size: 1.02rem; }
.card .row { margin: .4rem 0 0; }
fieldset { border: 1px solid var(--line); border-radius: .5rem; margin: 1rem 0; min-width: 0; }
legend { font-weight: 600; padding: 0 .4rem; }
.card.locked { border-left: 6px solid var(--plus); }
progress { width: 12rem; max-width: 100%; }
code { font-size: .85rem; overflow-wrap: anywhere; }
[hidden] { display: none !important; }
@media (max-width: 40rem) { .roles { grid-template-columns: 1fr; gap: .1rem; }
  .roles > :nth-child(even) { margin-bottom: .5rem; } ol.steps > li { padding: .7rem .7rem 1rem; }
  .asked, .asked tbody, .asked tr, .asked td { display: block; border: 0; padding: .1rem 0; }
  .asked thead { display: none; } .asked tr { border-bottom: 1px solid var(--line);
  padding: .4rem 0; } .asked td:first-child { font-weight: 600; } }
"""


def page(token: str, nonce: str) -> str:
    """The document for this token; the script runs by the nonce alone."""
    told = json.dumps({"token": token, "words": TEXTS})
    script = f"const GIVEN = {told.replace('<', chr(92) + 'u003c')};{SCRIPT}"
    head = (
        Html(
            '<meta charset="utf-8"><meta name="viewport" '
            'content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">'
        ),
        element("title", TEXTS["title"]),
        element("style", Html(STYLE + OWN)),
    )
    body = (_header(), _main(), element("script", Html(script), nonce=nonce))
    return "<!DOCTYPE html>\n" + element(
        "html", element("head", *head), element("body", *body), lang="en"
    )


def _header() -> Html:
    lead = element("p", TEXTS["lead"], class_="soft")
    return element("header", element("h1", TEXTS["title"]), lead)


def _main() -> Html:
    steps = [
        element("li", element("h2", TEXTS["files"]), _files()),
        element("li", element("h2", TEXTS["columns"]), _columns(), id="columns", hidden=""),
        element("li", element("h2", TEXTS["decided"]), _decided(), id="decided", hidden=""),
        element("li", element("h2", TEXTS["plan"]), _plan(), id="plan", hidden=""),
    ]
    fault = element("p", class_="fault", id="fault", role="alert")
    return element("main", element("ol", steps, class_="steps"), fault)


def _files() -> Html:
    drops = []
    for kind in KINDS:
        more = "" if kind in NEEDED else f" ({TEXTS['if you like']})"
        drops.append(
            element(
                "div",
                element("label", TEXTS[kind], for_=kind),
                more,
                element("p", TEXTS[f"{kind} what"], class_="soft"),
                Html(f'<input type="file" id="{kind}" accept="{ACCEPTED}">'),
                element("p", class_="said", role="status"),
                element("p", class_="which", hidden=""),
                class_="drop needed" if kind in NEEDED else "drop",
                data_kind=kind,
            )
        )
    return element("div", drops, class_="files")


def _columns() -> list[Html]:
    return [
        element(
            "details",
            element("summary", TEXTS["found"], ": ", element("span", id="count")),
            element("ul", class_="found", id="found"),
            id="findings",
        ),
        element("p", TEXTS["columns what"]),
        element("div", class_="roles", id="roles"),
        element("h3", TEXTS["questions"]),
        element("div", element("table", class_="asked", id="asked"), class_="wide"),
        element("p", TEXTS["protected what"], class_="soft"),
        element("h3", TEXTS["more rules"]),
        element("div", class_="roles", id="settings"),
        element(
            "div",
            element("button", TEXTS["learn"], id="learn"),
            element("progress", id="bar", hidden="", aria_label=TEXTS["learn"]),
            element("span", id="progress", role="status", aria_live="polite"),
            class_="row",
        ),
        element(
            "details",
            element("summary", TEXTS["technical"]),
            element("p", element("code", id="command")),
        ),
    ]


def _decided() -> list[Html]:
    return [
        element("p", TEXTS["decided what"], class_="soft"),
        element("ul", class_="found", id="decisions"),
        element("button", TEXTS["undo"], class_="quiet", id="undo"),
    ]


def _plan() -> list[Html]:
    person = Html('<input id="{}" list="everybody" autocomplete="off">')
    fields = [
        element("label", TEXTS[word], " ", Html(person.format(name)))
        for word, name in (("person", "first"), ("other", "second"))
    ]
    buttons = [
        element("button", TEXTS[word], class_="quiet", id=name)
        for word, name in (("ask swap", "swap"), ("ask together", "ask"), ("apart", "apart"))
    ]
    links = [
        element("a", TEXTS.get(name, file), id=name, href=file, download=file)
        for name, file in FETCHED.items()
    ]
    return [
        element("div", class_="glance", id="lines"),
        element(
            "fieldset",
            element("legend", TEXTS["change"]),
            element("div", fields, element("datalist", id="everybody"), class_="row"),
            element("div", buttons, class_="row"),
            element("p", id="cost", role="status", aria_live="polite"),
            element("button", TEXTS["do it"], id="do", hidden=""),
        ),
        element("p", f"{TEXTS['downloads']}: ", [[link, " "] for link in links], class_="row"),
        element("label", TEXTS["find"], " ", Html('<input type="search" id="find">')),
        element("ul", class_="cards", id="cards"),
    ]
