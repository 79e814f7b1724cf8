// A Bloom filter step by step.  The engine makes and asks the filters; the state is in the URL.

import { Comparison } from "./comparison.js";
import { Engine } from "./engine.js";
import { bitsFor, expectedRate, probesFor } from "./inspect/bloom.js";
import { button, h, show } from "./inspect/dom.js";
import { NumberField, keyForm } from "./inspect/fields.js";
import { count, number } from "./inspect/format.js";
import { Player } from "./inspect/player.js";
import { aboutBit, percent, shown } from "./inspect/sentences.js";
import { Lines } from "./lines.js";
import { culprits, stepsOf } from "./lookup-steps.js";
import { NumberedBits } from "./numbered.js";
import { begin } from "./page.js";

const MOST_BITS = 2048;
const MOST_KEYS = 200;
const MOST_PER_KEY = 30;
const MOST_PROBES = 30;
const SHOWN_KEYS = 60;
const FIRST_KEYS = [
  "ant", "bat", "bee", "cat", "cow", "crab", "crow", "deer", "dog", "duck", "eel", "elk", "fox", "frog", "goat", "gnu",
  "hare", "hawk", "hen", "ibis", "jay", "koi", "lark", "lion", "mole", "moth", "newt", "owl", "pig", "ram", "seal", "toad",
];
const FIRST_QUERY = "ask=swan";
const MARKS = [["lab-clear", "0"], ["lab-set", "1"], ["lab-set lab-probed", "probed, 1"], ["lab-clear lab-probed", "probed, 0 (round)"]];
const PAUSES = [["slow", 1800], ["steady", 900], ["fast", 350]];

/** The state as a fragment of the URL, and back. */
function written({ keys, planned, perKey, probes, asked, adding, step, bit }) {
  const query = new URLSearchParams();
  if (JSON.stringify(keys) !== JSON.stringify(FIRST_KEYS)) {
    for (const key of keys) query.append("key", key);
    if (!keys.length) query.set("keys", "none");
  }
  query.set("n", planned);
  query.set("bits", perKey);
  if (probes !== null) query.set("k", probes);
  if (asked !== null) query.set(adding ? "added" : "ask", asked);
  if (asked !== null && step >= 0) query.set("step", step + 1);
  if (bit >= 0) query.set("bit", bit);
  return `#${query}`;
}

function read(hash) {
  const query = new URLSearchParams(hash.slice(1) || FIRST_QUERY);
  const whole = (name, least, most, otherwise) => {
    const value = Number(query.get(name) ?? NaN);
    return Number.isInteger(value) && value >= least && value <= most ? value : otherwise;
  };
  const given = [...new Set(query.getAll("key"))].slice(0, MOST_KEYS);
  const keys = given.length || query.get("keys") === "none" ? given : FIRST_KEYS;
  const added = query.get("added");
  const adding = added !== null && keys.includes(added);
  return {
    keys,
    planned: whole("n", 1, MOST_KEYS, 32),
    perKey: whole("bits", 1, MOST_PER_KEY, 10),
    probes: whole("k", 1, MOST_PROBES, null),
    asked: adding ? added : query.get("ask") ?? added,
    adding,
    step: whole("step", 1, 100, 0) - 1, // the last step, where none is named
    bit: whole("bit", 0, MOST_BITS - 1, -1),
  };
}

class BloomPage {
  constructor(place, engine) {
    this.engine = engine;
    this.state = read(location.hash);
    this.found = null; // the engine's last answer
    this.before = null; // the bits before a key was added
    this.steps = [];
    this.turn = 0;
    this.buildControls();
    this.buildPicture();
    this.comparison = new Comparison(engine);
    show(place, h("div", { class: "lab bloom" }, this.controls, this.picture), this.comparison.element);
    new ResizeObserver(() => this.layOut()).observe(this.stage);
    document.addEventListener("keydown", (event) => this.key(event));
    addEventListener("hashchange", () => {
      this.state = read(location.hash);
      this.fill();
      this.refresh();
    });
    this.fill();
    this.refresh();
  }

