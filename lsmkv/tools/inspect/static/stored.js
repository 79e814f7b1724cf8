// A table's own filter: its bits as they are stored, which keys set them, and what it answers.

import { leveldbHash, positionsOf } from "./bloom.js";
import { answered, ask, isReport } from "./data.js";
import { button, figure, h, shortKey, show } from "./dom.js";
import { BitGrid } from "./draw.js";
import { keyForm } from "./fields.js";
import { bytes, count, number } from "./format.js";
import { listed, percent, shown } from "./sentences.js";
import { hex, keyOf } from "./trial.js";

const DRAWN = 4096;
const MOST_PROBES = 30; // a number beyond is reserved, and answers maybe to all
const MOST_TABLES = 1000;
const MARKS = [["lab-clear", "0"], ["lab-set", "1"], ["lab-set lab-probed", "probed, 1"], ["lab-clear lab-probed", "probed, 0"]];

/** The part of the lab that shows one filter of one table. */
export class Stored {
  constructor(page) {
    this.page = page;
    this.query = {};
    this.data = null;
    this.tables = null;
    this.again = "To the tables of now";
    this.choice = h("select", { onchange: () => this.go({ name: this.choice.value }) });
    this.before = button("←", () => this.go({ n: this.data.n - 1 }), { "aria-label": "The filter before" });
    this.next = button("→", () => this.go({ n: this.data.n + 1 }), { "aria-label": "The next filter" });
    this.where = h("span", { class: "quiet" });
    this.figures = h("dl", { class: "figures" });
    this.note = h("p", { class: "quiet" });
    const asking = keyForm("Ask it for a key", "Ask", (text) => this.look(keyOf(text).data));
    this.field = asking.field;
    this.field.addEventListener("input", () => this.answer(this.field.value === "" ? null : keyOf(this.field.value).data));
    this.told = h("p", { class: "lab-answer", role: "status" });
    this.grid = new BitGrid("The filter's bits. The arrow keys go from bit to bit.", (bit) => this.go({ bit: bit < 0 ? undefined : bit }));
    this.stage = h("div", { class: "lab-stage" }, this.grid.root);
    this.bit = h("p", { class: "lab-note", role: "status" });
    this.keysNote = h("p", { class: "lab-note" });
    this.keys = h("ul", { class: "lab-keys", "aria-label": "The keys; each is a button that asks for it" });
    this.lab = h("div", { class: "lab" },
      h("div", { class: "lab-controls" }, h("fieldset", {}, h("legend", {}, "The keys in it"), this.keysNote, this.keys)),
      h("div", { class: "lab-picture" }, asking.form, this.told,
        h("p", { class: "lab-legend" }, MARKS.map(([names, text]) =>
          h("span", {}, h("i", { class: `lab-mark ${names}` }), ` ${text}`))),
        this.stage, this.bit));
    this.element = h("div", {},
      h("div", { class: "ask" },
        h("label", { class: "grow" }, h("span", {}, "Table"), this.choice),
        this.before, this.next, this.where),
      this.figures, this.note, this.lab);
    this.observer = new ResizeObserver(() => this.layOut());
    this.observer.observe(this.stage);
  }

  /** Change the state that is in the URL. */
  go(change) {
    const { name, n, bit, hex: key } = { name: this.data?.name, ...this.query, ...change };
    const kept = change.name !== undefined ? { name } : change.n !== undefined ? { name, n, hex: key } : { name, n, bit, hex: key };
    this.page.go("filters", { show: "table", ...kept }, { replace: true });
  }

