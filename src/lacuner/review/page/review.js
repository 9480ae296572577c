// The review page: connection, progress, filters and keys. The two modes are in issues.js and sentences.js.

import { OfflineError, RefusedError, inTurn, isBusy, post, remember } from "./api.js";
import { IssueMode } from "./issues.js";
import { SentenceMode } from "./sentences.js";
import { FIELDS, byId, delay, element, focusQuestion, formatShare, setText } from "./dom.js";
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
  filter: remember("filter") ?? { status: "open", kind: null, label: null, source: null, search: "" },
  send,
  say,
  /** What the key `n` shows. */
  afterwards: () => (app.summary?.sample ? "Scores" : "Next round"),
  undoStack: remember("undo") ?? [],
};
const modes = { issues: new IssueMode(app), sentences: new SentenceMode(app) };
let mode = modes[remember("mode") ?? "issues"];
let isOffline = false;

const onScreen = () => ({ mode, view: mode.view });

/**
 * Do what a key or a button asks for, after everything before it. What is meant for the issue or sentence that was
 * `seen` on the screen is never done to another one.
 */
function act(action, seen = null) {
  return inTurn(() => {
    const isThere = mode === seen?.mode && mode.view === seen.view && !document.querySelector("dialog[open]");
    if (!seen || isThere) return action();
    say("Nothing was done: what is here now was not on the screen yet. Repeat it if you still want it.");
  });
}

/** Say what has happened, to those who see the page and those who hear it. */
function say(text) {
  byId("status").textContent = text;
}

