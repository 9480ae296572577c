// Entity types: one button each, and a dialog where there are more than digits.

import { byId, element, setText } from "./dom.js";

const BUTTONS = 9;

/** Create the buttons, once; `onType` gets the number of a type, `onOther` opens the dialog. */
export function showTypes(labels, onType, onOther) {
  if (byId("types").children.length) return; // the labels of a queue do not change
  const buttons = labels.slice(0, BUTTONS).map(([label], i) => {
    const key = String(i + 1);
    const attributes = { type: "button", "aria-pressed": "false", "aria-keyshortcuts": key, "data-type": String(i) };
    const button = element("button", attributes, element("kbd", {}, key), " ", element("bdi", {}, label));
    button.classList.add(`type-${i % 8}`);
    button.addEventListener("click", () => onType(i));
    return button;
  });
  if (labels.length > BUTTONS) {
    const attributes = { type: "button", id: "other-type", "aria-keyshortcuts": "t" };
    const other = element("button", attributes, element("kbd", {}, "t"), " ", element("bdi", {}, "other …"));
    other.addEventListener("click", onOther);
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

// the dialog with all types
let choices = []; // names
let onChoose = () => {};
let matches = []; // numbers of the types whose name contains what was typed
let active = 0; // place in `matches`

/** Let the user choose among all types by typing a part of the name; `onChosen` gets the number of the type. */
export function askForType(labels, onChosen) {
  [choices, onChoose, active] = [labels, onChosen, 0];
  byId("type-search").value = "";
  showMatches();
  byId("type-dialog").showModal();
  byId("type-search").focus();
}

function showMatches() {
  const needle = byId("type-search").value.trim().toLowerCase();
  matches = [...choices.keys()].filter((number) => choices[number].toLowerCase().includes(needle));
  active = Math.max(Math.min(active, matches.length - 1), 0);
  const options = matches.map((number, place) => {
    const attributes = { role: "option", id: `type-option-${number}`, "aria-selected": String(place === active) };
    const option = element("li", attributes, element("bdi", {}, choices[number]));
    option.addEventListener("click", () => choose(number));
    return option;
  });
  byId("type-list").replaceChildren(...options);
  byId("type-search").setAttribute("aria-activedescendant", options[active]?.id ?? "");
  options[active]?.scrollIntoView({ block: "nearest" });
  setText("type-count", matches.length ? "" : "No type has this in its name.");
}

/** Not in the event `close`, which comes later than the next key may. */
function choose(number) {
  byId("type-dialog").close();
  onChoose(number);
}

byId("type-search").addEventListener("input", showMatches);
byId("type-search").addEventListener("keydown", (event) => {
  if (event.isComposing) return; // Enter ends the input of a Chinese word, for instance
  if (event.key === "Enter") {
    if (matches.length) choose(matches[active]);
  } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    active += event.key === "ArrowDown" ? 1 : -1;
    showMatches();
  } else return;
  event.preventDefault();
});
