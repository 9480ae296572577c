// The next round: from decisions to a better corpus and a new model.

import { byId } from "./dom.js";

/** Show the commands of the next round. */
export async function openRound(app) {
  const answer = await app.send("/api/round", {});
  if (!answer) return;
  const { decided, sentences_labeled: labeled } = answer.summary;
  byId("round-summary").textContent = `${decided} issues are decided and ${labeled} sentences are labeled.`;
  byId("round-commands").textContent = answer.commands.join("\n");
  byId("round-dialog").showModal();
}

byId("round-close").addEventListener("click", () => byId("round-dialog").close());
byId("round-copy").addEventListener("click", async () => {
  await navigator.clipboard.writeText(byId("round-commands").textContent);
  byId("round-progress").textContent = "Copied.";
});
