// The filter lab's controls: numbers in a range, a choice, keys to type; and figures as text.

import { element } from "./draw.js";

const LONGEST = 32;

/** A field for a number from `least` to `most`; `onchange` is called when it holds one. */
export class NumberField {
  constructor(name, least, most, value, step, onchange) {
    this.least = least;
    this.most = most;
    this.value = value;
    this.whole = step !== "any";
    this.input = element("input", { type: "number", min: least, max: most, step, value, inputmode: "decimal" });
    this.label = element("label", { class: "lab-field" }, element("span", {}, name), this.input);
    this.input.addEventListener("input", () => {
      if (this.read() !== null) onchange();
    });
    this.input.addEventListener("change", () => this.write(this.value));
  }

  /** The number in the field, which is kept; null, and nothing kept, if it holds none in range. */
  read() {
    const number = Number(this.input.value);
    const fits = this.input.value !== "" && number >= this.least && number <= this.most;
    this.input.setAttribute("aria-invalid", String(!fits));
    if (!fits) return null;
    this.value = this.whole ? Math.round(number) : number;
    return this.value;
  }

  /** Show a number. */
  write(number) {
    this.value = number;
    this.input.value = String(number);
    this.input.setAttribute("aria-invalid", "false");
  }
}

/** Radio buttons; the value of the one that is chosen is in `value`. */
export class Choice {
  constructor(name, answers, value, onchange) {
    this.value = value;
    this.root = element("div", { class: "lab-choice" });
    for (const [value, text] of answers) {
      const input = element("input", { type: "radio", name, value });
      input.checked = value === this.value;
      input.addEventListener("change", () => {
        this.value = value;
        onchange();
      });
      this.root.append(element("label", { class: "lab-check" }, input, ` ${text}`));
    }
  }
}

/** A button. */
export function button(text, onclick) {
  const made = element("button", { type: "button" }, text);
  made.addEventListener("click", onclick);
  return made;
}

/** A form with a field for a key and a button; `onkey(text)` is called with what is entered. */
export function keyForm(name, verb, onkey) {
  const field = element("input", { type: "text", autocomplete: "off", spellcheck: "false", autocapitalize: "off" });
  const label = element("label", { class: "lab-field lab-wide" }, element("span", {}, name), field);
  const form = element("form", { class: "lab-key-form" }, label, element("button", {}, verb));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (field.value !== "") onkey(field.value);
  });
  return { form, field };
}

/** A key on one line: control characters escaped, and cut if it is long. */
export function shown(text) {
  const characters = Array.from(text);
  const begin = characters.slice(0, LONGEST).join("").replace(/[\p{C}\p{Zl}\p{Zp}]/gu, escaped);
  return characters.length > LONGEST ? `${begin}… (${number(characters.length)} characters)` : begin;
}

function escaped(character) {
  return `\\u${character.codePointAt(0).toString(16).padStart(4, "0")}`;
}

/** Bytes as text: UTF-8 if they are, or else with the other bytes as \xNN. */
export function asText(data) {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(data);
  } catch {
    const printable = (byte) => byte >= 0x20 && byte < 0x7f;
    return Array.from(data, (byte) => (printable(byte) ? String.fromCharCode(byte) : `\\x${hex([byte])}`)).join("");
  }
}

/** Bytes in hexadecimal. */
export function hex(data) {
  return Array.from(data, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Keys in a sentence: the first three, and how many more. */
export function listed(texts) {
  const first = texts.slice(0, 3).map((text) => `“${shown(text)}”`).join(", ");
  return texts.length > 3 ? `${first} and ${number(texts.length - 3)} more` : first;
}

/** A number with its thousands separated. */
export function number(value) {
  return value.toLocaleString("en");
}

/** A share as percent, with two digits that count. */
export function percent(share) {
  if (share === 0 || share === 1) return `${100 * share}%`;
  return `${(100 * share).toLocaleString("en", { maximumSignificantDigits: share < 0.1 ? 2 : 3 })}%`;
}
