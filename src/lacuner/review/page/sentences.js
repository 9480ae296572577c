// The mode "label sentences": all entities of a sentence, starting from those that the model predicts.

import { byId, element, focusQuestion, quote, shorten, type } from "./dom.js";
import { remember } from "./api.js";
import { TextWindow, offsetAt, scrollInside, selectedRange, showText } from "./text.js";
import { markType } from "./types.js";

export class SentenceMode {
  constructor(app) {
    this.app = app;
    this.view = null;
  }

  edges = ["cursor", "selection"];

  legend = () => [
    ["a", "save: these are all entities"],
    ["← →", "go to another word"],
    ["⇧← ⇧→", "select more or fewer"],
    ["1 … 9", "label what is selected"],
    ["t", "choose among all types"],
    ["Delete", "remove the label"],
    ["c", "by character or by word"],
    ["s", "skip"],
    ["u", "undo, as often as you like"],
    ["j k", "next, previous sentence"],
    ["m", "label issues"],
    ["n", this.app.afterwards().toLowerCase()],
    ["?", "show or hide these keys"],
  ];

  async load() {
    const at = this.view === null ? remember("sentence") : this.view.number;
    const answer = await this.app.send("/api/sentence", { at });
    if (answer) this.show(answer.sentence);
  }

  /** Go to the next sentence or, with "before", to the previous one, labeled or not. */
  async step(direction) {
    const count = this.app.summary.sentences;
    const number = this.view?.number ?? (direction === "after" ? -1 : count);
    const at = (number + (direction === "after" ? 1 : -1) + count) % count;
    const answer = await this.app.send("/api/sentence", { at });
    if (answer) this.show(answer.sentence);
    this.app.say("");
  }

  async refresh() {
    if (!this.view) return;
    const answer = await this.app.send("/api/sentence", { at: this.view.number });
    if (answer?.sentence && answer.sentence.decision?.number !== this.view.decision?.number) await this.moveOn();
  }

  async moveOn() {
    const answer = await this.app.send("/api/sentence", { after: this.view.number });
    if (answer) this.show(answer.sentence);
    this.app.say("Another tab has labeled the sentence that was here. Nothing was overwritten.");
  }

  /** Show a sentence; after an undo, with the labels that were undone, so that they need not be made again. */
  show(view, undone = null) {
    this.view = view;
    this.history = [];
    remember("sentence", view?.number ?? null);
    document.body.classList.toggle("empty", !view);
    focusQuestion();
    if (!view) {
      byId("question").textContent = this.app.summary.sentences
        ? "All sentences are labeled."
        : "There are no sentences to label.";
      byId("facts").textContent = `Press n for the ${this.app.afterwards().toLowerCase()}, or u to undo.`;
      return;
    }
    this.window = new TextWindow(view.window);
    const spans = undone?.action === "label_sentence" ? undone.spans : view.spans;
    this.spans = spans.map(({ start, end, type: number, label }) => ({ start, end, type: number, label }));
    const first = this.units()[0] ?? [0, 0];
    this.anchor = first;
    this.head = first;
    this.render();
    scrollTo({ top: 0 });
  }

  /** What the cursor steps over: words, or single characters. */
  units() {
    if (!this.app.byCharacter) return this.window.words;
    return this.window.points.map((_, i) => [this.window.start + i, this.window.start + i + 1]);
  }

  get selection() {
    return [Math.min(this.anchor[0], this.head[0]), Math.max(this.anchor[1], this.head[1])];
  }

  selectedSpans() {
    const [start, end] = this.selection;
    return this.spans.filter((span) => span.start < end && start < span.end);
  }

  render() {
    const { view } = this;
    const [start, end] = this.selection;
    const ranges = this.spans.map((span) => ({ ...span, className: `entity type-${(span.type ?? 0) % 8}` }));
    showText(byId("text"), this.window, [...ranges, { start, end, className: "cursor" }]);
    const ends = byId("text").querySelectorAll(".cursor");
    scrollInside(byId("text"), this.head[0] < this.anchor[0] ? ends[0] : ends[ends.length - 1]);
    byId("question").replaceChildren("Label all entities of this sentence");
    const [place, count] = [view.number + 1, this.app.summary.sentences].map((value) => value.toLocaleString("en"));
    byId("facts").replaceChildren(
      `sentence ${place} of ${count} · document `,
      element("bdi", { title: view.document }, shorten(view.document, 80)),
    );
    byId("earlier").hidden = !view.decision;
    byId("earlier").textContent = view.decision ? `Already ${view.decision.action === "skip" ? "skipped" : "labeled"}. Saving replaces the earlier decision.` : "";
    const number = this.spans.length;
    byId("accept").lastElementChild.textContent =
      number === 0 ? "Save: no entities" : `Save: ${number === 1 ? "this one" : `these ${number}`} and no others`;
    const selected = this.selectedSpans();
    markType(selected.length === 1 ? selected[0].type : null, this.app.summary.labels);
    for (const id of ["reject", "none", "group", "more"]) byId(id).hidden = true;
    byId("spans").replaceChildren(...this.spans.map((span) => this.listItem(span)));
  }

