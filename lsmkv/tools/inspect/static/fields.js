// The filter lab's controls: numbers in a range, a choice, and keys to type.

import { element } from "./draw.js";

/** A field for a number from `least` to `most`; `onchange` is called when it holds one.
 *
 * A number out of range is said to be, with those that are allowed, and the last one stays in force.
 */
export class NumberField {
  constructor(name, least, most, value, step, onchange) {
    this.least = least;
    this.most = most;
    this.value = value;
    this.whole = step !== "any";
    this.input = element("input", { type: "number", min: least, max: most, step, value, inputmode: "decimal" });
    this.allowed = element("small", { class: "lab-allowed", role: "status" });
    this.label = element("label", { class: "lab-field" }, element("span", {}, name), this.input, this.allowed);
    this.input.addEventListener("input", () => {
      if (this.read() !== null) onchange();
    });
    this.input.addEventListener("change", () => {
      if (this.read() === null) this.input.value = String(this.value); // and what is allowed stays in sight
      else this.write(this.value);
    });
  }

  /** The number in the field, which is kept; null, and nothing kept, if it holds none in range. */
  read() {
    const number = Number(this.input.value);
    const fits = this.input.value !== "" && number >= this.least && number <= this.most;
    this.input.setAttribute("aria-invalid", String(!fits));
    const [least, most] = [this.least, this.most].map((one) => one.toLocaleString("en", { maximumFractionDigits: 6 }));
    this.allowed.textContent = fits ? "" : `Allowed: ${least} to ${most}.`;
    if (!fits) return null;
    this.value = this.whole ? Math.round(number) : number;
    return this.value;
  }

  /** Show a number. */
  write(number) {
    this.value = number;
    this.input.value = String(number);
    this.input.setAttribute("aria-invalid", "false");
    this.allowed.textContent = "";
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
