// The filter lab: a Bloom filter that is built and asked in the page, without a server.
//
// A filter is sized from bits a key, from a wanted rate, or from its bits.  Keys are added, a query
// shows the bits that it looks at, and a bit shows the keys that set it.  Curves compare what is
// measured, on absent keys that are asked after each key, with what the formulas expect.

import { LEAST_BITS, MOST_PROBES, bitsFor, bitsPerKeyFor, expectedFill, expectedRate, probesFor } from "./bloom.js";
import { BitGrid, curve, element } from "./draw.js";
import { Choice, NumberField, button, keyForm } from "./fields.js";
import { number } from "./format.js";
import { aboutBit, aboutQuery, aboutSize, figuresOf, percent, shown } from "./sentences.js";
import { ASKED, Trial, hex, keyOf } from "./trial.js";

const MOST_BITS = 2048;
const MOST_PER_KEY = 64;
const MOST_KEYS = 500;
const POINTS = 60;
const SHOWN_KEYS = 40;
const RATES = [1, 0.1, 0.01, 0.001, 0.0001];
const FIRST_KEYS = ["ant", "bee", "cow", "dog", "eel", "fox", "gnu", "hen"];

/** Draw a lab into `place`, which it empties, and return it.
 *
 * `options` are what it begins with: `keys`, texts or bytes; `bitsPerKey` and `expected`, the number
 * of keys that the filter is made for; or `bits` and `probes`, those of a filter that is to be shown.
 * The lab's `add(text)`, `ask(text)` and `trial` are for other scripts.
 */
export function mountLab(place, options = {}) {
  return new Lab(place, options);
}

class Lab {
  constructor(place, { keys = FIRST_KEYS, bitsPerKey = 10, expected = 32, bits, probes }) {
    this.trial = new Trial(MOST_KEYS);
    this.query = null; // {text, data}: what is asked for
    this.made = 0; // how many keys were made up
    this.buildControls({ bitsPerKey, expected, bits, probes });
    this.buildPicture();
    place.replaceChildren(element("div", { class: "lab" }, this.controls, this.picture));
    this.resize();
    for (const key of keys) this.trial.include(key);
    this.draw();
    new ResizeObserver(() => this.layOut()).observe(this.stage);
  }

  buildControls({ bitsPerKey, expected, bits, probes }) {
    const change = () => {
      this.resize();
      this.draw();
    };
    const answers = [["perKey", "bits a key"], ["rate", "a rate"], ["bits", "its bits"]];
    this.mode = new Choice("lab-mode", answers, bits === undefined ? "perKey" : "bits", change);
    this.perKey = new NumberField("Bits a key", 1, MOST_PER_KEY, bitsPerKey, 1, change);
    this.rate = new NumberField("Rate wanted, %", 0.0001, 60, 1, "any", change);
    this.bits = new NumberField("Bits, m", LEAST_BITS, MOST_BITS, bits ?? 320, 8, change);
    this.expected = new NumberField("Keys expected, n", 1, MOST_KEYS, expected, 1, change);
    this.probes = new NumberField("Probes, k", 1, MOST_PROBES, probes ?? 6, 1, change);
    this.follows = element("input", { type: "checkbox" });
    this.follows.checked = probes === undefined;
    this.follows.addEventListener("change", change);
    this.sized = element("p", { class: "lab-note" });
    const adding = keyForm("Add a key", "Add", (text) => this.add(text));
    this.addField = adding.field;
    this.chips = element("ul", { class: "lab-keys", "aria-label": "The keys; each is a button that looks it up" });
    const follow = element("label", { class: "lab-check" }, this.follows, " k follows, as in LevelDB");
    this.controls = element(
      "div",
      { class: "lab-controls" },
      element(
        "fieldset",
        {},
        element("legend", {}, "The filter's size is set by"),
        this.mode.root,
        element("div", { class: "lab-row" }, this.perKey.label, this.rate.label, this.bits.label, this.expected.label),
        element("div", { class: "lab-row" }, this.probes.label, follow),
        this.sized,
      ),
      element(
        "fieldset",
        {},
        element("legend", {}, "The keys in it"),
        adding.form,
        element(
          "div",
          { class: "lab-row" },
          button("Add 1", () => this.makeUp(1)),
          button("Add 10", () => this.makeUp(10)),
          button("Start over", () => this.clear()),
        ),
        this.chips,
      ),
    );
  }

  buildPicture() {
    const asking = keyForm("Ask for a key", "Ask", (text) => this.ask(text));
    this.askField = asking.field;
    this.askField.addEventListener("input", () => this.ask(this.askField.value));
    this.answer = element("p", { class: "lab-answer", role: "status" });
    this.grid = new BitGrid("The filter's bits. The arrow keys move from bit to bit.", () => this.tellBit());
    this.stage = element("div", { class: "lab-stage" }, this.grid.root);
    this.bit = element("p", { class: "lab-note", role: "status" });
    this.figures = element("dl", { class: "lab-figures" });
    this.curves = element("div", { class: "lab-curves" });
    this.bytes = element("code", { class: "lab-bytes" });
    const marks = [["lab-clear", "0"], ["lab-set", "1"], ["lab-set lab-probed", "probed, 1"], ["lab-clear lab-probed", "probed, 0"]];
    const legend = marks.map(([names, text]) =>
      element("span", {}, element("i", { class: `lab-mark ${names}` }), ` ${text}`));
    this.picture = element(
      "div",
      { class: "lab-picture" },
      asking.form,
      this.answer,
      element("p", { class: "lab-legend" }, ...legend),
      this.stage,
      this.bit,
      this.figures,
      this.curves,
      element("details", {}, element("summary", {}, "The filter's bytes, as a table holds them"), this.bytes),
    );
  }

