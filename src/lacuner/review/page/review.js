// The review page: connection, progress, filters and keys. The two modes are in issues.js and sentences.js.

import { OfflineError, RefusedError, post, remember } from "./api.js";
import { IssueMode } from "./issues.js";
import { SentenceMode } from "./sentences.js";
import { FIELDS, byId, delay, element, focusQuestion, formatShare } from "./dom.js";
import { askForType, showTypes } from "./types.js";
import { openRound } from "./round.js";

const POLL_MILLISECONDS = 2000;
const RETRY_MILLISECONDS = 1000;
const KINDS = {
  missing: "missing label",
  wrong_type: "wrong type",
  wrong_boundary: "wrong boundary",
  spurious: "spurious label",
};

/** What the modes need from the page. */
const app = {
  summary: null,
  kinds: KINDS,
  byCharacter: false,
  filter: remember("filter") ?? { status: "open" },
  send,
  say,
  chooseType,
  switchTo,
  undoStack: remember("undo") ?? [],
};
const modes = { issues: new IssueMode(app), sentences: new SentenceMode(app) };
let mode = modes[remember("mode") ?? "issues"];
let isBusy = false;
let isOffline = false;

function setBusy(busy) {
  isBusy = busy;
  document.body.toggleAttribute("data-busy", busy);
}

/** Say what has happened, to those who see the page and those who hear it. */
function say(text) {
  byId("status").textContent = text;
}

function showBanner(text) {
  byId("banner").textContent = text;
  byId("banner").hidden = !text;
}

function setOffline(offline, hasUnsaved = false) {
  if (offline) {
    const run = byId("run").title || "RUN";
    const unsaved = hasUnsaved ? " Your last decision is not saved yet; it is sent as soon as the server is back." : "";
    showBanner(`No connection to the server.${unsaved} Start it again: lacuner review ${run}`);
  } else if (isOffline) {
    showBanner("");
    say("Connected again.");
  }
  isOffline = offline;
}

/**
 * Send a request, again and again while there is no connection, and show the new summary. Returns null if the server
 * refuses or another request is under way; what it refuses because of another tab is left to `onConflict`.
 */
async function send(path, body, onConflict) {
  if (isBusy) return null;
  setBusy(true);
  try {
    for (;;) {
      try {
        const answer = await post(path, body);
        setOffline(false);
        showBanner("");
        showSummary(answer.summary, answer.run);
        return answer;
      } catch (error) {
        if (!(error instanceof OfflineError)) throw error;
        setOffline(true, ["/api/decide", "/api/label", "/api/undo"].includes(path));
        await delay(RETRY_MILLISECONDS);
      }
    }
  } catch (error) {
    if (!(error instanceof RefusedError)) throw error;
    setOffline(false);
    if (error.status === 409 && onConflict) {
      showSummary(error.answer.summary);
      setBusy(false);
      await onConflict();
    } else {
      showBanner(error.status === 401 ? `Not allowed: ${error.message}.` : `Not saved: ${error.message}`);
    }
    return null;
  } finally {
    setBusy(false);
  }
}

/** Look for decisions of other tabs, and whether the server is there. */
async function poll() {
  if (isBusy || document.hidden || !app.summary) return;
  try {
    const answer = await post("/api/summary", { version: app.summary.version });
    setOffline(false);
    if (answer.summary && !isBusy) {
      showSummary(answer.summary);
      await mode.refresh();
    }
  } catch (error) {
    if (error instanceof OfflineError) setOffline(true);
    else if (error instanceof RefusedError && error.status === 401) showBanner(`Not allowed: ${error.message}.`);
  }
}

