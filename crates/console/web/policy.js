// The policy projects of a PCF: what is in effect, what a reload would change, and what is decided for a subscriber.

import { changes } from "./difference.js";
import { ask, begin } from "./session.js";
import { make, plain, table } from "./view.js";

const byId = (id) => document.getElementById(id);
const list = (value) => (Array.isArray(value) ? value : []);
const word = (value) => (value === null || value === undefined || value === "" ? "-" : String(value));

const chosen = () => ({ function: byId("function").value, service: byId("service").value });

// PCF and service stand in the address, which can be sent; a subscriber does not.
async function show() {
  const query = new URLSearchParams(chosen());
  history.replaceState(null, "", `#${query}`);
  byId("command").textContent = `signalbox pcf project ${chosen().service}`;
  byId("said").textContent = "asking";
  for (const id of ["projects", "draft", "files", "blocks", "folder", "explain-said"]) {
    byId(id).replaceChildren();
  }
  try {
    const shown = await ask("GET", `/api/v1/policy?${query}`);
    byId("said").textContent = "";
    draw(shown);
  } catch (error) {
    byId("said").textContent = error.message;
  }
}

function draw({ function: name, projects, project }) {
  const rows = list(projects).map((one) => [
    word(one.service), word(one.name), word(one.description), one.builtIn ? "built in" : "of the settings", word(one.blocks),
  ]);
  byId("projects").replaceChildren(table(`projects of ${name}`, ["service", "project", "description", "from", "blocks"], rows, [4]));
  const files = list(project?.files);
  byId("files").replaceChildren(...files.flatMap((file) => [plain("h3", word(file.name)), block(word(file.text), word(file.name))]));
  const folder = project?.folder;
  if (!folder) {
    byId("folder").textContent = "The project is built in: the settings name no folder.";
    return;
  }
  if (!folder.differs) {
    byId("folder").textContent = "✓ The folder has what is in effect.";
    return;
  }
  byId("folder").textContent = folder.mistakes ? "✗ The folder has another project, which a reload refuses:"
    : "! The folder has another project; a reload brings it into effect.";
  const parts = folder.mistakes ? [block(word(folder.mistakes), "mistakes")] : [];
  const names = new Set([...files, ...list(folder.files)].map((file) => file.name));
  const textOf = (all, name) => list(all).find((file) => file.name === name)?.text ?? "";
  for (const name of names) {
    const lines = changes(textOf(files, name), textOf(folder.files, name));
    if (lines.length > 0) {
      parts.push(plain("h3", word(name)), block(lines.join("\n"), `changes of ${word(name)}`));
    }
  }
  const target = `/configuration#${new URLSearchParams({ function: name })}`;
  parts.push(make("p", { "data-right": "mayOperate" }, make("a", { href: target }, "Reload it on the page Configuration")));
  byId("draft").replaceChildren(...parts);
}

const block = (text, name) => make("pre", { tabindex: "0", role: "region", "aria-label": name }, text);

async function explain() {
  const { function: name } = chosen();
  const subscriber = byId("subscriber").value.trim();
  byId("explain-said").textContent = "asking";
  byId("blocks").replaceChildren();
  try {
    const got = await ask("GET", `/api/v1/policy/explain?${new URLSearchParams({ function: name, subscriber })}`);
    const rows = list(got.blocks).map((one) => [
      word(one.association), word(one.project), word(one.block), word(one.kind), word(one.decided), word(one.outcome), word(one.reads),
    ]);
    byId("explain-said").textContent = rows.length === 0 ? `${name} has no association of ${subscriber}` : "";
    const columns = ["association", "project", "block", "kind", "decided", "outcome", "reads"];
    byId("blocks").replaceChildren(table("the project in effect, on what is stored", columns, rows),
      got.more > 0 ? plain("p", `and ${got.more} more`) : "");
  } catch (error) {
    byId("explain-said").textContent = error.message;
  }
}

async function start() {
  await begin();
  const summary = await ask("GET", "/api/v1/summary");
  const names = list(summary.functions).filter((row) => row.function === "pcf").map((row) => row.name);
  byId("function").append(...names.map((name) => make("option", { value: name }, name)));
  if (names.length === 0) {
    byId("said").textContent = "this console follows no PCF";
    return;
  }
  const asked = new URLSearchParams(location.hash.slice(1));
  for (const id of ["function", "service"]) {
    if ([...byId(id).options].some((option) => option.value === asked.get(id))) {
      byId(id).value = asked.get(id);
    }
  }
  await show();
}

byId("policy-form").addEventListener("submit", (event) => {
  event.preventDefault();
  show();
});
byId("explain-form").addEventListener("submit", (event) => {
  event.preventDefault();
  explain();
});
start().catch((error) => {
  byId("said").textContent = error.message;
});
