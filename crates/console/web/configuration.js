// The configuration in effect in a function, beside that of another one; an operator has it reload its file.

import { ask, begin } from "./session.js";
import { make, plain, table } from "./view.js";

const byId = (id) => document.getElementById(id);
const list = (value) => (Array.isArray(value) ? value : []);
let last = null;

// The function stands in the address, which can be sent.
async function show() {
  const query = { function: byId("function").value, beside: byId("beside").value };
  history.replaceState(null, "", `#${new URLSearchParams(query)}`);
  byId("command").textContent = `signalbox ${query.function} config`;
  byId("said").textContent = "asking";
  byId("outcome").replaceChildren();
  try {
    last = await ask("GET", `/api/v1/configuration?${new URLSearchParams(query)}`);
    byId("said").textContent = "";
    draw();
  } catch (error) {
    last = null;
    byId("said").textContent = error.message;
    byId("settings").replaceChildren();
    byId("file").textContent = "";
  }
}

function draw() {
  if (last === null) {
    return;
  }
  const file = last.file;
  byId("file").textContent = !file || file.inEffect === null || file.inEffect === undefined ? ""
    : file.inEffect ? `The file ${file.file} is in effect.` : `The file ${file.file} is NOT in effect: ${file.detail}`;
  const wanted = byId("filter").value.toLowerCase();
  const isCompared = last.beside !== "";
  const fits = (row) => [row.key, row.value, row.beside].join(" ").toLowerCase().includes(wanted);
  const word = (value) => (value === null || value === undefined ? "absent" : String(value));
  // Where two are compared, what differs comes first.
  const rows = list(last.rows).filter(fits).sort((a, b) => Number(b.differs === true) - Number(a.differs === true));
  const cells = rows.map((row) => (isCompared
    ? [`${row.differs ? "≠ " : ""}${row.key}`, word(row.value), word(row.beside)]
    : [row.key, word(row.value)]));
  const columns = isCompared ? ["setting", last.function, last.beside] : ["setting", "value"];
  const differing = list(last.rows).filter((row) => row.differs === true).length;
  const caption = isCompared ? `${differing} settings differ` : `${list(last.rows).length} settings`;
  const more = last.more > 0 ? plain("p", `and ${last.more} more`) : "";
  byId("settings").replaceChildren(table(caption, columns, cells), more);
}

async function reload() {
  const name = byId("function").value;
  if (!confirm(`Have ${name} reload its file?`)) {
    return;
  }
  byId("said").textContent = `${name} reloads`;
  try {
    const done = await ask("POST", `/api/v1/reload?${new URLSearchParams({ function: name })}`);
    await show();
    byId("said").textContent = done.done ? `${name} has reloaded its file` : `${name} refused the reload; it runs as before`;
    byId("outcome").replaceChildren(plain("pre", done.words || JSON.stringify(done.changed, null, 1)));
  } catch (error) {
    byId("said").textContent = error.message;
  }
}

async function start() {
  await begin();
  const summary = await ask("GET", "/api/v1/summary");
  const names = list(summary.functions).map((row) => row.name);
  const option = (name) => make("option", { value: name }, name);
  byId("function").append(...names.map(option));
  byId("beside").append(...names.map(option));
  const asked = new URLSearchParams(location.hash.slice(1));
  for (const id of ["function", "beside"]) {
    if (names.includes(asked.get(id))) {
      byId(id).value = asked.get(id);
    }
  }
  await show();
}

byId("configuration-form").addEventListener("submit", (event) => {
  event.preventDefault();
  show();
});
byId("filter").addEventListener("input", draw);
byId("reload").addEventListener("click", reload);
start().catch((error) => {
  byId("said").textContent = error.message;
});
