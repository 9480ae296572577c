// The mode "label issues": one suggestion at a time, with its context and evidence.

import { byId, element, focusQuestion, formatShare, quote, shorten, type } from "./dom.js";
import { remember } from "./api.js";
import { TextWindow, scrollInside, selectedRange, showText } from "./text.js";
import { markType } from "./types.js";

const CONTEXT_STEP = 4;
const CONTEXT = 300;
const DONE = { accept: "accepted", reject: "rejected", change: "changed", skip: "skipped" };

/** Another place with the same string, and its label if it has one. */
function listItem({ before, text, after, label }) {
  return element("li", { dir: "auto" }, before, element("b", {}, text), after, " ", ...(label ? [type(label)] : []));
}

export class IssueMode {
  constructor(app) {
    this.app = app;
    this.view = null;
    this.context = CONTEXT;
  }

  edges = ["start", "end"];

  legend = () => [
    ["a", "accept the suggestion"],
    ["x", "reject it"],
    ["0", "neither: no entity at all"],
    ["⇧A ⇧X", "for all equal strings"],
    ["1 … 9", "change the type"],
    ["t", "choose among all types"],
    ["← →", "move the start"],
    ["⇧← ⇧→", "move the end"],
    ["c", "by character or by word"],
    ["s", "skip"],
    ["u", "undo, as often as you like"],
    ["j k", "next, previous issue"],
    ["e", "more context"],
    ["/", "search"],
    ["m", "label sentences"],
    ["n", this.app.afterwards().toLowerCase()],
    ["?", "show or hide these keys"],
  ];

  /** Load the issue that this tab showed last, unless it is settled; or the first one that matches the filter. */
  async load(isFirst = false) {
    const at = isFirst ? null : (this.view?.id ?? remember("issue"));
    const answer = await this.app.send("/api/issue", { filter: this.app.filter, at });
    if (answer) this.show(answer.issue);
    this.app.say("");
  }

  /** Go to another issue without deciding; `direction` is "after" or "before". */
  async step(direction) {
    if (!this.view) return;
    const answer = await this.app.send("/api/issue", { filter: this.app.filter, [direction]: this.view.id });
    if (answer) this.show(answer.issue);
    this.app.say("");
  }

  /** After decisions of another tab: if this issue is among them, say so and go on. */
  async refresh() {
    if (!this.view) return;
    const { filter } = this.app;
    const answer = await this.app.send("/api/issue", { filter, at: this.view.id, context: this.context });
    if (!answer) return;
    const { issue } = answer; // another one, if this one is settled
    if (issue?.id !== this.view.id || issue.decision?.number !== this.view.decision?.number) {
      await this.moveOn();
      return;
    }
    const isSame = issue.equal === this.view.equal && JSON.stringify(issue.labels) === JSON.stringify(this.view.labels);
    Object.assign(this.view, { equal: issue.equal, others: issue.others, labels: issue.labels });
    if (!isSame) this.render(); // it would undo what is being selected with the mouse
  }

  async moveOn() {
    await this.step("after");
    this.app.say("Another tab has decided the issue that was here. Nothing was overwritten.");
  }

  /** Show an issue; after an undo, with the change that was undone, so that it need not be made again. */
  show(view, undone = null) {
    this.view = view;
    this.context = CONTEXT;
    remember("issue", view?.id ?? null);
    document.body.classList.toggle("empty", !view);
    if (!view) {
      byId("question").replaceChildren(...this.emptyQuestion());
      focusQuestion();
      return;
    }
    this.window = new TextWindow(view.window);
    const decision = view.decision ?? undone;
    const span = (decision?.action === "change" && decision.spans[0]) || view.span;
    this.shown = { range: [span.start, span.end], type: span.type };
    this.range = this.shown.range;
    this.type = this.shown.type;
    this.render();
    this.showEvidence();
    focusQuestion();
    scrollTo({ top: 0 });
  }