function showBanner(text) {
  setText("banner", text);
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

const SAVING = ["/api/decide", "/api/label", "/api/undo"];

/**
 * Send a request, again and again while there is no connection, and show the new summary. Returns null if the server
 * refuses; what it refuses because of another tab is left to `onConflict`.
 */
async function send(path, body, onConflict) {
  for (;;) {
    try {
      const answer = await post(path, body);
      setOffline(false);
      showBanner("");
      showSummary(answer.summary, answer.run);
      return answer;
    } catch (error) {
      if (error instanceof OfflineError) {
        setOffline(true, SAVING.includes(path));
        await delay(RETRY_MILLISECONDS);
        continue;
      }
      if (!(error instanceof RefusedError)) throw error;
      setOffline(false);
      if (error.status === 409 && onConflict) {
        showSummary(error.answer.summary);
        await onConflict();
      } else {
        const problem = error.status === 401 ? "Not allowed" : SAVING.includes(path) ? "Not saved" : "Not shown";
        showBanner(`${problem}: ${error.message}.`);
      }
      return null;
    }
  }
}

/** Look for decisions of other tabs, and whether the server is there. */
async function poll() {
  if (isBusy() || document.hidden || !app.summary) return;
  const { version } = app.summary;
  try {
    const answer = await post("/api/summary", { version });
    setOffline(false);
    if (!answer.summary || isBusy() || app.summary.version !== version) return; // this tab has decided meanwhile
    await inTurn(async () => {
      showSummary(answer.summary);
      await mode.refresh();
    });
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
  showTypes(summary.labels, setType, keys.t);
  setText("afterwards", app.afterwards());
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
  const advice = summary.exhausted
    ? `Of the last ${recent.judged} issues only ${recent.right} were real (at most ${formatShare(recent.high)} with ` +
      "97.5 % confidence), and those that follow are less probable. It is time for the next round (n), or to label " +
      "sentences (m)."
    : "";
  setText("advice", advice);
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

let typing = 0;

function readFilters() {
  clearTimeout(typing);
  const values = Object.fromEntries(new FormData(byId("filter-form")));
  const number = (text) => (text === "" ? null : Number(text));
  const filter = {
    status: values.status,
    kind: values.kind || null,
    label: number(values.label),
    source: number(values.source),
    search: values.search,
  };
  if (JSON.stringify(filter) === JSON.stringify(app.filter)) return;
  app.filter = remember("filter", filter);
  act(() => modes.issues.load(true));
}

function restoreFilters() {
  byId("filter-search").value = app.filter.search ?? "";
  byId("filter-status").value = app.filter.status;
}

async function switchTo(name, view, undone) {
  mode = modes[name];
  say("");
  remember("mode", name);
  document.body.dataset.mode = name;
  for (const button of byId("modes").children) {
    button.setAttribute("aria-pressed", String(button.dataset.mode === name));
  }
  byId("filters").hidden = name !== "issues";
  [byId("first-edge").textContent, byId("second-edge").textContent] = mode.edges;
  if (app.summary) showSummary(app.summary);
  if (view) mode.show(view, undone);
  else await mode.load();
  showLegend();
}

/** Take back the latest decision of this tab; if it has made none, the latest of all that it knows. */
async function undo() {
  if (mode.undoEdit()) return;
  const answer = await send("/api/undo", { number: app.undoStack.at(-1) ?? app.summary.latest });
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

function setType(number, seen = onScreen()) {
  act(() => mode.setType(number), seen);
}

function chooseType() {
  const seen = onScreen(); // another tab may decide while the dialog is open
  askForType(
    app.summary.labels.map(([label]) => label),
    (number) => setType(number, seen),
  );
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

async function switchToOther() {
  const other = mode === modes.issues ? "sentences" : "issues";
  if (app.summary[other]) await switchTo(other);
  else say(other === "sentences" ? "There are no sentences to label." : "There are no label issues in this queue.");
}

const onView = (action) => () => act(action, onScreen());
const keys = {
  a: onView(() => mode.decide("accept")),
  x: onView(() => mode.decide("reject")),
  0: onView(() => mode.decide("none")),
  s: onView(() => mode.decide("skip")),
  u: () => act(undo),
  A: onView(() => mode.decide("accept", true)),
  X: onView(() => mode.decide("reject", true)),
  j: () => act(() => mode.step("after")),
  k: () => act(() => mode.step("before")),
  t: onView(chooseType),
  c: () => act(toggleStep),
  e: onView(() => mode.showMore()),
  m: () => act(switchToOther),
  n: () => act(() => openRound(app)),
  "/": () => {
    byId("filters").open = true;
    byId("filter-search").focus();
  },
  "?": () => {
    byId("keys").open = !byId("keys").open;
  },
  ArrowLeft: onView(() => move("start", -1)),
  ArrowRight: onView(() => move("start", 1)),
  "Shift+ArrowLeft": onView(() => move("end", -1)),
  "Shift+ArrowRight": onView(() => move("end", 1)),
  Delete: onView(() => mode.removeSpan()),
  Backspace: onView(() => mode.removeSpan()),
};
for (let digit = 1; digit <= 9; digit++) {
  keys[digit] = () => digit <= app.summary.labels.length && setType(digit - 1);
}
const REPEATABLE = ["ArrowLeft", "ArrowRight", "Shift+ArrowLeft", "Shift+ArrowRight", "j", "k"];

/** The name of a key in `keys`. Letters are as on the key caps, whatever Caps Lock or the keyboard's alphabet says. */
function keyName(event) {
  const isForeign = event.key.length === 1 && event.key > "~";
  const name = isForeign ? event.code.replace(/^(Key|Digit)/, "") : event.key;
  if (name.length > 1) return event.shiftKey ? `Shift+${name}` : name;
  if (!isForeign && !event.getModifierState("CapsLock")) return name;
  return event.shiftKey ? name.toUpperCase() : name.toLowerCase();
}

function leaveField(field) {
  if (field.closest("#filter-form")) readFilters(); // what was typed last
  field.blur();
  focusQuestion();
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (event.target.matches(FIELDS)) {
    if (event.key !== "Escape" && (event.key !== "Enter" || !event.target.matches("input"))) return;
    event.preventDefault(); // Escape would empty the field
    leaveField(event.target);
    return;
  }
  const name = keyName(event);
  const action = Object.hasOwn(keys, name) ? keys[name] : null;
  if (!action || !byId("use-keys").checked) return;
  event.preventDefault();
  if (!app.summary) say("The page is still loading.");
  else if (event.repeat && !REPEATABLE.includes(name)) return; // a key that is held down decides once
  else action();
}

function showLegend() {
  const rows = mode.legend().map(([key, meaning]) => {
    const term = element("dt", {}, ...key.split(" ").map((name) => element("kbd", {}, name)));
    return [term, element("dd", {}, meaning)];
  });
  byId("legend").replaceChildren(...rows.flat());
}

const BUTTONS = {
  accept: "a",
  reject: "x",
  none: "0",
  skip: "s",
  undo: "u",
  "accept-all": "A",
  "reject-all": "X",
  more: "e",
  step: "c",
  "next-round": "n",
};

function connectButtons() {
  for (const [id, key] of Object.entries(BUTTONS)) byId(id).addEventListener("click", keys[key]);
  for (const button of byId("modes").children) {
    button.addEventListener("click", () => act(() => switchTo(button.dataset.mode)));
  }
  for (const button of document.querySelectorAll("[data-move]")) {
    const [edge, step] = button.dataset.move.split(" ");
    button.addEventListener(
      "click",
      onView(() => move(edge, Number(step))),
    );
  }
  byId("use-keys").checked = remember("keys") ?? true; // speech input and some screen readers need them off
  byId("use-keys").addEventListener("change", (event) => remember("keys", event.target.checked));
}

/** A choice with the mouse leaves the field, so that the next key decides; with the keyboard, Escape does. */
function connectFilters() {
  const form = byId("filter-form");
  let isPointing = false;
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("pointerdown", () => (isPointing = true));
  form.addEventListener("keydown", () => (isPointing = false));
  form.addEventListener("change", (event) => {
    readFilters();
    if (isPointing && event.target.matches("select")) leaveField(event.target);
  });
  byId("filter-search").addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(readFilters, 250);
  });
  byId("clear-filters").addEventListener("click", () => {
    form.reset();
    readFilters();
  });
}

/** A selection with the mouse sets the boundaries; on a touch screen, as soon as it no longer changes. */
function connectSelection() {
  let waiting = 0;
  let isPressed = false;
  const text = byId("text");
  const use = () => {
    const selection = document.getSelection(); // what is typed into a field is a selection, too
    if (!selection.isCollapsed && text.contains(selection.anchorNode)) act(() => mode.select(), onScreen());
  };
  text.addEventListener("pointerdown", (event) => (isPressed = event.pointerType === "mouse"));
  text.addEventListener("click", (event) => {
    if (document.getSelection().isCollapsed) act(() => mode.point(event), onScreen());
  });
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
connectFilters();
connectSelection();
restoreFilters();
if (matchMedia("(max-width: 760px)").matches) for (const id of ["filters", "keys"]) byId(id).open = false;
setInterval(poll, POLL_MILLISECONDS);
await inTurn(async () => {
  await switchTo(mode === modes.issues ? "issues" : "sentences");
  if (app.summary && !app.summary.issues && app.summary.sentences) await switchTo("sentences"); // a random sample
  if (!app.summary) setText("question", "Nothing could be loaded.");
  say(remember("notice") ?? "");
  remember("notice", null);
});
performance.mark("first issue"); // for measurements