  buildControls() {
    const changed = () => this.change({
      planned: this.planned.value, perKey: Number(this.perKey.value),
      probes: this.follows.checked ? null : this.probes.value, step: -1, bit: -1,
    });
    this.perKey = h("input", { type: "range", min: "1", max: String(MOST_PER_KEY), id: "per-key", oninput: changed });
    this.perKeyShown = h("output", { for: "per-key" });
    this.planned = new NumberField("Keys planned, n", 1, MOST_KEYS, 32, 1, changed);
    this.probes = new NumberField("Probes, k", 1, MOST_PROBES, 6, 1, changed);
    this.follows = h("input", { type: "checkbox", checked: true, onchange: changed });
    this.sized = h("div", { class: "lab-note formulas" });
    const adding = keyForm("Add a key", "Add", (text) => this.add(text));
    this.addField = adding.field;
    this.chips = h("ul", { class: "lab-keys", "aria-label": "The keys; each is a button that asks for it" });
    this.counted = h("span", { class: "lab-note" });
    this.controls = h("div", { class: "lab-controls" },
      h("fieldset", {}, h("legend", {}, "The filter’s size"),
        h("label", { class: "lab-field", for: "per-key" }, h("span", {}, "Bits per key: ", this.perKeyShown), this.perKey),
        h("div", { class: "lab-row" }, this.planned.label, this.probes.label),
        h("label", { class: "lab-check" }, this.follows, " k follows the bits, as in LevelDB"),
        this.sized),
      h("fieldset", {}, h("legend", {}, "The keys in it"), adding.form,
        h("div", { class: "lab-row" },
          button("Add 10", () => this.makeUp(10)), button("Remove all", () => this.change({ keys: [], asked: null, adding: false, step: -1, bit: -1 })),
          button("Start over", () => { location.hash = ""; })),
        this.counted, this.chips));
  }

  buildPicture() {
    const asking = keyForm("Ask for a key", "Ask", (text) => this.ask(text));
    this.askField = asking.field;
    this.stranger = button("Find a false positive", () => this.findStranger());
    this.player = new Player({ label: "Steps of the lookup", onstep: (step) => this.change({ step }), pause: PAUSES[1][1] });
    this.pace = h("select", { "aria-label": "Pace", onchange: () => {
      this.player.stop();
      this.player.pause = Number(this.pace.value);
    } }, PAUSES.map(([name, pause]) => h("option", { value: pause, selected: name === "steady" }, name)));
    this.player.element.append(this.pace);
    this.now = h("div", { class: "now", role: "status" });
    this.grid = new NumberedBits("The filter's bits. The arrow keys move from bit to bit.", (bit) => this.change({ bit }));
    this.grid.root.addEventListener("pointerover", (event) => this.tellBit(Number(event.target.dataset?.bit ?? -1)));
    this.grid.root.addEventListener("pointerleave", () => this.tellBit());
    this.stage = h("div", { class: "lab-stage" }, this.grid.root);
    this.bit = h("p", { class: "lab-note", role: "status" });
    this.setters = h("ul", { class: "lab-keys setters", "aria-label": "The keys that set the bits of the false positive" });
    this.linked = h("div", { class: "linked" }, this.stage, this.setters, this.bit);
    this.lines = new Lines(this.linked);
    this.culprits = h("div", { class: "culprits" });
    this.picture = h("div", { class: "lab-picture" },
      h("div", { class: "asking" }, asking.form, this.stranger), this.player.element, this.now,
      h("p", { class: "lab-legend" }, MARKS.map(([names, text]) => h("span", {}, h("i", { class: `lab-mark ${names}` }), ` ${text}`))),
      this.linked, this.culprits);
  }

  // What a user does

  change(change) {
    this.state = { ...this.state, ...change };
    history.replaceState(null, "", written(this.state));
    this.fill();
    const moved = Object.keys(change).every((name) => name === "step" || name === "bit");
    if (moved) this.draw();
    else this.refresh();
  }

  add(text) {
    this.addField.value = "";
    if (this.state.keys.includes(text) || this.state.keys.length >= MOST_KEYS) {
      this.ask(text);
      return;
    }
    this.change({ keys: [...this.state.keys, text], asked: text, adding: true, step: 0, bit: -1 });
  }