  /** Why there is no issue to show, and what to do now. */
  emptyQuestion() {
    const { issues, decided, settled, skipped } = this.app.summary;
    const { status, kind, label, source, search } = this.app.filter;
    byId("facts").textContent = "";
    if (!issues) return ["There are no label issues in this queue."];
    if (status !== "open" || kind || label !== null || source !== null || search || decided + settled + skipped < issues) {
      byId("facts").textContent = "Change the filter, or clear it.";
      return ["No issue matches the filter."];
    }
    const left = skipped ? ` ${skipped.toLocaleString("en")} are skipped: the filter shows them.` : "";
    byId("facts").textContent = `Press n for the next round, or u to undo.${left}`;
    return ["All issues are decided."];
  }

  get isChanged() {
    const { start, end, type: proposed } = this.view.span;
    return this.range[0] !== start || this.range[1] !== end || this.type !== proposed;
  }

  get text() {
    return this.window.slice(...this.range);
  }

  get label() {
    return this.type === null ? this.view.span.label : this.app.summary.labels[this.type][0];
  }

  render() {
    const { view } = this;
    const disputed = view.current.filter(() => view.kind !== "spurious" || this.isChanged);
    const ranges = [
      ...view.labels.map((span) => ({ ...span, className: "labeled" })),
      ...disputed.map((span) => ({
        ...span,
        label: span.label === this.label ? "" : span.label, // shown once
        className: "current",
      })),
      { start: this.range[0], end: this.range[1], label: this.label, className: `focus ${view.kind}` },
    ];
    showText(byId("text"), this.window, ranges);
    scrollInside(byId("text"), byId("text").querySelector("mark"));
    byId("text").classList.toggle("cut-before", view.window.before > 0);
    byId("text").classList.toggle("cut-after", view.window.after > 0);
    byId("more").hidden = view.window.before + view.window.after === 0;
    byId("question").replaceChildren(...this.question());
    byId("facts").replaceChildren(
      element("span", { class: `kind ${view.kind}` }, this.app.kinds[view.kind]),
      ` ${formatShare(view.score)} probable · issue ${view.position.toLocaleString("en")} of ` +
        `${this.app.summary.issues.toLocaleString("en")} · document `,
      element("bdi", { title: view.document }, shorten(view.document, 80)),
    );
    byId("earlier").hidden = !view.decision && !view.settled;
    byId("earlier").textContent = view.decision
      ? `Already ${DONE[view.decision.action]}. A new decision replaces this one.`
      : "Settled by a decision on something else here, which a decision on this may contradict.";
    markType(this.type, this.app.summary.labels);
    this.showActions();
  }

  /** The suggestion as a question that `a` answers with yes. */
  question() {
    const { view } = this;
    const [old] = view.current;
    const text = quote(this.text);
    if (!this.isChanged && view.kind === "spurious") {
      return ["Remove the label ", type(view.span.label), " from ", text, "?"];
    }
    if (!old) return ["Label ", text, " as ", type(this.label), "?"];
    const isMoved = old.start !== this.range[0] || old.end !== this.range[1];
    const isRenamed = old.label !== this.label;
    if (!isMoved && !isRenamed) return ["Keep the label ", type(old.label), " of ", text, "?"];
    const from = [quote(this.window.slice(old.start, old.end)), ...(isRenamed ? [" ", type(old.label)] : [])];
    const to = [isMoved ? text : null, isRenamed ? type(this.label) : null].filter((part) => part !== null);
    if (to.length === 2) to.splice(1, 0, " ");
    return ["Change ", ...from, " to ", ...to, "?"];
  }

  showActions() {
    const { view } = this;
    const [old] = view.current;
    const suggested = { missing: ["Accept: ", type(this.label)], spurious: ["Accept: remove it"] }[view.kind];
    const accept = this.isChanged ? ["Save the change"] : (suggested ?? ["Accept: change it"]);
    const reject = old ? ["Reject: keep ", type(old.label)] : ["Reject: no entity here"];
    byId("accept").lastElementChild.replaceChildren(...accept);
    byId("reject").lastElementChild.replaceChildren(...reject);
    byId("reject").hidden = false;
    byId("reject").title = old
      ? ""
      : "Nothing in this string is an entity. If only the boundaries are wrong, move them instead.";
    byId("none").hidden = !["wrong_type", "wrong_boundary"].includes(view.kind);
    byId("group").hidden = view.equal < 2;
    const all = view.equal === 2 ? "both" : `all ${view.equal.toLocaleString("en")}`;
    const { start, end } = view.span;
    const isMoved = this.range[0] !== start || this.range[1] !== end; // holds only where the same words are around
    const those = isMoved ? `up to ${view.equal.toLocaleString("en")}` : all;
    byId("accept-all").lastElementChild.textContent = `${this.isChanged ? "Save" : "Accept"} for ${those} equal strings`;
    byId("reject-all").lastElementChild.textContent = `Reject for ${all}`;
    byId("others").replaceChildren(...view.others.map(listItem));
  }

