// Requests to the server, and the order of everything that waits for one. The token comes in the fragment of the
// address, which browsers do not send to the server.

export class OfflineError extends Error {}

export class RefusedError extends Error {
  constructor(status, answer) {
    super(answer.error ?? `the server answered with status ${status}`);
    this.status = status;
    this.answer = answer;
  }
}

const token = readToken();

/** The queue that this tab shows. The server refuses requests about another one: its numbers mean something else. */
let queue = remember("queue");

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
      body: JSON.stringify({ ...body, tab, queue }),
    });
    answer = await response.json();
  } catch {
    throw new OfflineError("no connection to the server");
  }
  if (response.status === 410) return startAgain();
  if (!response.ok) throw new RefusedError(response.status, answer);
  if (answer.summary && answer.summary.queue !== queue) queue = remember("queue", answer.summary.queue);
  return answer;
}

/** Load the page again, without what this tab remembers of the queue that is no longer there. */
function startAgain() {
  for (const name of ["queue", "filter", "issue", "sentence", "undo"]) remember(name, null);
  remember("notice", "There is a new queue. A decision that was not saved yet is lost.");
  location.reload();
  return new Promise(() => {}); // nothing goes on before the page is loaded
}

let last = Promise.resolve();
let unfinished = 0;

/**
 * Do `task` as soon as all earlier tasks are done: none is left out because another one waits for the server. While
 * there are any, the body has the attribute `data-busy`.
 */
export function inTurn(task) {
  unfinished += 1;
  document.body.toggleAttribute("data-busy", true);
  const result = last.then(task).finally(() => {
    unfinished -= 1;
    document.body.toggleAttribute("data-busy", unfinished > 0);
  });
  last = result.catch(reportError); // a mistake in one task does not stop those that follow
  return result;
}

export function isBusy() {
  return unfinished > 0;
}
