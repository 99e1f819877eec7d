// The sessions of a user (of all users for an operator), which can be ended here.

import { ask, begin, leave } from "./session.js";
import { make, table } from "./view.js";

const byId = (id) => document.getElementById(id);
const list = (value) => (Array.isArray(value) ? value : []);

async function show() {
  const session = await begin();
  if (session === null || session.signIn !== true) {
    return;
  }
  const roles = ["viewer", session.mayTrace ? "tracer" : null, session.mayOperate ? "operator" : null];
  byId("who").textContent = `${session.user}: ${roles.filter(Boolean).join(", ")}`;
  byId("sign-out").hidden = false;
  const said = await ask("GET", "/api/v1/sessions");
  const rows = list(said.sessions).map((one) => {
    const end = make("button", { type: "button" }, one.own ? "End this session" : "End");
    end.addEventListener("click", () => change(`/api/v1/sessions/${encodeURIComponent(one.number)}`));
    return [String(one.user), String(one.began), String(one.from), String(one.browser), end];
  });
  byId("sessions").replaceChildren(table("times in UTC", ["user", "began", "from", "browser", "end"], rows));
}

async function change(path) {
  try {
    await ask("DELETE", path);
    await show();
  } catch (error) {
    byId("said").textContent = error.message;
  }
}

byId("sign-out").addEventListener("click", async () => {
  try {
    await ask("DELETE", "/api/v1/session");
    leave();
  } catch (error) {
    byId("said").textContent = error.message;
  }
});
show().catch((error) => {
  byId("said").textContent = error.message;
});
