"""The page itself: one document that asks nothing but its own server."""

from mlestruct.report.look import STYLE

OWN = """
ol.steps { list-style: none; padding: 0; counter-reset: step; }
ol.steps > li { background: var(--card); border: 1px solid var(--line); border-radius: .5rem;
  padding: .8rem 1.1rem; margin: 1rem 0; max-width: none; counter-increment: step; }
ol.steps > li > h2 { margin: 0 0 .5rem; }
ol.steps > li > h2::before { content: counter(step) ". "; }
button, input, select { font: inherit; max-width: 100%; }
button { color: var(--page); background: var(--link);
  border: 1px solid var(--link); border-radius: .35rem; padding: .35rem .8rem; cursor: pointer; }
button.quiet { color: var(--link); background: none; } button:disabled { opacity: .5; }
button:focus-visible, input:focus-visible, select:focus-visible, a:focus-visible, .drop:focus-within
  { outline: 3px solid var(--minus); outline-offset: 2px; }
.files { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 16rem), 1fr));
  gap: .8rem; }
.drop { border: 2px dashed var(--soft); border-radius: .5rem; padding: .8rem; }
.drop.over { border-color: var(--link); } .drop p { margin: .3rem 0; }
.fault { color: var(--minus); font-weight: 600; } .fault:empty { display: none; }
.roles { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 2fr); gap: .35rem 1rem;
  align-items: center; } .roles select { max-width: 100%; }
.row { display: flex; flex-wrap: wrap; gap: .6rem; align-items: center; margin: .6rem 0; }
.card h3 { margin: 0; font-size: 1.02rem; }
fieldset { border: 1px solid var(--line); border-radius: .5rem; margin: 1rem 0; min-width: 0; }
.card.locked { border-left: 6px solid var(--plus); }
[hidden] { display: none !important; }
"""

BODY = """
<header><h1>Room-mates</h1>
<p class="soft">From your tables to a plan. Everything stays on this machine.</p></header>
<main><ol class="steps">
<li><h2>Files</h2>
<div class="files">
<div class="drop" data-kind="people"><label for="people"><strong>People</strong></label>
<p>A line for each person: an id, and answers.</p>
<input type="file" id="people" accept=".csv,.tsv,.txt,.xlsx,.parquet"><p class="said"></p></div>
<div class="drop" data-kind="pairs"><label for="pairs"><strong>Pairs</strong></label>
<p>Who shared with whom in earlier years: two ids a line.</p>
<input type="file" id="pairs" accept=".csv,.tsv,.txt,.xlsx,.parquet"><p class="said"></p></div>
<div class="drop" data-kind="rooms"><label for="rooms"><strong>Rooms</strong> (if you like)</label>
<p>Columns room and size.</p>
<input type="file" id="rooms" accept=".csv,.tsv,.txt,.xlsx,.parquet"><p class="said"></p></div>
</div></li>
<li id="columns" hidden><h2>Columns</h2>
<p>What was guessed is chosen below; change what is wrong.</p>
<div class="roles" id="roles"></div>
<div class="row"><button id="learn">Learn and plan</button>
<span id="progress" role="status" aria-live="polite"></span></div></li>
<li id="plan" hidden><h2>The plan</h2>
<div class="glance" id="lines"></div>
<fieldset><legend>Put two people together</legend><div class="row">
<label>Person <input id="first" list="everybody" autocomplete="off"></label>
<label>with <input id="second" list="everybody" autocomplete="off"></label>
<datalist id="everybody"></datalist>
<button class="quiet" id="ask">What would it cost?</button>
<button class="quiet" id="apart">Keep them apart</button></div>
<p id="cost" role="status" aria-live="polite"></p>
<button id="together" hidden>Do it</button></fieldset>
<div class="row" id="apartness"></div>
<div class="row"><a id="csv" download="pairs.csv">pairs.csv</a>
<a id="xlsx" download="pairs.xlsx">pairs.xlsx</a>
<a id="report" download="report.html">report.html</a></div>
<label>Find <input type="search" id="find"></label>
<ul class="cards" id="cards"></ul></li>
</ol><p class="fault" id="fault" role="alert"></p></main>
"""

