// What follows the review: the next round, from decisions to a new queue; for a random sample, the scores.

import { inTurn } from "./api.js";
import { byId, delay, element, setText } from "./dom.js";

const POLL_MILLISECONDS = 1000;

/** Show the commands that follow, and their progress if they are running. */
export async function openRound(app) {
  const answer = await app.send("/api/round", {});
  if (!answer) return;
  const { decided, sentences_labeled: labeled, sample } = answer.summary;
  byId("round-title").textContent = app.afterwards();
  byId("round-summary").textContent =
    `Decided issues: ${decided.toLocaleString("en")}. Labeled sentences: ${labeled.toLocaleString("en")}.`;
  byId("about-round").hidden = sample;
  byId("about-scores").hidden = !sample;
  byId("round-start").onclick = () => follow(app, { start: true });
  showProgress(answer);
  byId("round-dialog").showModal();
  byId("round-start").focus();
  if (answer.progress.state === "running") follow(app, {});
}

/** Start the commands, if asked to, and show their progress until they end or the dialog is closed. */
async function follow(app, request) {
  let answer = await inTurn(() => app.send("/api/round", request));
  while (answer) {
    showProgress(answer);
    if (answer.progress.state !== "running" || !byId("round-dialog").open) return;
    await delay(POLL_MILLISECONDS);
    answer = await inTurn(() => app.send("/api/round", {}));
  }
}

function showProgress({ commands: lines, progress, summary }) {
  const { state, command, commands, line, output } = progress;
  const number = commands > 1 ? ` command ${command} of ${commands}` : "";
  const goOn = `End this review with Ctrl-C in the terminal, and go on with: ${lines.at(-1)}`;
  const texts = {
    running: `Running${number} …`,
    finished: `Finished. ${summary.sample ? "" : goOn}`,
    failed: `Failed${number && ` at${number}`}: ${line}`,
    stopped: `Stopped${number && ` at${number}`}.`,
  };
  byId("round-commands").replaceChildren(...lines.map((line) => element("div", {}, line)));
  setText("round-progress", texts[state] ?? "");
  setText("round-output", output.join("\n"));
  byId("round-output").hidden = !output.length;
  byId("round-start").disabled = state === "running" || (state === "finished" && !summary.sample);
}

byId("round-close").addEventListener("click", () => byId("round-dialog").close());
byId("round-copy").addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText(byId("round-commands").innerText);
    setText("round-progress", "Copied.");
  } catch {
    setText("round-progress", "This browser does not let the page copy: select the commands and copy them.");
  }
});
