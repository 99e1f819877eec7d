// Signs in, and leads to the page that was wanted.

const byId = (id) => document.getElementById(id);

// A page of this console; anything else is the first page.
function wanted() {
  const then = new URLSearchParams(location.search).get("then") ?? "/";
  let target;
  try {
    target = new URL(then, location.origin);
  } catch {
    return "/";
  }
  const isOurs = target.origin === location.origin && then.startsWith("/") && !target.pathname.startsWith("//");
  return isOurs ? `${target.pathname}${location.hash}` : "/";
}

byId("sign-in-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const said = byId("said");
  const button = document.querySelector("button");
  button.disabled = true;
  said.textContent = "signing in";
  try {
    const answer = await fetch("/api/v1/session", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ name: byId("name").value, password: byId("password").value }),
    });
    if (answer.ok) {
      location.replace(wanted());
      return;
    }
    said.textContent = (await answer.text()).trim();
  } catch (error) {
    said.textContent = `the console does not answer: ${error.message}`;
  }
  button.disabled = false;
  byId("password").value = "";
  byId("password").focus();
});

// Until here the form would have been sent by the browser itself; with its method the password stands in no address.
document.querySelector("button").disabled = false;
// A link from another site brings no cookie (SameSite): whoever has a session goes on.
fetch("/api/v1/session").then((answer) => {
  if (answer.ok) {
    location.replace(wanted());
  }
}, () => {});
