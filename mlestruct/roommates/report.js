// Searches and sorts the cards; without it the report says the same.
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
