// Makes elements of the summary. Everything in it may have been written by strangers: it becomes text nodes and nothing else.

import { mayOperate } from "./session.js";

const LEVELS = ["good", "attention", "bad", "unknown"];
// A mark beside the colour: colour alone does not reach everyone.
const MARKS = { good: "✓", attention: "!", bad: "✗", unknown: "?" };
const SVG = "http://www.w3.org/2000/svg";

// An element with children; texts become text nodes.
export function make(name, attributes, ...children) {
  return fill(document.createElement(name), attributes, children);
}

export function draw(name, attributes, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

function fill(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes ?? {})) {
    element.setAttribute(key, value);
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined) {
      element.append(child instanceof Node ? child : String(child));
    }
  }
  return element;
}

export const plain = (name, text) => make(name, {}, text);

const list = (value) => (Array.isArray(value) ? value : []);
const level = (value) => (LEVELS.includes(value) ? value : "unknown");
const word = (value) => (value === null || value === undefined || value === "" ? "-" : String(value));

// A moment without what repeats: the time of day, with the date where it is not today.
function moment(text) {
  const today = new Date().toISOString().slice(0, 10);
  const [date, time] = word(text).split("T");
  if (time === undefined) {
    return date;
  }
  const clock = time.slice(0, 8);
  return date === today ? clock : `${date} ${clock}`;
}

// A link to a page of a function; only http, whatever the data says.
function link(address, text) {
  let target;
  try {
    target = new URL(address);
  } catch {
    return document.createTextNode(text);
  }
  if (target.protocol !== "http:" && target.protocol !== "https:") {
    return document.createTextNode(text);
  }
  return make("a", { href: target.href, rel: "noreferrer" }, text);
}

// Draws the sections that have changed. One that fails says so and leaves the others.
export function show(summary, changed) {
  for (const [name, id, render] of SECTIONS) {
    const place = document.getElementById(id);
    if (!place || !changed.includes(name)) {
      continue;
    }
    const next = place.cloneNode(false);
    try {
      render(next, summary);
    } catch (error) {
      next.replaceChildren(plain("p", `this part cannot be shown: ${error.message}`));
    }
    update(place, next);
  }
}

// Makes an element equal to another one. What is equal already stays: with it focus, selection and what a screen reader has read.
function update(place, next) {
  for (const { name, value } of next.attributes) {
    if (place.getAttribute(name) !== value) {
      place.setAttribute(name, value);
    }
  }
  for (const { name } of [...place.attributes]) {
    if (!next.hasAttribute(name)) {
      place.removeAttribute(name);
    }
  }
  const children = [...next.childNodes];
  children.forEach((child, index) => {
    const own = place.childNodes[index];
    if (own === undefined) {
      place.append(child);
    } else if (own.nodeName !== child.nodeName) {
      own.replaceWith(child);
    } else if (child instanceof Element) {
      update(own, child);
    } else if (own.data !== child.data) {
      own.data = child.data;
    }
  });
  while (place.childNodes.length > children.length) {
    place.lastChild.remove();
  }
}

const SECTIONS = [
  ["headline", "headline", headline],
  ["headline", "needs", needs],
  ["functions", "functions", functions],
  ["functions", "picture", picture],
  ["alarms", "alarms", alarms],
  ["peersDown", "peers", peers],
  ["changes", "changes", changes],
];

function headline(place, { headline }) {
  const how = level(headline.level);
  place.className = `headline ${how}`;
  place.textContent = `${MARKS[how]} ${word(headline.text)}`;
  document.title = `${MARKS[how]} Signalbox console`;
}

function needs(place, { headline }) {
  const rows = list(headline.needs).map((need) => make("li", {},
    plain("p", word(need.text)),
    make("p", {}, word(need.remedy), " ", plain("code", word(need.command))),
    list(need.affects).length > 0
      ? make("p", { class: "soft" }, `follows from it: ${list(need.affects).join(", ")}`)
      : null,
  ));
  if (headline.more > 0) {
    rows.push(plain("li", `and ${headline.more} more`));
  }
  place.replaceChildren(...rows);
}

// A table whose rows become cards on a narrow screen. A cell is a text or a node.
export function table(caption, columns, rows, numbers = []) {
  if (rows.length === 0) {
    return plain("p", "none");
  }
  const head = make("tr", {}, columns.map((name) => make("th", { scope: "col" }, name)));
  const body = rows.map((cells) => make("tr", {}, cells.map((cell, index) => {
    const attributes = { "data-label": columns[index] };
    if (numbers.includes(index)) {
      attributes.class = "number";
    }
    // One child for a cell: on a narrow screen it stands beside its label.
    return make("td", attributes, make("span", {}, cell));
  })));
  return make("table", { class: "stack" }, make("caption", {}, caption), make("thead", {}, head), make("tbody", {}, body));
}

