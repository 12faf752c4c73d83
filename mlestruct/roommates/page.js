"use strict";
const {token: TOKEN, words: WORDS} = GIVEN;
const $ = id => document.getElementById(id);
const say = (key, values) => Object.entries(values || {}).reduce(
  (text, [name, value]) => text.replaceAll(`{${name}}`, value), WORDS[key] ?? key);
const TWO = new Intl.NumberFormat("en", {maximumSignificantDigits: 2});
const digits = value => TWO.format(value);
const make = (name, text, given, ...inside) => {
  const made = Object.assign(document.createElement(name),
    text === undefined ? {} : {textContent: text}, given || {});
  made.append(...inside);
  return made;
};
const QUESTIONS = ["ordinal", "categorical", "binary"];
let state = null, shown = null, ids = new Map(), change = null;

async function ask(path, options) {
  $("fault").textContent = "";
  let reply, found;
  try {
    reply = await fetch(path, options);
    found = await reply.json();
  } catch (error) {
    $("fault").textContent = WORDS.lost;
    throw error;
  }
  if (found.refused !== undefined) {
    $("fault").textContent = found.refused;
    throw new Error(found.refused);
  }
  return found;
}
const post = (path, body) => ask(path, {method: "POST", headers: {"X-Mlestruct": TOKEN},
  body: body instanceof Blob ? body : JSON.stringify(body)});
/* What was refused is on the page; the console is for faults of the page itself. */
const tried = action => async (...given) => {
  try { await action(...given); } catch (error) { if (!$("fault").textContent) throw error; }
};

function select(options, value, label, id) {
  const box = make("select", undefined, id ? {id: id} : {});
  if (label) box.setAttribute("aria-label", label);
  for (const [key, words] of options) box.append(make("option", words, {value: key}));
  box.value = value ?? "";
  return box;
}

function files() {
  for (const drop of document.querySelectorAll(".drop")) {
    const known = state.files[drop.dataset.kind], said = drop.querySelector(".said");
    const which = drop.querySelector(".which");
    drop.classList.toggle("have", Boolean(known));
    said.classList.toggle("fault", Boolean(known && known.fault));
    said.textContent = !known ? "" : known.fault || known.said;
    which.hidden = !known || known.sheets.length < 2;
    if (which.hidden) continue;
    const names = [["", ""], ...known.sheets.map(name => [name, name])];
    const box = select(names, known.sheet, WORDS.sheet);
    box.onchange = tried(async () => {
      if (box.value) show(await post("sheet", {kind: drop.dataset.kind, sheet: box.value}));
    });
    which.replaceChildren(`${known.name}, ${WORDS.sheet} `, box);
  }
}

function findings() {
  const first = state.findings.filter(found => found.kind === "fault").length;
  const rest = state.findings.length - first;
  $("count").textContent = [first ? say("faults", {count: first}) : "",
    rest ? say("remarks", {count: rest}) : ""].filter(Boolean).join(", ") || WORDS["nothing found"];
  $("findings").open = first > 0;
  $("found").replaceChildren(...state.findings.map(found => make("li", undefined,
    {className: found.kind === "fault" ? "first" : ""}, make("b", `${WORDS[found.kind]}:`),
    make("span", found.words))));
}

function columns() {
  $("columns").hidden = !state.roles;
  if (!state.roles) return;
  findings();
  const roles = state.roles, box = $("roles");
  const own = state.columns.people.map(name => [name, name]), none = [["", WORDS.none], ...own];
  const line = (to, key, field) => to.append(make("label", WORDS[key], {htmlFor: field.id}), field);
  box.replaceChildren();
  line(box, "id", select(own, roles.id, "", "r-id"));
  line(box, "cohort", select(none, roles.cohort, "", "r-cohort"));
  if (!state.files.new && state.cohorts.length)
    line(box, "planned", select(state.cohorts.map(v => [v, v]), state.planned, "", "r-planned"));
  const ways = ["partners", "room", "partner"].map(way => [way, WORDS[`way ${way}`]]);
  const way = select(ways, roles.way, "", "r-way");
  line(box, "who shared", way);
  const every = new Set([...state.columns.pairs, ...state.columns.people]);
  const listed = [["", ""], ...[...every].map(name => [name, name])];
  const ends = make("span", undefined, {id: "r-ends"});
  line(box, "way column", ends);
  const told = () => {
    const given = roles[way.value];
    ends.replaceChildren(...[0, 1].map(k => select(listed, given[k],
      WORDS[way.value !== "partners" ? "way column" : k ? "second end" : "first end"],
      `r-end${k}`)));
    ends.dataset.more = JSON.stringify(way.value === roles.way ? given.slice(2) : []);
  };
  told();
  way.onchange = told;
  line(box, "names", select(none, roles.names, "", "r-names"));
  questions();
  $("settings").replaceChildren();
  for (const [name, allowed] of Object.entries(state.settings))
    line($("settings"), name, select(allowed.map(v => [v, WORDS[`${name} ${v}`]]), roles[name],
      "", `s-${name}`));
}