  async update(query) {
    this.query = query;
    try {
      if (this.tables === null) await this.fillChoice();
      const name = query.name ?? this.choice.value;
      this.element.firstChild.hidden = !name;
      if (!name) throw new Error(isReport ? "This report has no filters." : `The store has no tables yet, and so no filters. ${this.unflushed}`);
      if (this.data?.name !== name || this.data.n !== Number(query.n ?? 0)) {
        const found = await ask("filter", { name, n: query.n ?? 0 });
        if (this.query !== query) return;
        this.take(found);
      }
      this.lab.hidden = !this.data.bits;
      const asked = query.hex === undefined ? null : bytesOf(query.hex);
      if (document.activeElement !== this.field) this.write(asked);
      this.answer(asked);
      const bit = Number(query.bit ?? -1);
      if (bit !== this.grid.selected) this.grid.select(bit);
      this.tellBit();
    } catch (error) {
      this.lab.hidden = true;
      this.page.fail(error);
    }
  }

  async fillChoice() {
    const { levels, facts } = await ask("levels");
    this.unflushed = facts.memtable?.where ?? "";
    const held = new Set(answered("filter").map((one) => one.name));
    const tables = levels.flatMap((level) => level.tables.map((table) => [level.level, table.name]))
      .filter(([, name]) => !isReport || held.has(name)).slice(0, MOST_TABLES);
    if (JSON.stringify(tables) === JSON.stringify(this.tables)) return; // the choice may be open
    this.tables = tables;
    show(this.choice, this.tables.map(([level, name]) => h("option", { value: name }, `${name}, level ${level}`)));
  }

  /** The store has changed: a table is as it was, unless a compaction has removed it. */
  async follow({ level }) {
    if (!this.data) {
      this.tables = null;
      this.page.clear();
      await this.update(this.query);
      return null;
    }
    if (level === null) return `${this.data.name} is in the store no more: a compaction has taken it out. Its filter is as it was.`;
    await this.fillChoice();
    this.choose(this.data.name);
    return null;
  }

  watches() {
    return this.data ? { table: this.data.name } : {};
  }

  /** Begin again with the tables that the store has now. */
  reload() {
    this.tables = null;
    this.data = null;
    this.page.go("filters", { show: "table" }, { replace: true });
  }

  choose(name) {
    if (!this.tables.some(([, one]) => one === name)) {
      this.choice.append(h("option", { value: name }, name));
      this.tables.push([null, name]);
    }
    this.choice.value = name;
  }

  take(found) {
    this.data = found;
    this.array = bytesOf(found.hex);
    for (const key of found.keys) key.positions = found.bits ? positionsOf(key.hash, found.probes, found.bits) : [];
    this.choose(found.name);
    this.before.disabled = found.n === 0 || !this.holds(found.n - 1);
    this.next.disabled = found.n + 1 >= found.filters || !this.holds(found.n + 1);
    show(this.where, `filter ${number(found.n + 1)} of ${number(found.filters)}`);
    this.describe();
    this.layout = "";
    this.grid.selected = -1;
    this.layOut();
    const chips = found.keys.map((key) => h("li", {}, button(shortKey(key), () => this.lookAt(key))));
    show(this.keys, chips);
    const many = found.more_keys ? `The first ${number(found.keys.length)} keys; it has more.` : count(found.keys.length, "key");
    show(this.keysNote, many);
  }

  holds(n) {
    return !isReport || answered("filter").some((one) => one.name === this.data.name && one.n === String(n));
  }

  describe() {
    const { data } = this;
    show(this.figures,
      figure("covers", data.kind === "table" ? "the whole table" : `blocks from ${number(data.first)} to ${number(data.last)}`),
      figure("policy", h("code", {}, data.policy)), figure("size", bytes(data.bytes)),
      data.bits ? [figure("bits, m", number(data.bits)), figure("probes, k", number(data.probes)),
        figure("bits a key", data.more_keys ? "–" : (data.bits / Math.max(1, data.keys.length)).toFixed(1)),
        figure("false positives, by its fill", percent(data.rate))] : null);
    const notes = [];
    if (!data.bits) notes.push("It is of a policy that is not known here, so its bits are not drawn.");
    else if (data.probes > MOST_PROBES) notes.push("So many probes are reserved: such a filter answers maybe to every key.");
    if (data.bits > DRAWN) notes.push(`The first ${number(DRAWN)} bits are drawn.`);
    show(this.note, notes.join(" "));
  }