function more(place, count) {
  if (count > 0) {
    place.append(plain("p", `and ${count} more: the function's own page has them`));
  }
}

const seconds = (value) => {
  if (typeof value !== "number") {
    return "-";
  }
  return value < 0.001 ? `${Math.round(value * 1e6)} µs` : `${(value * 1000).toPrecision(3)} ms`;
};
const share = (value) => (typeof value === "number" ? `${(value * 100).toFixed(value < 0.1 ? 2 : 0)} %` : "-");
const rate = (figures) => (figures ? `${figures.perSecond} ${word(figures.unit)}/s` : "-");

// A value, and beside it what it was an hour ago.
function beside(now, before, text) {
  const nodes = [text(now)];
  if (before) {
    nodes.push(make("span", { class: "soft" }, ` (${text(before)} an hour ago)`));
  }
  return make("span", {}, nodes);
}

function functions(place, summary) {
  const rows = list(summary.functions).map((row) => {
    const how = level(row.level);
    const { figures, figuresHourAgo: before } = row;
    const name = row.name === row.function ? row.name : `${row.name} (${row.function})`;
    return [
      link(`http://${row.admin}/`, name),
      make("span", {}, make("span", { class: `state ${how}` }, `${MARKS[how]} ${word(row.state)}`),
        row.since ? make("span", { class: "soft" }, ` since ${moment(row.since)}`) : null),
      beside(figures, before, rate),
      beside(figures?.failureShare, before?.failureShare, share),
      make("span", {}, seconds(figures?.p99Seconds),
        typeof figures?.p99PeersSeconds === "number" ? `, peers ${seconds(figures.p99PeersSeconds)}` : null),
      registered(row),
      dependencies(row),
      configuration(row.configuration),
      make("span", {}, word(row.version), make("span", { class: "soft" }, up(row))),
    ];
  });
  const columns = ["function", "state", "load", "failures", "p99", "registered", "needs", "file in effect", "release"];
  place.replaceChildren(table("times in UTC; load, failures and p99 over the last 10 s", columns, rows, [2, 3, 4]));
}

const up = (row) => (row.upSince ? `, up since ${moment(row.upSince)}` : `, last answer ${moment(row.lastAnswer)}`);

function registered(row) {
  const one = row.registered;
  if (!one) {
    return "-";
  }
  return one.state === "good" ? `${word(one.detail)} since ${moment(one.since)}` : `NOT since ${moment(one.since)}: ${word(one.lastError)}`;
}

function dependencies(row) {
  const all = list(row.dependencies).filter((one) => one?.name !== "registration");
  if (all.length === 0) {
    return "-";
  }
  const items = all.slice(0, 20).map((one) => {
    const fails = one.state === "failing";
    const error = fails ? `: ${word(one.lastError)}` : "";
    return plain("li", `${fails ? MARKS.bad : MARKS.good} ${word(one.name)}, last success ${moment(one.lastSuccess)}${error}`);
  });
  const rest = all.length - items.length + (row.moreDependencies ?? 0);
  return make("ul", {}, items, rest > 0 ? plain("li", `and ${rest} more`) : null);
}

function configuration(one) {
  if (!one || one.inEffect === null || one.inEffect === undefined) {
    return "-";
  }
  return one.inEffect ? "yes" : `NO: ${word(one.detail)}`;
}

function alarms(place, { alarms }) {
  const rows = list(alarms.active).map((alarm) => [
    word(alarm.severity), word(alarm.function), `${word(alarm.number)} ${word(alarm.name)}`, word(alarm.about),
    moment(alarm.since), word(alarm.detail), word(alarm.advice), acknowledgement(alarm),
  ]);
  const columns = ["severity", "function", "alarm", "about", "since", "detail", "advice", "acknowledged"];
  place.replaceChildren(table("active alarms", columns, rows));
  more(place, alarms.more);
}

// Who has acknowledged it; for an operator, a button, whose clicks app.js takes.
function acknowledgement(alarm) {
  const one = alarm.acknowledged;
  const words = one ? `by ${word(one.by)} at ${moment(one.at)}: ${word(one.comment)} ` : "";
  const button = make("button", { type: "button", class: "plain", "data-alarm": word(alarm.key), "data-set": one ? "no" : "yes",
    "data-right": "mayOperate" }, one ? "Withdraw" : "Acknowledge");
  button.hidden = !mayOperate();
  return make("span", {}, words, button);
}

function peers(place, { peersDown }) {
  const rows = list(peersDown.peers).map((peer) => [
    word(peer.function), word(peer.peer), moment(peer.since), word(peer.reason), moment(peer.lastSuccess),
  ]);
  place.replaceChildren(table("as their functions see them", ["function", "peer", "down since", "reason", "last success"], rows));
  more(place, peersDown.more);
}

