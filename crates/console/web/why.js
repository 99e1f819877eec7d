// Explains a message: the steps of the planner as sentences, every candidate with its outcome. Everything shown may have been
// written by strangers: text nodes only.

import { ask, begin } from "./session.js";
import { make, plain, table } from "./view.js";

const byId = (id) => document.getElementById(id);
const list = (value) => (Array.isArray(value) ? value : []);

async function explain() {
  const place = byId("answers");
  byId("said").textContent = "asking";
  const question = { text: byId("message").value, function: byId("function").value, peer: byId("peer").value };
  try {
    const said = await ask("POST", "/api/v1/why", question);
    byId("said").textContent = [said.about, ...list(said.notes)].join(" ");
    const answers = list(said.answers).map(shown);
    place.replaceChildren(...(answers.length > 0 ? answers
      : [plain("p", "none of the functions that this console follows would get this message")]));
  } catch (error) {
    byId("said").textContent = error.message;
    place.replaceChildren();
  }
}

function shown(answer) {
  const head = plain("h3", `${answer.function}`);
  const command = make("p", { class: "soft" }, "by the command line: ", plain("code", String(answer.command)));
  if (answer.error) {
    return make("div", { class: "answer" }, head, plain("p", `not explained: ${answer.error}`), command);
  }
  const rows = list(answer.candidates).map((one) => [
    `${one.chosen ? "✓ " : ""}${one.who}`, String(one.detail), String(one.outcome),
  ]);
  const more = answer.moreCandidates > 0 ? plain("p", `and ${answer.moreCandidates} more`) : null;
  return make("div", { class: "answer" }, head,
    make("p", {}, plain("strong", String(answer.decision))),
    make("ol", {}, list(answer.steps).map((step) => plain("li", String(step)))),
    table("candidates", ["candidate", "profile or group", "outcome"], rows), more,
    make("details", {}, plain("summary", "as JSON"), plain("pre", JSON.stringify(answer.answer, null, 1))),
    command);
}

async function functions() {
  const summary = await ask("GET", "/api/v1/summary");
  const names = list(summary.functions).filter((row) => ["scp", "dsr", "nrf"].includes(row.function));
  byId("function").append(...names.map((row) => make("option", { value: row.name }, row.name)));
}

byId("why-form").addEventListener("submit", (event) => {
  event.preventDefault();
  explain();
});
begin().then(functions).catch((error) => {
  byId("said").textContent = error.message;
});
// A followed message, from the page that shows it.
const followed = sessionStorage.getItem("why");
if (followed !== null) {
  sessionStorage.removeItem("why");
  byId("message").value = followed;
  explain();
}
