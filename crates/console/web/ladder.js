// The ladder of a followed subscriber: a row for each message, of which those in sight and some around them are elements. So ten
// thousand messages cost what a hundred cost. Everything shown may have been written by strangers: text nodes only.

import { draw, make, plain } from "./view.js";

// Pixels of a row, as style.css has them.
const ROW = 26;
// Rows above and below those in sight, so that the next one by keyboard is there.
const SPARE = 20;
const LANE = 90;

const middle = (lane) => lane * LANE + LANE / 2;
const named = (arrow) => [String(arrow.from), String(arrow.to)];
const mark = (arrow) => JSON.stringify([named(arrow), arrow.clocksDiffer, arrow.message?.function, arrow.message?.number]);
const text = (arrow) => [arrow.from, arrow.to, arrow.message?.title, arrow.message?.time].join(" ").toLowerCase();

export class Ladder {
  // `place` scrolls; `open` gets the arrow whose message is chosen.
  constructor(place, open) {
    this.place = place;
    this.open = open;
    this.arrows = [];
    this.lanes = [];
    this.shown = [];
    this.rows = new Map();
    this.above = space();
    this.below = space();
    let isDue = false;
    const draws = () => {
      if (!isDue) {
        isDue = true;
        requestAnimationFrame(() => {
          isDue = false;
          this.draw();
        });
      }
    };
    place.addEventListener("scroll", draws);
    addEventListener("resize", draws);
  }

  // Shows these, those alone that have a text in them. Rows that are the same stay: with them focus and selection.
  show(arrows, wanted) {
    const lanes = [...new Set(arrows.flatMap(named))];
    const isAtEnd = this.shown.length > 0 && this.place.scrollTop > 0
      && this.place.scrollTop + this.place.clientHeight >= this.place.scrollHeight - ROW;
    this.arrows = arrows;
    this.shown = wanted === "" ? arrows : arrows.filter((arrow) => text(arrow).includes(wanted.toLowerCase()));
    if (this.table === undefined || lanes.join("\n") !== this.lanes.join("\n")) {
      this.lanes = lanes;
      this.begin();
    }
    this.table.hidden = this.shown.length === 0;
    this.table.setAttribute("aria-rowcount", this.shown.length + 2);
    this.none.hidden = this.shown.length > 0;
    this.none.textContent = arrows.length === 0 ? "none yet" : `none of ${arrows.length} messages has this text`;
    this.draw();
    if (isAtEnd) {
      this.place.scrollTop = this.place.scrollHeight;
    }
  }

  // An empty table with the heads of the lanes.
  begin() {
    const head = make("tr", { "aria-rowindex": 1 }, ["Time (UTC)", "Lanes", "Message"].map((name) => make("th", { scope: "col" }, name)));
    const names = make("tr", { "aria-rowindex": 2 }, make("td", {}), make("td", {}, heads(this.lanes)), make("td", {}));
    this.rows.clear();
    this.body = make("tbody", {}, this.above, this.below);
    this.none = plain("p", "none yet");
    this.table = make("table", { class: "ladder" }, make("thead", {}, head, names), this.body);
    this.place.replaceChildren(this.none, this.table);
  }

  // Makes the rows in sight, and removes the others.
  draw() {
    const { scrollTop, clientHeight } = this.place;
    const count = this.shown.length;
    const first = Math.max(0, Math.min(count, Math.floor(scrollTop / ROW)) - SPARE);
    const end = Math.min(count, Math.ceil((scrollTop + clientHeight) / ROW) + SPARE);
    for (const [at, { element, key }] of this.rows) {
      if (at < first || at >= end || key !== mark(this.shown[at])) {
        // Focus is not lost where its row leaves.
        if (element.contains(document.activeElement)) {
          this.place.focus({ preventScroll: true });
        }
        element.remove();
        this.rows.delete(at);
      }
    }
    let next = this.above.nextSibling;
    for (let at = first; at < end; at += 1) {
      const known = this.rows.get(at);
      if (known !== undefined && known.element === next) {
        next = next.nextSibling;
      } else {
        const arrow = this.shown[at];
        const element = known?.element ?? this.row(arrow, at);
        this.rows.set(at, { element, key: mark(arrow) });
        this.body.insertBefore(element, next);
      }
    }
    stretch(this.above, first * ROW);
    stretch(this.below, (count - end) * ROW);
  }

  row(arrow, at) {
    const message = arrow.message ?? {};
    const button = make("button", { type: "button", class: "plain" }, `${message.isFailure ? "✗ " : ""}${message.title}`);
    button.addEventListener("click", () => this.open(arrow));
    const time = String(message.time ?? "").slice(11, 26);
    return make("tr", { "aria-rowindex": at + 3 }, make("td", { class: "number" }, time), make("td", {}, picture(arrow, this.lanes)),
      make("td", {}, button, arrow.clocksDiffer ? " clocks differ" : ""));
  }
}

// A row in place of those that are not drawn.
const space = () => make("tr", { class: "space", "aria-hidden": "true" }, make("td", { colspan: 3 }));

function stretch(row, pixels) {
  row.hidden = pixels === 0;
  row.firstChild.style.height = `${pixels}px`;
}

function heads(lanes) {
  const texts = lanes.map((name, at) => {
    const short = name.length > 13 ? `${name.slice(0, 12)}…` : name;
    return draw("text", { x: middle(at), y: 14, "text-anchor": "middle" }, draw("title", {}, name), short);
  });
  return draw("svg", { width: lanes.length * LANE, height: 20, role: "presentation" }, texts);
}

function picture(arrow, lanes) {
  const [from, to] = named(arrow).map((name) => lanes.indexOf(name));
  const lines = lanes.map((_, at) => draw("line", { x1: middle(at), y1: 0, x2: middle(at), y2: ROW, class: "lane" }));
  const back = to < from ? 7 : -7;
  const kind = arrow.message?.isFailure ? "rung failed" : "rung";
  const rung = draw("path", { class: kind, d: `M${middle(from)} 13H${middle(to)}m${back} -4l${-back} 4l${back} 4` });
  return draw("svg", { width: lanes.length * LANE, height: ROW, role: "img" },
    draw("title", {}, `${arrow.from} to ${arrow.to}`), lines, rung);
}