function questions() {
  const roles = state.roles;
  const kinds = [["", WORDS["not used"]], ...["same", ...QUESTIONS].map(k => [k, WORDS[k]])];
  const body = $("asked");
  body.replaceChildren();
  const taken = new Set([roles.id, roles.cohort, ...roles[roles.way]]);
  for (const name of state.columns.people) {
    if (taken.has(name)) continue;
    const kind = ["same", ...QUESTIONS].find(role => roles[role].includes(name)) || "";
    const field = select(kinds, kind, `${name}: ${WORDS["used as"]}`);
    field.dataset.column = name;
    const codes = (state.offered[name] || []).map(([value, count]) => make("label", undefined, {},
      tick("code", name, value, (roles.no_answer[name] || []).includes(value)),
      " " + say("meaning no", {value: value, count: count})));
    const guard = tick("guard", name, name, roles.protected.includes(name));
    guard.setAttribute("aria-label", `${name}: ${WORDS.protected}`);
    const mix = state.agreeing.includes(name) ? [make("label", undefined, {},
      tick("mix", name, name, roles.mix.includes(name)), " " + WORDS.mix)] : [];
    body.append(make("tr", undefined, {}, make("td", name),
      make("td", undefined, {}, field, ...mix),
      make("td", undefined, {}, ...codes), make("td", undefined, {}, guard)));
  }
}

function tick(what, column, value, on) {
  const box = make("input", undefined, {type: "checkbox", checked: on, value: value});
  box.dataset[what] = column;
  return box;
}

function chosen() {
  const way = $("r-way").value, no = {};
  const ends = [...$("r-ends").querySelectorAll("select")].map(box => box.value).filter(Boolean);
  for (const box of document.querySelectorAll("[data-code]:checked"))
    (no[box.dataset.code] ||= []).push(box.value);
  const roles = {id: $("r-id").value, cohort: $("r-cohort").value || null, way: way,
    names: $("r-names").value || null, no_answer: no, same: [],
    [way]: [...ends, ...JSON.parse($("r-ends").dataset.more)]};
  for (const role of QUESTIONS) roles[role] = [];
  for (const field of document.querySelectorAll("[data-column]"))
    if (field.value) roles[field.value].push(field.dataset.column);
  for (const [role, mark] of [["mix", "mix"], ["protected", "guard"]])
    roles[role] = [...document.querySelectorAll(`[data-${mark}]:checked`)].map(box => box.value);
  for (const name of Object.keys(state.settings)) roles[name] = $(`s-${name}`).value;
  return {roles: roles, planned: $("r-planned") ? $("r-planned").value : null};
}

function show(found) {
  state = found;
  files();
  columns();
  return follow();
}

async function follow() {
  $("learn").disabled = state.running;
  $("bar").hidden = !state.running;
  if (state.running) {
    const {round, relative} = state.progress, seconds = state.seconds.toFixed(0);
    const percent = relative === null ? "100" : digits(100 * relative);
    $("progress").textContent = say(round ? "learning" : "starting",
      {round: round, seconds: seconds, percent: percent});
    setTimeout(tried(async () => { state = await ask("state"); await follow(); }), 400);
    return;
  }
  $("progress").textContent = state.roles && !state.fitted ? WORDS.again : "";
  if (state.fault) $("fault").textContent = state.fault;
  $("plan").hidden = true;
  try {
    if (state.fitted && !state.fault) drawn(await ask("plan"));
  } finally {
    decisions(state);
  }
}