  listItem(span) {
    const text = this.window.slice(span.start, span.end);
    const attributes = { type: "button", class: "quiet", "aria-label": `Remove ${text}, ${span.label}` };
    const remove = element("button", attributes, "×");
    remove.addEventListener("click", () => this.edit(this.spans.filter((other) => other !== span), `Removed: ${text}`));
    return element("li", {}, quote(text), " ", type(span.label), " ", remove);
  }

  edit(spans, message) {
    this.history.push(this.spans);
    this.spans = [...spans].sort((a, b) => a.start - b.start);
    this.render();
    this.app.say(message);
  }

  setType(number) {
    if (!this.view || !this.units().length) return;
    const label = this.app.summary.labels[number][0];
    const selected = this.selectedSpans();
    const [start, end] = this.trim(...this.selection);
    if (start >= end) return;
    const isInside = selected.length === 1 && selected[0].start <= start && end <= selected[0].end;
    const span = isInside ? { ...selected[0], type: number, label } : { start, end, type: number, label };
    const others = this.spans.filter((other) => !selected.includes(other));
    this.edit([...others, span], `${this.window.slice(span.start, span.end)}: ${label}`);
  }

  /** A range without white space at its ends. */
  trim(start, end) {
    const text = this.window.slice(start, end);
    const before = Array.from(text).length - Array.from(text.trimStart()).length;
    const after = Array.from(text).length - Array.from(text.trimEnd()).length;
    return [start + before, end - after];
  }

  removeSpan() {
    if (!this.view) return;
    const selected = this.selectedSpans();
    if (selected.length) this.edit(this.spans.filter((span) => !selected.includes(span)), "Removed.");
  }

  /** Move the cursor; with `edge` "end", extend the selection. */
  move(edge, step) {
    if (!this.view) return;
    const units = this.units();
    const place = units.findIndex(([, end]) => end >= this.head[1]);
    const next = units[(place < 0 ? units.length : place) + step];
    if (!next) return;
    this.head = next;
    if (edge === "start") this.anchor = next;
    this.render();
    this.sayCursor();
  }

  /** Move the cursor to the word under the mouse or a finger. */
  point(event) {
    const offset = this.view && offsetAt(byId("text"), this.window, event);
    const unit = offset === null ? undefined : this.units().find(([start, end]) => start <= offset && offset <= end);
    if (!unit) return;
    this.anchor = unit;
    this.head = unit;
    this.render();
    this.sayCursor();
  }

  sayCursor() {
    const [selected] = this.selectedSpans();
    this.app.say(this.window.slice(...this.selection) + (selected ? `, ${selected.label}` : ""));
  }

  select() {
    const range = this.view && selectedRange(byId("text"), this.window);
    if (!range) return;
    document.getSelection().removeAllRanges();
    const [start, end] = this.app.byCharacter ? range : this.window.snapToWords(...range);
    const units = this.units().filter(([first, last]) => first < end && start < last);
    this.anchor = units[0] ?? [start, end];
    this.head = units.at(-1) ?? [start, end];
    this.render();
    this.app.say(`Selected: ${this.window.slice(start, end)}. Choose a type.`);
  }

  async decide(action) {
    if (!this.view) return;
    if (!["accept", "skip"].includes(action)) {
      this.app.say("Here a saves the sentence with its labels, and s skips it.");
      return;
    }
    const spans = this.spans.map(({ start, end, type: number }) => ({ start, end, type: number }));
    const answer = await this.app.send(
      "/api/label",
      {
        sentence: this.view.number,
        spans: action === "accept" ? spans : null,
        expected: this.view.decision?.number ?? null,
      },
      () => this.moveOn(),
    );
    if (!answer) return;
    this.app.undoStack.push(answer.number);
    remember("undo", this.app.undoStack);
    this.show(answer.sentence);
    const count = spans.length === 1 ? "1 entity" : `${spans.length} entities`;
    this.app.say(action === "accept" ? `Saved with ${count}.` : "Skipped.");
  }

  undoEdit() {
    if (!this.view || !this.history.length) return false;
    this.spans = this.history.pop();
    this.render();
    this.app.say("The change is undone.");
    return true;
  }

  showMore() {
    this.app.say("This is all of the text.");
  }
}