function changes(place, { changes }) {
  const rows = list(changes.entries).map((entry) => [
    moment(entry.time), list(entry.functions).join(", "), word(entry.change), word(entry.about), word(entry.detail), word(entry.by),
  ]);
  place.replaceChildren(table("the newest first", ["time", "function", "change", "about", "detail", "by"], rows));
  more(place, changes.more);
}

// Fixed lanes by 3GPP role, so that nothing moves between updates: who serves others above, who asks below.
const LANES = [["nrf"], ["bsf", "pcf"], ["scp"], ["dsr"], ["ipfe", "stp"]];
const BOX = { width: 150, height: 44, gap: 30, lane: 96 };

function picture(place, { functions }) {
  const rows = list(functions).slice(0, 64);
  const spots = new Map();
  const lanes = LANES.map((kinds) => rows.filter((row) => kinds.includes(row.function)));
  lanes.push(rows.filter((row) => !LANES.flat().includes(row.function)));
  const filled = lanes.filter((lane) => lane.length > 0);
  filled.forEach((lane, y) => lane.forEach((row, x) => {
    spots.set(row.name, { x: 10 + x * (BOX.width + BOX.gap), y: 10 + y * BOX.lane, row });
  }));
  const words = [];
  const edges = rows.flatMap((row) => targets(row, rows).map(([target, state]) => {
    words.push(`${row.name} to ${target.name}: ${state}`);
    return edge(spots.get(row.name), spots.get(target.name), state);
  }));
  const boxes = [...spots.values()].map(({ x, y, row }) => draw("g", {},
    draw("rect", { class: `box ${level(row.level)}`, x, y, rx: 6, width: BOX.width, height: BOX.height }),
    draw("text", { x: x + 10, y: y + 18 }, `${MARKS[level(row.level)]} ${row.name.slice(0, 18)}`),
    draw("text", { x: x + 10, y: y + 35 }, rate(row.figures).slice(0, 22)),
  ));
  const columns = Math.max(1, ...filled.map((lane) => lane.length));
  const size = [20 + columns * (BOX.width + BOX.gap), Math.max(1, filled.length) * BOX.lane];
  const svg = draw("svg", {
    viewBox: `0 0 ${size[0]} ${size[1]}`, width: size[0], height: size[1], role: "img",
    "aria-label": "functions in lanes by role, with a line to each function they need",
  }, edges, boxes);
  const text = words.length === 0 ? "no function has asked another yet" : words.join("; ");
  place.replaceChildren(make("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "picture" }, svg), make("p", { class: "soft" }, text));
}

// The functions that one needs, by the kind its dependencies are named after.
function targets(row, rows) {
  const found = new Map();
  for (const one of list(row.dependencies)) {
    const name = word(one?.name).toLowerCase();
    const kind = name === "registration" ? "nrf" : ["nrf", "bsf", "pcf", "scp"].find((kind) => name.startsWith(kind));
    for (const target of rows.filter((other) => other.function === kind && other.name !== row.name)) {
      const state = one.state === "failing" || found.get(target) === "failing" ? "failing" : word(one.state);
      found.set(target, state);
    }
  }
  return [...found];
}

function edge(from, to, state) {
  const [x1, y1] = [from.x + BOX.width / 2, from.y + (from.y > to.y ? 0 : BOX.height)];
  const [x2, y2] = [to.x + BOX.width / 2, to.y + (from.y > to.y ? BOX.height : 0)];
  const kind = state === "failing" ? "failing" : state === "unused" ? "unused" : "good";
  // Beside the boxes between them, not behind.
  const bend = Math.abs(from.y - to.y) > BOX.lane ? BOX.width * 0.75 : 0;
  const path = `M${x1} ${y1} C${x1 + bend} ${(y1 + y2) / 2}, ${x2 + bend} ${(y1 + y2) / 2}, ${x2} ${y2}`;
  return draw("path", { class: `edge ${kind}`, d: path });
}

// What functions know of what was searched for.
export function found(answer) {
  const parts = list(answer.answers).map((one) => {
    const rows = list(one.rows);
    const content = one.error ? [plain("p", `not known: ${one.error}`)]
      : one.text ? [plain("pre", one.text)]
      : rows.length === 0 ? [plain("p", "nothing")]
      : rows.map((row) => plain("pre", typeof row === "string" ? row : JSON.stringify(row, null, 1)));
    return make("div", { class: "answer" },
      make("h3", {}, `${word(one.function)}: ${word(one.about)}`),
      content,
      one.more > 0 ? plain("p", `and ${one.more} more`) : null,
      make("p", { class: "soft" }, link(one.page, "its page"), ", by the command line: ", plain("code", word(one.command))),
    );
  });
  if (parts.length === 0) {
    parts.push(plain("p", "none of the functions that this console follows keeps such data"));
  }
  return make("div", {}, plain("p", `${word(answer.text)} is read as ${word(answer.what)}`), parts);
}
