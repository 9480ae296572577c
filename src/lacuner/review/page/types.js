// Entity types: one button each, and a dialog where there are more than digits.

import { byId, element } from "./dom.js";

const BUTTONS = 9;

/** Create the buttons, once; `onChoose` gets the number of a type. */
export function showTypes(app, onChoose) {
  const { labels } = app.summary;
  if (byId("types").children.length) return; // the labels of a queue do not change
  const buttons = labels.slice(0, BUTTONS).map(([label], i) => {
    const key = String(i + 1);
    const attributes = { type: "button", "aria-pressed": "false", "aria-keyshortcuts": key, "data-type": String(i) };
    const button = element("button", attributes, element("kbd", {}, key), " ", element("bdi", {}, label));
    button.classList.add(`type-${i % 8}`);
    button.addEventListener("click", () => onChoose(i));
    return button;
  });
  if (labels.length > BUTTONS) {
    const attributes = { type: "button", id: "other-type", "aria-keyshortcuts": "t" };
    const other = element("button", attributes, element("kbd", {}, "t"), " ", element("bdi", {}, "other …"));
    other.addEventListener("click", app.chooseType);
    buttons.push(other);
  }
  byId("types").replaceChildren(...buttons);
}

/** Mark the button of the current type; types without a button are named on the last one. */
export function markType(number, labels) {
  for (const button of byId("types").querySelectorAll("[data-type]")) {
    button.setAttribute("aria-pressed", String(Number(button.dataset.type) === number));
  }
  const other = byId("other-type");
  if (!other) return;
  const isOther = number !== null && number >= BUTTONS;
  other.setAttribute("aria-pressed", String(isOther));
  other.lastElementChild.textContent = isOther ? labels[number][0] : "other …";
}

/** Let the user choose among all types by typing a part of the name; null if the dialog is closed. */
export function askForType(labels) {
  const dialog = byId("type-dialog");
  const search = byId("type-search");
  const list = byId("type-list");
  let matches = [];
  let active = 0;

  function show() {
    const needle = search.value.toLowerCase();
    matches = labels.map((label, i) => [label, i]).filter(([label]) => label.toLowerCase().includes(needle));
    active = Math.min(active, Math.max(matches.length - 1, 0));
    list.replaceChildren(
      ...matches.map(([label, i], place) => {
        const attributes = { role: "option", id: `type-option-${i}`, "aria-selected": String(place === active) };
        const option = element("li", attributes, element("bdi", {}, label));
        option.addEventListener("click", () => dialog.close(String(i)));
        return option;
      }),
    );
    const chosen = list.children[active];
    search.setAttribute("aria-activedescendant", chosen?.id ?? "");
    chosen?.scrollIntoView({ block: "nearest" });
  }

  function onKey(event) {
    if (event.key === "ArrowDown") active = Math.min(active + 1, matches.length - 1);
    else if (event.key === "ArrowUp") active = Math.max(active - 1, 0);
    else if (event.key === "Enter" && matches.length) dialog.close(String(matches[active][1]));
    else return;
    event.preventDefault();
    show();
  }

  return new Promise((resolve) => {
    const listening = new AbortController();
    search.addEventListener("input", show, { signal: listening.signal });
    search.addEventListener("keydown", onKey, { signal: listening.signal });
    dialog.addEventListener(
      "close",
      () => {
        listening.abort();
        resolve(dialog.returnValue === "" ? null : Number(dialog.returnValue));
      },
      { once: true },
    );
    search.value = "";
    dialog.returnValue = "";
    show();
    dialog.showModal();
    search.focus();
  });
}
