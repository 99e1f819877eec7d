// The page: follows the stream, keeps what was received, and says how old it is. What is shown is made in view.js.

import { ask, begin, leave } from "./session.js";
import { show, found, plain } from "./view.js";

// After this time without an update what is shown is called old.
const OLD_MS = 3500;

let summary = {};
let received = 0;
let lost = false;
// Why the console refuses a stream, in its words.
let refusal = "";

const byId = (id) => document.getElementById(id);

// The open stream. A page that is not visible has none: browsers open six connections to one host, whatever the tabs.
let stream = null;

function follow() {
  stream?.close();
  stream = document.hidden ? null : new EventSource("/api/v1/stream");
  if (stream === null) {
    return;
  }
  const own = stream;
  own.addEventListener("summary", (event) => take(event.data));
  own.addEventListener("error", () => {
    // A stream that was refused does not connect again by itself.
    if (own.readyState === EventSource.CLOSED && own === stream) {
      explain();
      setTimeout(follow, 2000);
    }
  });
}

// Reads why a stream was refused: an EventSource does not say.
async function explain() {
  try {
    const answer = await fetch("/api/v1/stream");
    if (answer.ok) {
      await answer.body.cancel();
    } else if (answer.status === 401) {
      leave();
    } else {
      refusal = (await answer.text()).trim();
      age();
    }
  } catch {
    // It does not answer at all, which the age says.
  }
}

// Takes the sections that have changed.
function take(text) {
  let changed;
  try {
    changed = JSON.parse(text);
  } catch {
    return;
  }
  received = Date.now();
  refusal = "";
  summary = { ...summary, ...changed };
  // The page may have said that the console does not answer: then all is drawn again.
  show(summary, Object.keys(lost ? summary : changed));
  lost = false;
  age();
}

// Says how old the data is. Old data is never shown as if all were well.
function age() {
  const line = byId("age");
  if (document.hidden) {
    return;
  }
  if (received === 0) {
    line.textContent = refusal || "connecting to the console";
    if (refusal) {
      byId("headline").textContent = `Nothing is shown: ${refusal}.`;
    }
    return;
  }
  const old = Date.now() - received;
  const isOld = old > OLD_MS;
  document.body.classList.toggle("old", isOld);
  if (!isOld) {
    line.textContent = `live, ${new Date(received).toISOString().slice(11, 19)} UTC`;
    return;
  }
  line.textContent = `${Math.round(old / 1000)} s old`;
  if (!lost) {
    lost = true;
    const since = new Date(received).toISOString().slice(11, 19);
    const headline = byId("headline");
    headline.className = "headline unknown";
    headline.textContent = `The console does not answer since ${since} UTC; what stands below is from then.`;
  }
}

async function search(event) {
  event.preventDefault();
  const text = byId("find").value.trim();
  const place = byId("found");
  place.replaceChildren(plain("p", "searching"));
  try {
    const answer = await fetch(`/api/v1/find?text=${encodeURIComponent(text)}`);
    const body = await answer.text();
    place.replaceChildren(answer.ok ? found(JSON.parse(body)) : plain("p", body));
  } catch (error) {
    place.replaceChildren(plain("p", `the console does not answer: ${error.message}`));
  }
}

// Acknowledges the alarm of a button, or withdraws that.
async function acknowledge({ target }) {
  const button = target instanceof Element ? target.closest("button[data-alarm]") : null;
  if (button === null) {
    return;
  }
  const isSet = button.dataset.set === "yes";
  const comment = isSet ? prompt("Comment") : "";
  if (comment === null) {
    return;
  }
  const path = `/api/v1/alarms/${encodeURIComponent(button.dataset.alarm)}?${new URLSearchParams({ comment })}`;
  try {
    await ask(isSet ? "PUT" : "DELETE", path);
  } catch (error) {
    alert(error.message);
  }
}

byId("alarms").addEventListener("click", acknowledge);
byId("find-form").addEventListener("submit", search);
document.addEventListener("keydown", (event) => {
  const typing = event.target instanceof HTMLInputElement;
  if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) {
    event.preventDefault();
    byId("find").focus();
  }
});
document.addEventListener("visibilitychange", follow);
setInterval(age, 1000);
begin().then(() => show(summary, Object.keys(summary)), () => {});
follow();
