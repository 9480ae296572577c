// Small helpers for the page. Text is only ever inserted as text.

export function byId(id) {
  return document.getElementById(id);
}

/** A new element with attributes and children; strings become text. */
export function element(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

/** Change the text of an element only if it is another one: screen readers read what is written again. */
export function setText(id, text) {
  if (byId(id).textContent !== text) byId(id).textContent = text;
}

/** The beginning of a long string, without line breaks. */
export function shorten(text, limit) {
  const points = Array.from(text.replace(/\s+/gu, " "));
  return points.length > limit ? `${points.slice(0, limit).join("")}…` : points.join("");
}

/** A string of the corpus inside a sentence: its direction does not affect the rest. */
export function quote(text) {
  return element("span", {}, "“", element("bdi", {}, shorten(text, 80)), "”");
}

export function type(label) {
  return element("bdi", { class: "type", title: label }, shorten(label, 40));
}

export function formatShare(share) {
  return `${Math.round(100 * share)} %`;
}

export function delay(milliseconds) {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

/** Fields where keys mean something else than on the rest of the page. */
export const FIELDS = "input:not([type=checkbox]), select";

/** Move the focus to the question, so that a screen reader reads it; but never away from where somebody types. */
export function focusQuestion() {
  if (!document.activeElement?.matches(FIELDS)) byId("question").focus({ preventScroll: true });
}
