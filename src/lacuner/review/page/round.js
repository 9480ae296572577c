// The next round: from decisions to a better corpus, a new model and a new queue.

import { byId, delay } from "./dom.js";

const POLL_MILLISECONDS = 1000;

/** Show the commands of the next round, and follow them if they are running. */
export async function openRound(app) {
  const answer = await app.send("/api/round", {});
  if (!answer) return;
  const { decided, sentences_labeled: labeled } = answer.summary;
  byId("round-summary").textContent =
    `Decided issues: ${decided.toLocaleString("en")}. Labeled sentences: ${labeled.toLocaleString("en")}.`;
  byId("round-commands").textContent = answer.commands.join("\n");
  byId("round-start").onclick = () => follow(app, true);
  byId("round-dialog").showModal();
  byId("round-start").focus();
  if (answer.progress.state !== "not started") await follow(app, false);
}

/** Start the commands, if asked to, and show their progress until they end or the dialog is closed. */
async function follow(app, start) {
  let answer = await app.send("/api/round", { start });
  while (answer) {
    const { state, command, commands, line } = answer.progress;
    byId("round-commands").textContent = answer.commands.join("\n");
    const number = `command ${command} of ${commands}`;
    byId("round-progress").textContent = {
      running: `Running ${number}: ${line}`,
      finished: `Finished. End this review with Ctrl-C in the terminal, and go on with: ${answer.commands.at(-1)}`,
      failed: `Failed at ${number}: ${line}`,
      stopped: `Stopped at ${number}.`,
      "not started": "",
    }[state];
    byId("round-start").disabled = state === "running" || state === "finished";
    if (state !== "running" || !byId("round-dialog").open) return;
    await delay(POLL_MILLISECONDS);
    answer = await app.send("/api/round", {});
  }
}

byId("round-close").addEventListener("click", () => byId("round-dialog").close());
byId("round-copy").addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText(byId("round-commands").textContent);
    byId("round-progress").textContent = "Copied.";
  } catch {
    byId("round-progress").textContent = "This browser does not let the page copy: select the commands and copy them.";
  }
});