  ask(text) {
    this.change({ asked: text, adding: false, step: 0, bit: -1 });
  }

  makeUp(more) {
    const keys = [...this.state.keys];
    const wanted = Math.min(keys.length + more, MOST_KEYS);
    for (let n = 1; keys.length < wanted; n++) {
      const key = `user ${((n * 7919) % 9973) + 1}`;
      if (!keys.includes(key)) keys.push(key);
    }
    this.change({ keys, asked: null, adding: false, step: -1, bit: -1 });
  }

  async findStranger() {
    this.stranger.disabled = true;
    try {
      const { key, tried } = await this.engine.ask("stranger", this.question());
      if (key === null) show(this.now, h("p", {}, `None of ${number(tried)} made-up words passes.`));
      else {
        this.change({ asked: key, adding: false, step: -1, bit: -1 });
        await this.refreshed;
        this.now.append(h("p", { class: "quiet" }, `It is the first of ${count(tried, "word")} that passes.`));
      }
    } catch (error) {
      this.fail(error);
    } finally {
      this.stranger.disabled = false;
    }
  }

  key(event) {
    const typing = event.target.closest("input:not([type=range]), textarea, select, .lab-bits");
    if (typing || event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key === " " && event.target.closest("button, a, summary, input")) return;
    if (event.target === this.perKey) return;
    if (this.player.key(event)) event.preventDefault();
  }

  // The filter

  size() {
    const { planned, perKey, probes } = this.state;
    const bits = Math.min(bitsFor(planned, perKey), MOST_BITS);
    return { bits, probes: probes ?? probesFor(perKey) };
  }

  question() {
    return { keys: this.state.keys, ...this.size() };
  }

  /** Show the state in the fields. */
  fill() {
    const { planned, perKey, probes, asked } = this.state;
    this.perKey.value = String(perKey);
    this.perKeyShown.textContent = String(perKey);
    if (document.activeElement !== this.planned.input) this.planned.write(planned);
    this.follows.checked = probes === null;
    this.probes.input.disabled = this.follows.checked;
    if (document.activeElement !== this.probes.input) this.probes.write(probes ?? probesFor(perKey));
    if (document.activeElement !== this.askField) this.askField.value = asked ?? "";
    this.tellSize();
  }

  tellSize() {
    const { planned, perKey, keys } = this.state;
    const { bits, probes } = this.size();
    const wanted = bitsFor(planned, perKey);
    const limited = wanted > bits ? ` (the page draws at most ${number(MOST_BITS)})` : planned * perKey < 64 ? " (64 at least)" : "";
    const follows = this.state.probes === null ? `⌊0.69 · ${perKey}⌋ = ` : "";
    show(this.sized,
      h("p", {}, h("i", {}, "m"), ` = ${number(planned)} · ${perKey} = ${number(bits)} bits${limited}`),
      h("p", {}, h("i", {}, "k"), ` = ${follows}${probes} probes`),
      h("p", {}, `with ${count(keys.length, "key")} in it, `, h("i", {}, "p"), ` ≈ ${percent(expectedRate(keys.length, bits, probes))} of absent keys pass`));
  }

  /** Ask the engine for the filter; only the newest answer is shown. */
  refresh() {
    const turn = ++this.turn;
    this.picture.classList.add("pending");
    this.layOut();
    this.refreshed = this.fetch(turn).catch((error) => this.fail(error));
    return this.refreshed;
  }

  async fetch(turn) {
    const { keys, asked, adding } = this.state;
    const question = this.question();
    const [found, before] = await Promise.all([
      this.engine.ask("bloom", { ...question, asked }),
      adding ? this.engine.ask("bloom", { ...question, keys: keys.filter((key) => key !== asked) }) : null,
    ]);
    if (turn !== this.turn) return;
    this.found = { ...found, question, array: bytesOf(found.hex) };
    this.before = before && bytesOf(before.hex);
    const start = this.before ?? this.found.array;
    this.steps = found.asked === null ? [] : stepsOf({ ...found.asked, text: asked }, question.bits, (position) => isSet(start, position), adding);
    this.picture.classList.remove("pending");
    this.draw();
    this.comparison.update({ ...question, array: this.found.array, perKey: this.state.perKey, asked });
  }