  showEvidence() {
    const { sources, evidence } = this.view;
    const count = (n, text) => `${n.toLocaleString("en")} × ${text}`;
    const elsewhere = evidence.labeled.map(([label, n]) => count(n, label));
    if (evidence.unlabeled) elsewhere.push(count(evidence.unlabeled, "not labeled"));
    const rows = [
      ["source", sources.join(", ")],
      ["model’s probability", evidence.probability === null ? "" : evidence.probability.toFixed(3)],
      ["gazetteer entry", evidence.gazetteer.map(([term, label]) => `${term} (${label})`).join(", ")],
      ["this string in the corpus", elsewhere.join(", ")],
      ...evidence.other,
    ].filter(([, value]) => value !== "");
    byId("reasons").replaceChildren(
      ...rows.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, element("bdi", {}, value))]),
    );
    byId("mentions").replaceChildren(...evidence.mentions.map(listItem));
  }

  async decide(action, everywhere = false) {
    const { view } = this;
    if (!view) return;
    if (action === "none" && byId("none").hidden) {
      this.app.say(view.kind === "missing" ? "If there is no entity here, press x." : "To remove the label, press a.");
      return;
    }
    let request = { action };
    if (action === "none") {
      request = { action: "change" };
    } else if (action === "accept" && this.isChanged) {
      if (this.type === null) {
        this.app.say("Choose a type first.");
        return;
      }
      request = { action: "change", span: { start: this.range[0], end: this.range[1], type: this.type } };
    }
    const accepted = this.isChanged ? "Saved" : "Accepted";
    const words = { accept: accepted, reject: "Rejected", none: "No entity", skip: "Skipped" };
    const text = this.text;
    const answer = await this.app.send(
      "/api/decide",
      { ...request, issue: view.id, everywhere, expected: view.decision?.number ?? null, filter: this.app.filter },
      () => this.moveOn(),
    );
    if (!answer) return;
    this.app.undoStack.push(answer.number);
    remember("undo", this.app.undoStack);
    this.show(answer.issue);
    this.app.say(`${words[action]}: ${text}${answer.decided > 1 ? ` (${answer.decided} equal strings)` : ""}`);
  }

  setType(number) {
    if (!this.view) return;
    this.type = number;
    this.render();
    this.app.say(`Type: ${this.label}`);
  }

  move(edge, step) {
    if (!this.view) return;
    this.setRange(this.window.moveEdge(this.range, edge, step, this.app.byCharacter));
  }

  /** Use what is selected with the mouse as boundaries. */
  select() {
    const range = this.view && selectedRange(byId("text"), this.window);
    if (!range) return;
    document.getSelection().removeAllRanges();
    this.setRange(this.app.byCharacter ? range : this.window.snapToWords(...range));
  }

  setRange(range) {
    this.range = range;
    this.render();
    this.app.say(this.text);
  }

  /** Take back changes of type and boundaries before a decision; false if there are none. */
  undoEdit() {
    const { range, type: number } = this.shown ?? {};
    if (!this.view || (this.type === number && this.range[0] === range[0] && this.range[1] === range[1])) return false;
    this.range = range;
    this.type = number;
    this.render();
    this.app.say("The change is undone.");
    return true;
  }

  removeSpan() {}

  point() {}

  async showMore() {
    if (!this.view) return;
    if (byId("more").hidden) {
      this.app.say("This is all of the text.");
      return;
    }
    const context = this.context * CONTEXT_STEP;
    const answer = await this.app.send("/api/issue", { filter: this.app.filter, at: this.view.id, context });
    if (answer?.issue?.id !== this.view.id) return;
    this.context = context;
    this.view.window = answer.issue.window;
    this.view.labels = answer.issue.labels;
    this.window = new TextWindow(answer.issue.window);
    this.render();
  }
}
