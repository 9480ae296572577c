// Texts and offsets. The server counts code points, as Python does; JavaScript strings count UTF-16 units.
// This module is the only place that converts between the two.

import { shorten } from "./dom.js";

/** A part of a document's text. All offsets are code points from the start of the document. */
export class TextWindow {
  constructor({ text, offset, words }) {
    this.points = Array.from(text);
    this.start = offset;
    this.end = offset + this.points.length;
    this.words = [];
    for (let i = 0; i < words.length; i += 2) this.words.push([words[i], words[i + 1]]);
  }

  /** The characters from `start` to `end` as a string. */
  slice(start, end) {
    return this.points.slice(Math.max(0, start - this.start), Math.max(0, end - this.start)).join("");
  }

  /** The smallest range of whole words around `start` to `end`; the range itself where there are no words. */
  snapToWords(start, end) {
    const touched = this.words.filter(([first, last]) => first < end && start < last);
    return touched.length ? [touched[0][0], touched.at(-1)[1]] : [start, end];
  }

  /** Move one edge of a range by a word or a character; the same range if that is impossible. */
  moveEdge([start, end], edge, step, byCharacter) {
    const old = edge === "start" ? start : end;
    let candidates;
    if (byCharacter) {
      candidates = [old + step];
    } else {
      const side = edge === "start" ? 0 : 1;
      candidates = this.words.map((word) => word[side]).filter((place) => (place - old) * step > 0);
      if (step < 0) candidates.reverse();
    }
    const [place] = candidates;
    const moved = edge === "start" ? [place, end] : [start, place];
    const isValid = place !== undefined && moved[0] < moved[1] && moved[0] >= this.start && moved[1] <= this.end;
    return isValid ? moved : [start, end];
  }
}

/** Number of code points in a string. */
function countPoints(string) {
  return Array.from(string).length;
}

/**
 * Show a text with ranges `{start, end, className, label}`, which may overlap. Everything is inserted as text; labels
 * are shown by CSS from an attribute, so they are not part of what the mouse selects.
 */
export function showText(element, window, ranges) {
  const visible = ranges
    .map((range) => ({ ...range, start: Math.max(range.start, window.start), end: Math.min(range.end, window.end) }))
    .filter((range) => range.start < range.end);
  const edges = new Set([window.start, window.end]);
  for (const { start, end } of visible) edges.add(start).add(end);
  const places = [...edges].sort((a, b) => a - b);
  const pieces = [];
  for (let i = 0; i + 1 < places.length; i++) {
    const [start, end] = [places[i], places[i + 1]];
    const covering = visible.filter((range) => range.start <= start && end <= range.end);
    const string = window.slice(start, end);
    if (!covering.length) {
      pieces.push(document.createTextNode(string));
      continue;
    }
    const piece = document.createElement(covering.some((range) => range.className.includes("focus")) ? "mark" : "span");
    for (const range of covering) piece.classList.add(...range.className.split(" "));
    const ending = covering.filter((range) => range.label && range.end === end);
    if (ending.length) piece.dataset.label = ending.map((range) => shorten(range.label, 30)).join(" ");
    piece.textContent = string;
    pieces.push(piece);
  }
  element.replaceChildren(...pieces);
}

/** Scroll inside an element, not the page, until a part of it can be seen. */
export function scrollInside(element, part) {
  if (!part) return;
  const [outer, inner] = [element.getBoundingClientRect(), part.getBoundingClientRect()];
  if (inner.top < outer.top || inner.bottom > outer.bottom) element.scrollTop += inner.top - outer.top - outer.height / 3;
}

/** Code points between the start of an element and a place in one of its text nodes. */
function pointsBefore(element, node, offset) {
  const before = document.createRange();
  before.selectNodeContents(element);
  before.setEnd(node, offset);
  return countPoints(before.toString());
}

/** The offset under the mouse or a finger; null outside of the element. */
export function offsetAt(element, window, { clientX, clientY }) {
  const place = document.caretPositionFromPoint?.(clientX, clientY);
  const range = place ? null : document.caretRangeFromPoint?.(clientX, clientY); // older browsers
  const [node, offset] = place ? [place.offsetNode, place.offset] : [range?.startContainer, range?.startOffset];
  return node && element.contains(node) ? window.start + pointsBefore(element, node, offset) : null;
}

/** What the user has selected inside an element, as a range of code points; null if nothing is selected. */
export function selectedRange(element, window) {
  const selection = document.getSelection();
  if (!selection || selection.isCollapsed || !selection.rangeCount) return null;
  const range = selection.getRangeAt(0);
  if (!element.contains(range.startContainer) || !element.contains(range.endContainer)) return null;
  const start = window.start + pointsBefore(element, range.startContainer, range.startOffset);
  const end = start + countPoints(range.toString());
  return start < end ? [start, end] : null;
}