/* Everything that was decided, what does not fit first; each can be let go. */
function decisions({decisions, undo}) {
  $("decided").hidden = !decisions.length && !undo;
  $("undo").hidden = !undo;
  const unfit = decisions.filter(one => one.why), fit = decisions.filter(one => !one.why);
  $("decisions").replaceChildren(...[...unfit, ...fit].map(one => {
    const words = say(`decided ${one.kind}`,
      {who: one.who.join(" + "), room: one.room});
    const why = one.why ? " " + say("not in use", {why: one.why}) : "";
    return make("li", undefined, {className: one.why ? "first" : ""},
      make("span", words + why + " "),
      button(WORDS["let go"], `${WORDS["let go"]}: ${words}`, tried(async () => {
        state = await post("let_go", {kind: one.kind, who: one.who});
        await follow();
      })));
  }));
}

function draw(plan) {
  drawn(plan);
  decisions(plan);
}

function drawn(plan) {
  shown = plan;
  $("plan").hidden = false;
  $("lines").replaceChildren(...plan.lines.map(line => make("p", line)));
  ids = new Map(Object.entries(plan.names).map(([id, name]) => [name, id]));
  $("everybody").replaceChildren(...[...ids.keys()].map(name =>
    make("option", undefined, {value: name})));
  $("cards").replaceChildren(...plan.homes.map(card));
  forget();
  search();
}

function button(words, label, action) {
  const made = make("button", words, {className: "quiet small", onclick: action});
  if (label) made.setAttribute("aria-label", label);
  return made;
}

const room = name => name === null ? "" : `${say("room", {room: name})}: `;

function card(home) {
  const names = home.who.map(id => shown.names[id]);
  const item = make("li", undefined, {className: home.locked ? "card locked" : "card"});
  const alone = home.pairs.length ? "" : ` · ${WORDS.alone}`;
  item.append(make("h3", `${room(home.room)}${names.join(" + ")}${alone}`));
  for (const {title, probability, reasons} of home.pairs) {
    const words = say("probable", {share: digits(100 * probability)});
    item.append(make("p", home.pairs.length > 1 ? `${title}: ${words}` : words),
      make("ul", undefined, {}, ...reasons.map(text => make("li", text))));
  }
  const kind = home.locked ? "unlock" : "lock";
  const label = say("lock whom", {action: WORDS[kind], who: names.join(" + ")});
  if (home.pairs.length || home.room !== null)
    item.append(make("div", undefined, {className: "row"}, button(WORDS[kind], label,
      tried(async () => draw(await post("change", {kind: kind, who: [home.who[0]]}))))));
  return item;
}

function two() {
  const found = [$("first").value, $("second").value].map(name => ids.get(name));
  if (found.includes(undefined) || found[0] === found[1]) {
    $("cost").textContent = WORDS["name two"];
    return null;
  }
  return found;
}

function forget() {
  change = null;
  $("do").hidden = true;
  $("cost").textContent = "";
}

const cost = kind => tried(async () => {
  forget();
  const found = two();
  if (!found) return;
  const who = found.map(id => `&who=${encodeURIComponent(id)}`).join("");
  const told = await ask(`cost?kind=${kind}${who}`);
  $("cost").textContent = told.words.join(" ");
  change = {kind: kind, who: found};
  $("do").hidden = false;
});

function search() {
  const wanted = $("find").value.trim().toLowerCase();
  for (const item of $("cards").children)
    item.hidden = !item.querySelector("h3").textContent.toLowerCase().includes(wanted);
}

const put = tried(async (kind, file) => {
  if (!file) return;
  document.querySelector(`[data-kind=${kind}] .said`).textContent = WORDS.loading;
  await show(await post(`file?kind=${kind}&name=${encodeURIComponent(file.name)}`, file));
});

for (const drop of document.querySelectorAll(".drop")) {
  const kind = drop.dataset.kind;
  const input = drop.querySelector("input");
  input.onclick = () => { input.value = ""; }; // a corrected file of the same name is read again
  input.onchange = () => put(kind, input.files[0]);
  drop.ondragover = event => { event.preventDefault(); drop.classList.add("over"); };
  drop.ondragleave = () => drop.classList.remove("over");
  drop.ondrop = event => {
    event.preventDefault();
    drop.classList.remove("over");
    put(kind, event.dataTransfer.files[0]);
  };
}
$("learn").onclick = tried(async () => {
  await show(await post("choose", chosen()));
  await show(await post("fit", {}));
});
$("ask").onclick = cost("together");
$("swap").onclick = cost("swap");
$("do").onclick = tried(async () => { if (change) draw(await post("change", change)); });
$("apart").onclick = cost("apart");
$("undo").onclick = tried(async () => {
  state = await post("undo", {});
  await follow();
});
$("find").oninput = search;
tried(async () => show(await ask("state")))();