function showSummary(summary, run) {
  app.summary = summary;
  if (run) {
    byId("run").title = run;
    byId("run").textContent = run.split("/").slice(-2).join("/");
  }
  showTypes(app, (type) => mode.setType(type));
  const isSentences = mode === modes.sentences;
  const [done, settled, skipped, total] = isSentences
    ? [summary.sentences_labeled, 0, summary.sentences_skipped, summary.sentences]
    : [summary.decided, summary.settled, summary.skipped, summary.issues];
  byId("progress").max = Math.max(total, 1);
  byId("progress").value = done + settled + skipped;
  byId("progress-text").textContent =
    `${done.toLocaleString("en")} of ${total.toLocaleString("en")} ${isSentences ? "labeled" : "decided"}` +
    (settled ? `, ${settled.toLocaleString("en")} settled by them` : "") +
    (skipped ? `, ${skipped.toLocaleString("en")} skipped` : "");
  const { right, judged, low, high } = summary.precision;
  const interval = `${formatShare(low)} to ${formatShare(high)}`;
  byId("precision").textContent = judged
    ? `${right} of ${judged} issues were real: ${formatShare(right / judged)} (${interval})`
    : "";
  byId("precision").hidden = isSentences;
  const { recent } = summary;
  byId("advice").hidden = !summary.exhausted || isSentences;
  byId("advice").textContent = summary.exhausted
    ? `Of the last ${recent.judged} issues only ${recent.right} were real (at most ${formatShare(recent.high)} with ` +
      "97.5 % confidence), and those that follow are less probable. It is time for the next round (n), or to label " +
      "sentences (m)."
    : "";
  fillSelect("kind", summary.kinds.map(([kind, count]) => [kind, KINDS[kind], count]));
  fillSelect("label", summary.labels.map(([label, count], i) => [i, label, count]));
  fillSelect("source", summary.sources.map(([source, count], i) => [i, source, count]));
  byId("mode-sentences").disabled = !summary.sentences;
  byId("mode-issues").disabled = !summary.issues;
}

/** Options of a filter with the number of open issues. */
function fillSelect(name, rows) {
  const select = byId(`filter-${name}`);
  const withCounts = rows.map(([value, text, count]) => [value, `${text} (${count.toLocaleString("en")})`]);
  const options = [["", "all"], ...withCounts];
  const isSame =
    select.options.length === options.length && options.every(([, text], i) => select.options[i].textContent === text);
  if (isSame) return;
  select.replaceChildren(...options.map(([value, text]) => element("option", { value: String(value) }, text)));
  select.value = String(app.filter[name] ?? "");
}

function readFilters() {
  const values = Object.fromEntries(new FormData(byId("filter-form")));
  const number = (text) => (text === "" ? null : Number(text));
  app.filter = {
    status: values.status,
    kind: values.kind || null,
    label: number(values.label),
    source: number(values.source),
    search: values.search,
  };
  remember("filter", app.filter);
  return modes.issues.load();
}

function restoreFilters() {
  byId("filter-search").value = app.filter.search ?? "";
  byId("filter-status").value = app.filter.status;
}

async function switchTo(name, view, undone) {
  mode = modes[name];
  remember("mode", name);
  document.body.dataset.mode = name;
  for (const button of byId("modes").children) {
    button.setAttribute("aria-pressed", String(button.dataset.mode === name));
  }
  byId("filters").hidden = name !== "issues";
  [byId("first-edge").textContent, byId("second-edge").textContent] = mode.edges;
  showLegend();
  if (app.summary) showSummary(app.summary);
  if (view) mode.show(view, undone);
  else await mode.load();
}

/** Take back the latest decision of this tab; if it has made none, the latest of all. */
async function undo() {
  if (mode.undoEdit()) return;
  const answer = await send("/api/undo", { number: app.undoStack.at(-1) ?? null });
  if (!answer) return;
  app.undoStack.pop();
  remember("undo", app.undoStack);
  if (!answer.undone) {
    say("There is nothing to undo.");
    return;
  }
  const view = answer.sentence ?? answer.issue;
  const name = answer.sentence ? "sentences" : "issues";
  if (!view) await mode.load();
  else if (mode === modes[name]) mode.show(view, answer.undone);
  else await switchTo(name, view, answer.undone);
  const { count } = answer.undone;
  say(`Undone${count > 1 ? ` for ${count} equal strings` : ""}.`);
}

async function chooseType() {
  const type = await askForType(app.summary.labels.map(([label]) => label));
  if (type !== null) mode.setType(type);
}

function toggleStep() {
  app.byCharacter = !app.byCharacter;
  byId("step").setAttribute("aria-pressed", String(app.byCharacter));
  say(app.byCharacter ? "Boundaries move by one character." : "Boundaries move by one word.");
}

/** Move an edge to the left (-1) or right (1): in text that runs from right to left, left leads forward. */
function move(edge, step) {
  const isRightToLeft = getComputedStyle(byId("text")).direction === "rtl";
  mode.move(edge, isRightToLeft ? -step : step);
}

