// The page of a followed subscriber: begins and ends it, and draws its messages. The identity stands in the fragment of the
// address, which can be sent and reaches no server. Everything shown may have been written by strangers: text nodes only.

import { ask as send, begin } from "./session.js";
import { Ladder } from "./ladder.js";
import { plain } from "./view.js";

const PERIOD_MS = 2000;

const byId = (id) => document.getElementById(id);
const list = (value) => (Array.isArray(value) ? value : []);

let identity = "";
// What the functions had when the arrows were received, in the console's words.
let known = "";
let arrows = [];
let asking = false;
// The message that is shown.
let chosen = {};

// Asks the console; the answer, or null after saying why there is none.
async function ask(method, query, below = "") {
  try {
    return await send(method, `/api/v1/follow${below}?${new URLSearchParams(query)}`);
  } catch (error) {
    byId("said").textContent = error.message;
  }
  return null;
}

async function change(method, query) {
  const done = await ask(method, query);
  if (done === null) {
    return;
  }
  const all = list(done.functions);
  const refused = all.filter((one) => !one.done);
  const verb = method === "PUT" ? "follow" : "no longer follow";
  const why = refused.map((one) => `${one.function}: ${one.why}`).join("; ");
  byId("said").textContent = `${all.length - refused.length} of ${all.length} functions ${verb} ${query.identity}. ${why}`;
  await refresh();
}

async function refresh() {
  if (identity === "" || document.hidden || asking) {
    return;
  }
  asking = true;
  const asked = identity;
  const shown = await ask("GET", { identity: asked, outline: true, known });
  asking = false;
  if (shown === null || asked !== identity || shown.unchanged === true) {
    return;
  }
  known = String(shown.state);
  arrows = list(shown.arrows);
  byId("functions").replaceChildren(...list(shown.functions).map(line));
  show();
}

const show = () => ladder.show(arrows, byId("filter").value.trim());

// How one function is doing.
function line(one) {
  const state = one.following ? "follows" : "does not follow";
  const more = one.notShown > 0 ? `, ${one.notShown} more: signalbox follow` : "";
  const text = one.failure ? `cannot be asked: ${one.failure}` : `${state}, ${one.messages} messages${more}`;
  return plain("li", `${one.function} ${text}`);
}

// Asks for a message with all its content, and shows it as text.
async function open(arrow) {
  const { function: name, number } = arrow.message ?? {};
  byId("said").textContent = "";
  const got = await ask("GET", { identity, function: name, number }, "/message");
  if (got === null) {
    return;
  }
  const message = got.message ?? {};
  const found = message.foundBy ? `found by ${message.foundBy}` : "sent for a message of the subscriber";
  byId("message-about").textContent = `${arrow.from} to ${arrow.to}, ${message.time}, ${message.from} > ${message.to}, ${found}`;
  const headers = list(message.headers).map(([name, value]) => `${name}: ${value}`);
  const parts = [String(message.title ?? ""), headers.join("\n"), indented(message.text ?? ""), message.hex ?? ""];
  chosen = message;
  byId("why").hidden = message.kind !== "request";
  const place = byId("message");
  place.textContent = parts.filter((part) => part !== "").join("\n\n");
  place.hidden = false;
  place.focus();
}

// JSON with line breaks; anything else as it is.
function indented(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

// Takes the identity of the address or of the form.
function choose(text) {
  if (text !== identity) {
    known = "";
  }
  identity = text;
  byId("identity").value = text;
  byId("command").textContent = `signalbox follow '${text.replaceAll("'", "'\\''")}'`;
  const fragment = `#${encodeURIComponent(text)}`;
  if (location.hash !== fragment) {
    history.replaceState(null, "", fragment);
  }
}

function ofAddress() {
  try {
    return decodeURIComponent(location.hash.slice(1));
  } catch {
    return "";
  }
}

const ladder = new Ladder(byId("ladder"), open);
byId("filter").addEventListener("input", show);
byId("follow-form").addEventListener("submit", (event) => {
  event.preventDefault();
  choose(byId("identity").value.trim());
  change("PUT", { identity, for: byId("period").value });
});
byId("show").addEventListener("click", () => {
  choose(byId("identity").value.trim());
  refresh();
});
byId("stop").addEventListener("click", () => {
  choose(byId("identity").value.trim());
  change("DELETE", { identity });
});
// The page that explains gets the message by the memory of this tab: it stands in no address.
byId("why").addEventListener("click", () => {
  const headers = list(chosen.headers).map(([name, value]) => `${name}: ${value}`).join("\n");
  const text = chosen.interface === "diameter" ? String(chosen.hex ?? "") : `${headers}\n\n${chosen.text ?? ""}`;
  sessionStorage.setItem("why", text);
  location.assign("/why");
});
addEventListener("hashchange", () => {
  choose(ofAddress());
  refresh();
});
document.addEventListener("visibilitychange", refresh);
setInterval(refresh, PERIOD_MS);
begin().catch(() => {});
if (ofAddress() !== "") {
  choose(ofAddress());
  refresh();
}
