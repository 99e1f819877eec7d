// The page of a followed subscriber: begins and ends it, and draws its messages. The identity stands in the fragment of the
// address, which can be sent and reaches no server. Everything shown may have been written by strangers: text nodes only.

import { ask as send, begin } from "./session.js";
import { draw, make, plain } from "./view.js";

const PERIOD_MS = 2000;
// Rows of the ladder: more are in `signalbox follow`.
const MOST_ROWS = 1000;
const LANE = 90;

const byId = (id) => document.getElementById(id);
const list = (value) => (Array.isArray(value) ? value : []);

let identity = "";
// What was drawn last, so that an equal ladder keeps focus and selection.
let drawn = "";
let asking = false;
// The message that is shown.
let chosen = {};

// Asks the console; the answer, or null after saying why there is none.
async function ask(method, query) {
  try {
    return await send(method, `/api/v1/follow?${new URLSearchParams(query)}`);
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
  const shown = await ask("GET", { identity: asked });
  asking = false;
  if (shown === null || asked !== identity) {
    return;
  }
  byId("functions").replaceChildren(...list(shown.functions).map(line));
  const arrows = list(shown.arrows);
  const last = arrows.at(-1)?.message ?? {};
  const mark = `${asked} ${arrows.length} ${last.function} ${last.number}`;
  if (mark !== drawn) {
    drawn = mark;
    byId("ladder").replaceChildren(ladder(arrows));
  }
}

// How one function is doing.
function line(one) {
  const state = one.following ? "follows" : "does not follow";
  const more = one.notShown > 0 ? `, ${one.notShown} more: signalbox follow` : "";
  const text = one.failure ? `cannot be asked: ${one.failure}` : `${state}, ${one.messages} messages${more}`;
  return plain("li", `${one.function} ${text}`);
}

function ladder(arrows) {
  if (arrows.length === 0) {
    return plain("p", "none yet");
  }
  const lanes = [...new Set(arrows.flatMap((arrow) => [String(arrow.from), String(arrow.to)]))];
  const shown = arrows.slice(-MOST_ROWS);
  const head = make("tr", {}, ["Time (UTC)", "Lanes", "Message"].map((name) => make("th", { scope: "col" }, name)));
  const table = make("table", { class: "ladder" }, make("thead", {}, head));
  const names = make("tr", {}, make("td", {}), make("td", {}, heads(lanes)), make("td", {}));
  table.append(make("tbody", {}, names, shown.map((arrow) => row(arrow, lanes))));
  const hidden = arrows.length - shown.length;
  const note = hidden > 0 ? plain("p", `${hidden} earlier messages are not drawn: signalbox follow has all`) : null;
  return make("div", {}, note, table);
}

const middle = (lane) => lane * LANE + LANE / 2;

function heads(lanes) {
  const texts = lanes.map((name, at) => {
    const short = name.length > 13 ? `${name.slice(0, 12)}…` : name;
    return draw("text", { x: middle(at), y: 14, "text-anchor": "middle" }, draw("title", {}, name), short);
  });
  return draw("svg", { width: lanes.length * LANE, height: 20, role: "presentation" }, texts);
}

function row(arrow, lanes) {
  const message = arrow.message ?? {};
  const from = lanes.indexOf(String(arrow.from));
  const to = lanes.indexOf(String(arrow.to));
  const lines = lanes.map((_, at) => draw("line", { x1: middle(at), y1: 0, x2: middle(at), y2: 24, class: "lane" }));
  const back = to < from ? 7 : -7;
  const kind = message.isFailure ? "rung failed" : "rung";
  const rung = draw("path", { class: kind, d: `M${middle(from)} 12H${middle(to)}m${back} -4l${-back} 4l${back} 4` });
  const picture = draw("svg", { width: lanes.length * LANE, height: 24, role: "img" },
    draw("title", {}, `${arrow.from} to ${arrow.to}`), lines, rung);
  const button = make("button", { type: "button", class: "plain" }, `${message.isFailure ? "✗ " : ""}${message.title}`);
  button.addEventListener("click", () => open(arrow));
  const time = String(message.time ?? "").slice(11, 26);
  return make("tr", {}, make("td", { class: "number" }, time), make("td", {}, picture),
    make("td", {}, button, arrow.clocksDiffer ? " clocks differ" : ""));
}

// Shows a message as text.
function open(arrow) {
  const message = arrow.message ?? {};
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