  fail(error) {
    show(this.now, h("p", { class: "trouble" }, error.message));
  }

  // The picture

  layOut() {
    const width = Math.max(220, Math.floor(this.stage.clientWidth));
    const layout = `${width} ${this.size().bits}`;
    if (layout === this.layout) return;
    this.layout = layout;
    this.grid.layOut(this.size().bits, width);
    this.color();
    this.lines.draw([]);
    if (this.found && this.found.question.bits === this.size().bits) this.drawLines();
  }

  /** The step that is shown: the last one, unless another is chosen. */
  get step() {
    return this.state.step < 0 ? this.steps.length - 1 : Math.min(this.state.step, this.steps.length - 1);
  }

  draw() {
    if (!this.found) return;
    this.player.set(this.step, this.steps.length);
    this.player.element.hidden = !this.steps.length;
    show(this.now, this.steps.length ? this.steps[this.step].words
      : h("p", {}, "Ask for a key, or add one: its hash and its probes are shown one after the other."));
    this.color();
    this.drawKeys();
    this.drawCulprits();
    this.grid.selected = this.state.bit;
    this.tellBit();
  }

  color() {
    if (!this.found || this.found.question.bits !== this.size().bits) {
      this.grid.color(() => false, []);
      return;
    }
    const probed = this.found.asked?.positions.slice(0, this.steps[this.step]?.probes ?? 0) ?? [];
    const array = this.before ?? this.found.array;
    const written = new Set(this.before ? probed : []);
    this.grid.selected = this.state.bit;
    this.grid.color((position) => isSet(array, position) || written.has(position), probed);
  }

  settersOf(position) {
    return this.state.keys.filter((_, at) => this.found?.keys[at]?.positions.includes(position));
  }

  tellBit(position = this.state.bit) {
    const bit = Number.isInteger(position) && position >= 0 ? position : this.state.bit;
    this.bit.textContent = aboutBit(this, bit);
    const setters = bit < 0 ? [] : this.settersOf(bit);
    for (const chip of this.chips.querySelectorAll("button")) chip.classList.toggle("setter", setters.includes(chip.dataset.key));
  }

  drawKeys() {
    const { keys } = this.state;
    const last = keys.slice(-SHOWN_KEYS);
    const chips = last.map((key) => h("li", {}, button(shown(key), () => this.ask(key), { "data-key": key })));
    if (keys.length > last.length) chips.unshift(h("li", {}, `${number(keys.length - last.length)} more, then`));
    show(this.chips, chips);
    const { ones, question } = this.found;
    this.counted.textContent = `${count(keys.length, "key")}; ${number(ones)} of ${number(question.bits)} bits are 1 (${percent(ones / question.bits)})`;
  }

  /** Of a false positive, who set its bits: in words, and as lines from the bits to the keys. */
  drawCulprits() {
    const { asked } = this.found;
    const wrong = asked?.may_match && !asked.present && this.step === this.steps.length - 1;
    const names = wrong ? [...new Set(asked.positions.flatMap((position) => this.settersOf(position)))] : [];
    this.setterChips = new Map(names.map((name) => [name, button(shown(name), () => this.ask(name))]));
    show(this.setters, [...this.setterChips.values()].map((chip) => h("li", {}, chip)));
    this.drawLines();
    show(this.culprits, wrong ? [
      h("h2", {}, "Who set its bits"),
      h("ol", {}, culprits(asked.positions, (position) => this.settersOf(position))),
    ] : []);
  }

  drawLines() {
    const bits = this.setterChips?.size ? [...new Set(this.found.asked.positions)] : [];
    this.lines.draw(bits.flatMap((bit) => this.settersOf(bit).map((name) => [this.grid.cells[bit], this.setterChips.get(name)])));
  }
}

function bytesOf(hex) {
  return Uint8Array.from(hex.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
}

function isSet(array, position) {
  return ((array[position >> 3] >> (position & 7)) & 1) === 1;
}

begin();
new BloomPage(document.getElementById("bloom"), new Engine(document.getElementById("engine")));
