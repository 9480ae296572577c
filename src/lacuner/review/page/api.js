// Requests to the server. The token comes in the fragment of the address, which browsers do not send to the server.

export class OfflineError extends Error {}

export class RefusedError extends Error {
  constructor(status, answer) {
    super(answer.error ?? `the server answered with status ${status}`);
    this.status = status;
    this.answer = answer;
  }
}

const token = readToken();

/** Names this tab in the decisions, so that undo takes back its own. It stays the same when the page is reloaded. */
export const tab = remember("tab") ?? remember("tab", newTabName());

function newTabName() {
  return `tab-${crypto.getRandomValues(new Uint32Array(1))[0].toString(36)}`;
}

function readToken() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given === null) return remember("token") ?? "";
  history.replaceState(null, "", location.pathname);
  return remember("token", given);
}

/** A value that survives a reload of this tab; with two arguments, store it. */
export function remember(name, value) {
  if (value === undefined) return JSON.parse(sessionStorage.getItem(name));
  sessionStorage.setItem(name, JSON.stringify(value));
  return value;
}

/** Send JSON and return the answer. Throws `OfflineError` if there is no server, `RefusedError` if it refuses. */
export async function post(path, body) {
  let response;
  let answer;
  try {
    response = await fetch(path, {
      method: "POST",
      headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
      body: JSON.stringify({ ...body, tab }),
    });
    answer = await response.json();
  } catch {
    throw new OfflineError("no connection to the server");
  }
  if (!response.ok) throw new RefusedError(response.status, answer);
  return answer;
}
