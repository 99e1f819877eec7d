// What functions hold of a subscriber: bindings, policy associations, quotas, sessions. The identity stands in the fragment of the
// address, which can be sent and reaches no server. Everything shown may have been written by strangers: text nodes only.

import { ask, begin } from "./session.js";
import { make, plain, table } from "./view.js";

const byId = (id) => document.getElementById(id);
const list = (value) => (Array.isArray(value) ? value : []);
// Names and values of one record; more stand in its JSON.
const MOST_VALUES = 200;

// The leaves of a record: names with dots, and their values.
function leaves(value, name, out) {
  if (value !== null && typeof value === "object" && Object.keys(value).length > 0) {
    for (const [key, inner] of Object.entries(value)) {
      leaves(inner, name === "" ? key : `${name}.${key}`, out);
    }
  } else {
    out.push([name, typeof value === "string" ? value : JSON.stringify(value)]);
  }
  return out;
}

function record(row, number) {
  if (typeof row === "string") {
    return plain("p", row);
  }
  const all = leaves(row, "", []);
  const more = all.length > MOST_VALUES ? plain("p", `and ${all.length - MOST_VALUES} more values`) : null;
  return make("div", { class: "wide" }, table(`record ${number + 1}`, ["name", "value"], all.slice(0, MOST_VALUES)), more,
    make("details", {}, plain("summary", "as JSON"), plain("pre", JSON.stringify(row, null, 1))));
}

function shown(answer) {
  const rows = list(answer.rows);
  const content = answer.error ? [plain("p", `not known: ${answer.error}`)]
    : answer.text ? [plain("pre", answer.text)]
    : rows.length === 0 ? [plain("p", "nothing")]
    : rows.map(record);
  return make("div", { class: "answer" }, plain("h3", `${answer.function}: ${answer.about}`), content,
    answer.more > 0 ? plain("p", `and ${answer.more} more`) : null,
    make("p", { class: "soft" }, "by the command line: ", plain("code", String(answer.command))));
}

async function show() {
  const identity = byId("identity").value.trim();
  history.replaceState(null, "", `#${encodeURIComponent(identity)}`);
  byId("said").textContent = "asking";
  try {
    const found = await ask("GET", `/api/v1/find?text=${encodeURIComponent(identity)}`);
    byId("said").textContent = `${found.text} is read as ${found.what}`;
    byId("answers").replaceChildren(...list(found.answers).map(shown));
    const link = make("a", { href: `/follow#${encodeURIComponent(identity)}` }, "its messages in all functions");
    byId("follow").replaceChildren(link);
    byId("follow").hidden = false;
  } catch (error) {
    byId("said").textContent = error.message;
    byId("answers").replaceChildren();
    byId("follow").hidden = true;
  }
}

function ofAddress() {
  try {
    return decodeURIComponent(location.hash.slice(1));
  } catch {
    return "";
  }
}

function take() {
  if (ofAddress() !== "") {
    byId("identity").value = ofAddress();
    show();
  }
}

byId("sessions-form").addEventListener("submit", (event) => {
  event.preventDefault();
  show();
});
addEventListener("hashchange", take);
begin().catch((error) => {
  byId("said").textContent = error.message;
});
take();