const keys = {
  a: () => mode.decide("accept"),
  x: () => mode.decide("reject"),
  0: () => mode.decide("none"),
  s: () => mode.decide("skip"),
  u: undo,
  A: () => mode.decide("accept", true),
  X: () => mode.decide("reject", true),
  j: () => mode.step("after"),
  k: () => mode.step("before"),
  t: chooseType,
  c: toggleStep,
  e: () => mode.showMore(),
  m: () => {
    const other = mode === modes.issues ? "sentences" : "issues";
    if (app.summary[other]) switchTo(other);
  },
  n: () => openRound(app),
  "/": () => {
    byId("filters").open = true;
    byId("filter-search").focus();
  },
  "?": () => {
    byId("keys").open = !byId("keys").open;
  },
  ArrowLeft: (event) => move(event.shiftKey ? "end" : "start", -1),
  ArrowRight: (event) => move(event.shiftKey ? "end" : "start", 1),
  Delete: () => mode.removeSpan(),
  Backspace: () => mode.removeSpan(),
};
for (let digit = 1; digit <= 9; digit++) {
  keys[digit] = () => digit <= (app.summary?.labels.length ?? 0) && mode.setType(digit - 1);
}
const REPEATABLE = ["ArrowLeft", "ArrowRight", "j", "k"];

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (event.target.matches(FIELDS)) {
    if (event.key !== "Escape" && (event.key !== "Enter" || !event.target.matches("input"))) return;
    event.target.blur();
    focusQuestion();
    return;
  }
  const action = Object.hasOwn(keys, event.key) ? keys[event.key] : null;
  if (!action || !app.summary || !byId("use-keys").checked) return;
  event.preventDefault();
  if (event.repeat && !REPEATABLE.includes(event.key)) return; // a key that is held down decides once
  action(event);
}

function showLegend() {
  const rows = mode.legend.map(([key, meaning]) => {
    const term = element("dt", {}, ...key.split(" ").map((name) => element("kbd", {}, name)));
    return [term, element("dd", {}, meaning)];
  });
  byId("legend").replaceChildren(...rows.flat());
}

function connectButtons() {
  const onClick = (id, action) => byId(id).addEventListener("click", action);
  onClick("accept", () => mode.decide("accept"));
  onClick("reject", () => mode.decide("reject"));
  onClick("none", () => mode.decide("none"));
  onClick("skip", () => mode.decide("skip"));
  onClick("undo", undo);
  onClick("accept-all", () => mode.decide("accept", true));
  onClick("reject-all", () => mode.decide("reject", true));
  onClick("more", () => mode.showMore());
  onClick("step", toggleStep);
  onClick("next-round", () => openRound(app));
  onClick("clear-filters", () => {
    byId("filter-form").reset();
    readFilters();
  });
  for (const button of byId("modes").children) {
    button.addEventListener("click", () => switchTo(button.dataset.mode));
  }
  for (const button of document.querySelectorAll("[data-move]")) {
    const [edge, step] = button.dataset.move.split(" ");
    button.addEventListener("click", () => move(edge, Number(step)));
  }
  byId("use-keys").checked = remember("keys") ?? true; // speech input and some screen readers need them off
  byId("use-keys").addEventListener("change", (event) => remember("keys", event.target.checked));
  byId("filter-form").addEventListener("submit", (event) => event.preventDefault());
  byId("filter-form").addEventListener("change", readFilters);
  let typing = 0;
  byId("filter-search").addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(readFilters, 250);
  });
}

/** A selection with the mouse sets the boundaries; on a touch screen, as soon as it no longer changes. */
function connectSelection() {
  let waiting = 0;
  let isPressed = false;
  const use = () => mode.select();
  const text = byId("text");
  text.addEventListener("pointerdown", (event) => (isPressed = event.pointerType === "mouse"));
  text.addEventListener("click", (event) => document.getSelection().isCollapsed && mode.point(event));
  document.addEventListener("pointerup", (event) => {
    if (isPressed && event.pointerType === "mouse") setTimeout(use, 0);
    isPressed = false;
  });
  document.addEventListener("selectionchange", () => {
    clearTimeout(waiting);
    if (!isPressed) waiting = setTimeout(use, 700);
  });
}

document.addEventListener("keydown", onKey);
document.addEventListener("visibilitychange", poll);
connectButtons();
connectSelection();
restoreFilters();
if (matchMedia("(max-width: 760px)").matches) for (const id of ["filters", "keys"]) byId(id).open = false;
setInterval(poll, POLL_MILLISECONDS);
await switchTo(mode === modes.issues ? "issues" : "sentences");
if (app.summary && !app.summary.issues && app.summary.sentences) await switchTo("sentences"); // such as a random sample
performance.mark("first issue"); // for measurements