  // What a user does

  /** Add a key and show its bits. */
  add(text) {
    this.trial.include(text);
    this.addField.value = "";
    this.ask(text);
  }

  /** Look a key up; an empty text takes the last query back. */
  ask(text) {
    this.look(text === "" ? null : keyOf(text));
  }

  /** Look up a key, `{text, data}`, or none. */
  look(query) {
    this.query = query;
    const text = query === null ? "" : query.text;
    if (this.askField.value !== text) this.askField.value = text;
    this.draw();
  }

  /** Add so many keys that are not there yet. */
  makeUp(count) {
    const wanted = Math.min(this.trial.keys.length + count, MOST_KEYS);
    while (this.trial.keys.length < wanted) this.trial.include(`user ${((this.made++ * 7919) % 9973) + 1}`);
    this.draw();
  }

  clear() {
    this.trial.clear();
    this.made = 0;
    this.ask("");
  }

  /** Make the filter that the fields ask for, with the keys in it. */
  resize() {
    const mode = this.mode.value;
    for (const [name, field] of [["perKey", this.perKey], ["rate", this.rate], ["bits", this.bits]]) {
      field.label.hidden = name !== mode;
    }
    const expected = this.expected.value;
    const wantedBits = 8 * Math.ceil(this.bits.value / 8);
    let perKey = this.perKey.value;
    if (mode === "rate") perKey = bitsPerKeyFor(this.rate.value / 100, expected, Math.min(MOST_PER_KEY, MOST_BITS / expected));
    if (mode === "bits") perKey = wantedBits / expected;
    const wanted = mode === "bits" ? wantedBits : bitsFor(expected, perKey);
    const bits = Math.min(wanted, MOST_BITS);
    this.probes.input.disabled = this.follows.checked;
    if (this.follows.checked) this.probes.write(probesFor(perKey));
    this.trial.resize(bits, this.probes.value);
    const cut = wanted > MOST_BITS ? ` (Limited: the lab draws at most ${number(MOST_BITS)} bits.)` : "";
    const short = mode === "rate" && expectedRate(expected, bits, this.probes.value) > this.rate.value / 100
      ? " (With so few keys the requested rate is not reached.)" : "";
    this.sized.textContent = aboutSize(this.trial.filter, expected) + (cut || short);
    this.layOut();
  }

  // The picture

  layOut() {
    const width = Math.max(220, Math.floor(this.stage.clientWidth));
    const layout = `${width} ${this.trial.filter.bits}`;
    if (layout === this.layout) return;
    this.layout = layout;
    this.grid.layOut(this.trial.filter.bits, width);
    this.color();
  }

  draw() {
    const { kind, words } = aboutQuery(this.trial, this.query);
    this.answer.textContent = words;
    this.answer.dataset.kind = kind;
    this.color();
    this.tellBit();
    this.drawKeys();
    const rows = figuresOf(this.trial);
    const cells = rows.map(([term, value]) => element("div", {}, element("dt", {}, term), element("dd", {}, value)));
    this.figures.replaceChildren(...cells);
    this.drawCurves();
    this.bytes.textContent = hex(this.trial.filter.toBytes());
  }

  color() {
    const probed = this.query === null ? [] : this.trial.probed(this.query.data);
    this.grid.color((position) => this.trial.filter.isSet(position), probed);
  }

  tellBit() {
    this.bit.textContent = aboutBit(this.trial, this.grid.selected);
  }

  drawKeys() {
    const { keys } = this.trial;
    const last = keys.slice(-SHOWN_KEYS);
    const chips = last.map((key) => element("li", {}, button(shown(key.text), () => this.look(key))));
    if (keys.length > last.length) chips.unshift(element("li", {}, `${number(keys.length - last.length)} more, then`));
    this.chips.replaceChildren(...chips);
  }

  drawCurves() {
    const { filter, history, passed } = this.trial;
    const { bits, probes } = filter;
    const keys = history.length;
    const every = Math.ceil(keys / POINTS);
    const points = history.filter((point) => point.keys % every === 0 || point.keys === keys);
    const shared = { most: Math.max(keys, Math.ceil(1.5 * this.expected.value), 2), now: keys };
    const fill = curve({
      ...shared,
      title: "Fill",
      description: `${percent(filter.fill)} of the bits are 1 with ${number(keys)} keys`,
      ticks: [0, 0.25, 0.5, 0.75, 1].map((share) => [share, percent(share)]),
      place: (share) => share,
      expected: (count) => expectedFill(count, bits, probes),
      measured: points.map((point) => [point.keys, point.fill]),
    });
    const rate = curve({
      ...shared,
      title: "False-positive rate",
      description: `${percent(passed / ASKED)} of absent keys pass with ${number(keys)} keys`,
      ticks: RATES.map((one) => [one, percent(one)]),
      place: (one) => 1 + Math.log10(one) / (RATES.length - 1),
      expected: (count) => expectedRate(count, bits, probes),
      measured: points.map((point) => [point.keys, point.passed / ASKED]),
    });
    this.curves.replaceChildren(
      element("figure", {}, element("figcaption", {}, "Bits that are 1: expected (line), measured (dots)"), fill),
      element("figure", {}, element("figcaption", {}, "Absent keys that pass: expected (line), measured (dots)"), rate),
    );
  }
}
