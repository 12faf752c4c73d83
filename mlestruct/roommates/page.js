"use strict";
/* Every form is sent to the server, whose answer is the page; a part that is new takes its place. */
const $ = id => document.getElementById(id);
const parts = page => page.querySelectorAll("[data-part]");
const seen = new Map([...parts(document)].map(part => [part.id, part.outerHTML]));

async function ask(path, body) {
  const token = location.pathname.split("/")[1];
  let found;
  try {
    const reply = await fetch(path, body === undefined ? {} :
      {method: "POST", headers: {"X-Mlestruct": token}, body: body});
    found = await reply.text();
    if (!found.includes("data-part")) throw {refused: found};
  } catch (error) {
    seen.delete("fault");
    $("fault").textContent = error.refused ??
      "The program does not answer. Start it again: everything is kept.";
    return;
  }
  const focus = document.activeElement.id;
  for (const part of parts(new DOMParser().parseFromString(found, "text/html"))) {
    if (seen.get(part.id) === part.outerHTML) continue;
    seen.set(part.id, part.outerHTML);
    $(part.id).replaceWith(part);
  }
  if (document.activeElement === document.body) ($("do") || $(focus))?.focus();
  watch();
}

const watch = () => { if ($("bar")) setTimeout(() => ask(""), 400); };

document.addEventListener("submit", event => {
  event.preventDefault();
  const form = event.target, pressed = event.submitter;
  const path = pressed?.getAttribute("formaction") ?? form.getAttribute("action");
  ask(path, new URLSearchParams(new FormData(form, pressed)));
});
document.addEventListener("change", event => {
  const field = event.target, file = field.files?.[0];
  if (field.name === "sheet" && field.value) field.form.requestSubmit();
  if (!file) return;
  $(`said-${field.id}`).textContent = "reading …";
  seen.delete("files");
  ask(`file?kind=${field.id}&name=${encodeURIComponent(file.name)}`, file);
});
watch();
