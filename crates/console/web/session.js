// Who uses the page: what its roles hide, and requests with the token of the session.

let session = null;

// Leads to the page for signing in, which leads back.
export function leave() {
  location.assign(`/sign-in?then=${encodeURIComponent(location.pathname)}${location.hash}`);
}

// The session, once the console has said; null without one.
export async function begin() {
  if (session !== null) {
    return session;
  }
  const answer = await fetch("/api/v1/session");
  if (answer.status === 401) {
    leave();
    return null;
  }
  if (!answer.ok) {
    throw new Error((await answer.text()).trim());
  }
  session = await answer.json();
  for (const one of document.querySelectorAll("[data-right]")) {
    one.hidden = session[one.dataset.right] !== true;
  }
  const account = document.getElementById("account");
  if (account && session.signIn === true) {
    account.hidden = false;
    account.textContent = `Account of ${session.user}`;
  }
  return session;
}

// Whether the user may change what functions do; not before the console has said so.
export const mayOperate = () => session?.mayOperate === true;

// Sends a request; the answer as JSON, or an error with the console's words.
export async function ask(method, path, body) {
  const options = { method, headers: {} };
  if (method !== "GET") {
    const own = await begin();
    options.headers["X-Signalbox-Token"] = own?.token ?? "";
  }
  if (body !== undefined) {
    options.headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  let answer;
  try {
    answer = await fetch(path, options);
  } catch (error) {
    throw new Error(`the console does not answer: ${error.message}`);
  }
  if (answer.status === 401) {
    leave();
  }
  if (!answer.ok) {
    throw new Error((await answer.text()).trim());
  }
  return answer.status === 204 ? null : answer.json();
}