  layOut() {
    if (!this.data?.bits || !this.stage.clientWidth) return;
    const drawn = Math.min(this.data.bits, DRAWN);
    const width = Math.max(220, Math.floor(this.stage.clientWidth));
    if (this.layout === `${width} ${drawn}`) return;
    this.layout = `${width} ${drawn}`;
    this.grid.layOut(drawn, width);
    this.colour();
  }

  /** Whether a bit is set; undefined for one that did not come. */
  isSet(position) {
    const byte = this.array[position >> 3];
    return byte === undefined ? undefined : ((byte >> (position & 7)) & 1) === 1;
  }

  colour() {
    this.grid.colour((position) => this.isSet(position), this.probed ?? []);
  }

  // What is asked

  /** Show the key that is asked for in its field, if it can be typed there. */
  write(data) {
    const text = data === null ? "" : keyOf(data).text;
    this.field.value = data !== null && hex(keyOf(text).data) === hex(data) ? text : "";
  }

  look(data) {
    this.go({ hex: hex(data) });
  }

  lookAt(key) {
    if (key.hex !== undefined) this.go({ hex: key.hex });
    else this.tell(key.positions, shortKey(key), true);
  }

  /** Look a key up; null takes the last one back. */
  answer(data) {
    if (!this.data?.bits) return;
    if (data === null) {
      this.probed = [];
      this.told.dataset.kind = "";
      show(this.told, "Type a key, or choose one: the bits that a lookup probes are marked.");
      this.colour();
      return;
    }
    const positions = positionsOf(leveldbHash(data), this.data.probes, this.data.bits);
    const text = hex(data);
    const same = this.data.keys.find((key) => key.hex === text);
    this.tell(positions, same ? shortKey(same) : shown(keyOf(data).text), same !== undefined);
  }

  tell(positions, text, isKey) {
    this.probed = positions;
    const name = `“${text}”`;
    const clear = this.data.probes > MOST_PROBES ? undefined : positions.find((position) => this.isSet(position) === false);
    const unknown = positions.some((position) => this.isSet(position) === undefined);
    const all = this.data.keys.every((key) => key.hex !== undefined) && !this.data.more_keys;
    let kind = "maybe";
    let words;
    if (clear !== undefined) {
      kind = "no";
      words = `No: ${name} is not there, since bit ${number(clear)} is 0. The block is not read.`;
    } else if (unknown) words = `${name} probes bits beyond those that are shown here.`;
    else if (isKey) words = `Maybe: all its bits are 1. ${name} is one of its keys.`;
    else if (all) {
      kind = "wrong";
      words = `Maybe: all its bits are 1. ${name} is not one of its keys: a false positive, and a wasted read.`;
    } else words = `Maybe: all its bits are 1. ${name} is not among the keys that are listed here.`;
    this.told.dataset.kind = kind;
    show(this.told, words);
    this.colour();
  }

  tellBit() {
    const position = this.grid.selected;
    if (position < 0) {
      show(this.bit, "Click a bit, or go to it with the arrow keys, to see which keys set it.");
      return;
    }
    const setters = this.data.keys.filter((key) => key.positions.includes(position)).map(shortKey);
    const some = this.data.more_keys ? " (and perhaps by keys that are not listed here)" : "";
    let what = `is 1, set by ${listed(setters)}${some}.`;
    if (!setters.length) what = this.isSet(position) ? "is 1, set by a key that is not listed here." : "is 0: no key set it.";
    show(this.bit, `Bit ${number(position)}, in byte ${number(position >> 3)}, ${what}`);
  }

  twin() {
    return this.data ? ["filter", { name: this.data.name, n: this.data.n }] : ["levels", {}];
  }

  close() {
    this.observer.disconnect();
  }
}

function bytesOf(text) {
  return Uint8Array.from(text.match(/[0-9a-fA-F]{2}/g) ?? [], (pair) => parseInt(pair, 16));
}