SCRIPT = r"""
"use strict";
const $ = id => document.getElementById(id);
const make = (name, text, given) => Object.assign(document.createElement(name),
  text === undefined ? {} : {textContent: text}, given || {});
const ROLES = {"": "not used", same: "must be the same", ordinal: "question: steps",
  categorical: "question: kinds", binary: "question: yes or no", protected: "question, protected"};
let shown = null, rows = new Map();

async function ask(path, options) {
  $("fault").textContent = "";
  const reply = await fetch(path, options);
  const found = await reply.json();
  if (!reply.ok) { $("fault").textContent = found.fault; throw new Error(found.fault); }
  return found;
}
const post = (path, body) => ask(path, {method: "POST", body: body,
  headers: {"X-Mlestruct": TOKEN}});

function select(options, value, label) {
  const box = make("select", undefined, {});
  box.setAttribute("aria-label", label);
  for (const [key, words] of options) box.append(make("option", words, {value: key}));
  box.value = value ?? "";
  return box;
}

function files(state) {
  for (const drop of document.querySelectorAll(".drop")) {
    const known = state.files[drop.dataset.kind], said = drop.querySelector(".said");
    said.classList.toggle("fault", Boolean(known && known.fault));
    said.textContent = !known ? "" : known.fault ||
      `${known.rows} lines, columns ${known.columns.join(", ")}. ${known.said}`;
  }
}

function columns(state) {
  const people = state.files.people, pairs = state.files.pairs;
  const ready = people && people.columns && pairs && pairs.columns;
  $("columns").hidden = !ready;
  if (!ready) return;
  const box = $("roles"), roles = state.roles, own = people.columns.map(name => [name, name]);
  box.replaceChildren();
  const line = (words, field) => box.append(make("span", words), field);
  line("id of a person", Object.assign(select(own, roles.id, "id of a person"), {id: "r-id"}));
  const none = [["", "none"], ...own];
  line("year or cohort", Object.assign(select(none, roles.cohort, "year or cohort"),
    {id: "r-cohort"}));
  line("pair up", Object.assign(select(state.cohorts.map(v => [v, v]), state.planned, "pair up"),
    {id: "r-planned"}));
  const ends = pairs.columns.map(name => [name, name]);
  for (const k of [0, 1]) {
    const words = `column of the ${k ? "second" : "first"} of a pair`;
    line(words, Object.assign(select(ends, (roles.partners || [])[k], words), {id: `r-end${k}`}));
  }
  for (const name of people.columns) {
    if (name === roles.id || name === roles.cohort) continue;
    const order = ["protected", ...Object.keys(ROLES)];
    const kind = order.find(role => (roles[role] || []).includes(name)) || "";
    const field = select(Object.entries(ROLES), kind, name);
    field.dataset.column = name;
    line(name, field);
  }
}

function chosen() {
  const roles = {id: $("r-id").value, cohort: $("r-cohort").value || null,
    partners: [$("r-end0").value, $("r-end1").value]};
  for (const role of Object.keys(ROLES)) if (role) roles[role] = [];
  for (const field of document.querySelectorAll("[data-column]")) {
    if (!field.value) continue;
    if (field.value === "protected") roles.categorical.push(field.dataset.column);
    roles[field.value].push(field.dataset.column);
  }
  return {roles: roles, planned: $("r-planned").value || null};
}

async function follow(state) {
  $("learn").disabled = state.running;
  if (state.running) {
    const words = state.seconds > 3 ? " (the first time takes longest)" : "";
    $("progress").textContent = `learning, ${state.seconds.toFixed(0)} s${words}`;
    setTimeout(async () => follow(await ask("state")), 500);
    return;
  }
  $("progress").textContent = "";
  if (state.fault) $("fault").textContent = state.fault;
  if (state.fitted && !state.fault) draw(await ask("plan"));
  else $("plan").hidden = true;
}

function draw(plan) {
  shown = plan;
  $("plan").hidden = false;
  $("lines").replaceChildren(...plan.lines.map(line => make("p", line)));
  rows = new Map(Object.entries(plan.names).map(([row, name]) => [name, Number(row)]));
  $("everybody").replaceChildren(...[...rows.keys()].map(name =>
    make("option", undefined, {value: name})));
  $("cards").replaceChildren(...plan.pairs.map(card),
    ...plan.alone.map(who => {
      const item = make("li", undefined, {className: "card"});
      item.append(make("h3", `${who.name} · without a partner`));
      return item;
    }));
  $("apartness").replaceChildren(...plan.forbid.map(([a, b]) => {
    const button = make("button", `${plan.names[a]} and ${plan.names[b]} apart: let go`,
      {className: "quiet"});
    button.onclick = () => rule("forbid", a, b, false);
    return button;
  }));
  search();
}

function card(pair) {
  const item = make("li", undefined, {className: pair.locked ? "card locked" : "card"});
  const room = pair.room === null ? "" : `Room ${pair.room}: `;
  item.append(make("h3", `${room}${pair.a.name} + ${pair.b.name}`),
    make("p", `${(100 * pair.probability).toPrecision(2)} % probable`));
  const list = make("ul");
  list.append(...pair.reasons.map(words => make("li", words)));
  const lock = make("button", pair.locked ? "unlock" : "lock", {className: "quiet"});
  lock.setAttribute("aria-label", `${lock.textContent} ${pair.a.name} and ${pair.b.name}`);
  lock.onclick = () => rule("require", pair.a.row, pair.b.row, !pair.locked);
  item.append(list, lock);
  return item;
}

async function rule(kind, a, b, keep) {
  draw(await post("rule", JSON.stringify({kind: kind, a: a, b: b, keep: keep})));
}

function two() {
  const found = [$("first").value, $("second").value].map(name => rows.get(name));
  if (found.includes(undefined) || found[0] === found[1]) {
    $("cost").textContent = "Name two people of the plan.";
    return null;
  }
  return found;
}

function search() {
  const wanted = $("find").value.trim().toLowerCase();
  for (const item of $("cards").children)
    item.hidden = !item.querySelector("h3").textContent.toLowerCase().includes(wanted);
}

async function put(kind, file) {
  if (!file) return;
  const name = encodeURIComponent(file.name);
  const state = await post(`file?kind=${kind}&name=${name}`, file);
  files(state);
  columns(state);
  await follow(state);
}

for (const drop of document.querySelectorAll(".drop")) {
  const kind = drop.dataset.kind;
  drop.querySelector("input").onchange = event => put(kind, event.target.files[0]);
  drop.ondragover = event => { event.preventDefault(); drop.classList.add("over"); };
  drop.ondragleave = () => drop.classList.remove("over");
  drop.ondrop = event => {
    event.preventDefault();
    drop.classList.remove("over");
    put(kind, event.dataTransfer.files[0]);
  };
}
$("learn").onclick = async () => {
  await post("choose", JSON.stringify(chosen()));
  await follow(await post("fit", ""));
};
$("ask").onclick = async () => {
  const found = two();
  $("together").hidden = !found;
  if (!found) return;
  const cost = await ask(`cost?a=${found[0]}&b=${found[1]}`);
  const share = (100 * cost.share).toPrecision(2);
  $("cost").textContent = cost.new.length === 0 ? "They already share." :
    `The plan's total falls by ${share} %. New pairs: ${cost.new.join(", ")}.`;
};
$("together").onclick = async () => {
  const found = two();
  if (found) await rule("require", found[0], found[1], true);
  $("together").hidden = true;
  $("cost").textContent = "";
};
$("apart").onclick = async () => {
  const found = two();
  if (found) await rule("forbid", found[0], found[1], true);
};
$("find").oninput = search;
for (const id of ["csv", "xlsx", "report"])
  $(id).href = {csv: "pairs.csv", xlsx: "pairs.xlsx", report: "report.html"}[id];
ask("state").then(state => { files(state); columns(state); return follow(state); });
"""

PAGE = f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Room-mates</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,"><style>{STYLE}{OWN}</style></head><body>{BODY}
<script nonce="{{nonce}}">const TOKEN = "{{token}}";{SCRIPT}</script></body></html>
"""
