"""How a report looks: one style sheet for screens, telephones, paper, light and dark; one script.

Colours are two that the colour-blind tell apart (Okabe and Ito's blue and vermilion), each with a
shade for dark backgrounds; contrast is at least 4.5 to 1. The script only searches and sorts the
cards: without it the page says the same.
"""

STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #57606a; --line: #d0d7de;
  --page: #f6f8fa; --card: #ffffff; --plus: #0b62a4; --minus: #b54708; --link: #0b5394; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --soft: #9aa7b4; --line: #3a434d;
  --page: #0d1117; --card: #161b22; --plus: #6cb6ff; --minus: #f0a35e; --link: #79b8ff; } }
* { box-sizing: border-box; }
body { font: 16px/1.55 system-ui, sans-serif; color: var(--ink); background: var(--page);
  max-width: 64rem; margin: 0 auto; padding: 1.2rem 1rem 3rem; overflow-wrap: anywhere; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: .2rem 0 .3rem; }
h2 { font-size: 1.25rem; margin: 2.4rem 0 .6rem; }
a { color: var(--link); } p, li { max-width: 44rem; }
.soft, caption, figcaption { color: var(--soft); }
nav { display: flex; flex-wrap: wrap; gap: .2rem 1rem; margin: .8rem 0; }
.glance { background: var(--card); border: 1px solid var(--line);
  border-left: 6px solid var(--plus); border-radius: .5rem; padding: .8rem 1.1rem; margin: 1rem 0; }
.glance p { margin: .45rem 0; max-width: 52rem; } .glance p:first-child { font-weight: 600; }
.tools { display: flex; flex-wrap: wrap; gap: .6rem 1.2rem; margin: .8rem 0; }
.tools[hidden] { display: none; }
.tools input, .tools select { font: inherit; color: inherit; background: var(--card);
  border: 1px solid var(--soft); border-radius: .35rem; padding: .3rem .5rem; max-width: 100%; }
.cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 19rem), 1fr));
  gap: .8rem; padding: 0; margin: .6rem 0 1.4rem; list-style: none; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: .5rem;
  padding: .7rem .9rem; max-width: none; content-visibility: auto;
  contain-intrinsic-size: auto 14rem; }
.card h4 { margin: 0; font-size: 1.02rem; } .card p { margin: .2rem 0; font-size: .92rem; }
.card ul { margin: .3rem 0; padding-left: 1.1rem; font-size: .92rem; }
.card .meter { height: .35rem; background: var(--line); border-radius: .2rem; margin: .35rem 0; }
.card .meter span { display: block; height: 100%; background: var(--plus); border-radius: .2rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; margin: .5rem 0; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-size: .92rem; min-width: 16rem; }
summary { cursor: pointer; color: var(--link); margin: .5rem 0; }
th, td { padding: .25rem .9rem .25rem 0; text-align: left; border-bottom: 1px solid var(--line);
  vertical-align: top; }
td.number, th.number { text-align: right; white-space: nowrap; }
figure { margin: 1rem 0; } figure svg { display: block; width: 100%; max-width: 36rem; }
figcaption { font-size: .92rem; max-width: 44rem; }
@media print { nav, .tools { display: none; } body { background: none; max-width: none;
  font-size: 10pt; padding: 0; } h2, h3 { break-after: avoid; }
  figure, tr, .card, .glance { break-inside: avoid; } .wide { overflow: visible; }
  .cards { grid-template-columns: 1fr 1fr; } .card { content-visibility: visible; }
  details::details-content { content-visibility: visible; } }
"""

SCRIPT = """
"use strict";
const tools = document.querySelector(".tools");
if (tools) {
  tools.hidden = false;
  const [find, order] = [tools.querySelector("input"), tools.querySelector("select")];
  const lists = [...document.querySelectorAll(".cards")];
  const cards = [...document.querySelectorAll(".card")];
  cards.forEach((card, place) => { card.dataset.place = place; });
  const by = {
    plan: (a, b) => a.dataset.place - b.dataset.place,
    doubt: (a, b) => a.dataset.probability - b.dataset.probability,
    sure: (a, b) => b.dataset.probability - a.dataset.probability,
  };
  find.addEventListener("input", () => {
    const wanted = find.value.trim().toLowerCase();
    for (const card of cards)
      card.hidden = !card.querySelector("h4").textContent.toLowerCase().includes(wanted);
  });
  order.addEventListener("change", () => {
    for (const list of lists)
      list.append(...[...list.children].sort(by[order.value]));
  });
}
"""
