// A table's own filter: its bits or slots as they are stored, which keys they are of, what it answers.

import { leveldbHash, positionsOf } from "./bloom.js";
import { answered, ask, holds, isReport } from "./data.js";
import { button, figure, h, shortKey, show } from "./dom.js";
import { BitGrid } from "./draw.js";
import { keyForm } from "./fields.js";
import { bytes, count, number } from "./format.js";
import { hexByte, probedBits, xorSum } from "./probes.js";
import { listed, percent, shown } from "./sentences.js";
import { SlotGrid } from "./slots.js";
import { hex, keyOf } from "./trial.js";

const DRAWN = 4096;
const DRAWN_SLOTS = 1024;
const NEAR = 64; // slots around one that is read
const MOST_PROBES = 30; // a number beyond is reserved, and answers maybe to all
const MOST_TABLES = 1000;
const MARKS = [["lab-clear", "0"], ["lab-set", "1"], ["lab-set lab-probed", "probed, 1"], ["lab-clear lab-probed", "probed, 0"]];
const SLOT_MARKS = [["lab-clear", "a slot: one byte"], ["lab-set lab-probed", "read for the key"]];

/** The part of the lab that shows one filter of one table. */
export class Stored {
  constructor(page) {
    this.page = page;
    this.query = {};
    this.data = null;
    this.held = ""; // the question that `data` answers
    this.asking = null;
    this.tables = null;
    this.again = "Show the current tables";
    this.choice = h("select", { onchange: () => this.go({ name: this.choice.value }) });
    this.before = button("←", () => this.go(this.data.before), { "aria-label": "The previous filter" });
    this.next = button("→", () => this.go(this.data.next), { "aria-label": "The next filter" });
    this.where = h("span", { class: "quiet", title: "The number is the one in 'lsmkv dump'" });
    this.figures = h("dl", { class: "figures" });
    this.damage = h("section", { class: "card damaged", "aria-label": "Damage", hidden: true });
    this.note = h("p", { class: "quiet" });
    const asking = keyForm("Ask it for a key", "Ask", (text) => this.look(keyOf(text).data));
    this.field = asking.field;
    this.field.addEventListener("input", () => this.answer(this.field.value === "" ? null : keyOf(this.field.value).data));
    this.sentence = h("p", { class: "lab-answer", role: "status" });
    this.sum = h("p", { class: "lab-sum", hidden: true });
    const select = (bit) => this.go({ bit: bit < 0 ? undefined : bit });
    this.bits = new BitGrid("The filter's bits. The arrow keys move from bit to bit.", select);
    this.slots = new SlotGrid("The filter's slots. The arrow keys move from slot to slot.", select);
    this.stage = h("div", { class: "lab-stage" });
    this.marks = h("p", { class: "lab-legend" });
    this.bit = h("p", { class: "lab-note", role: "status" });
    this.keysNote = h("p", { class: "lab-note" });
    this.keys = h("ul", { class: "lab-keys", "aria-label": "The keys; each is a button that asks for it" });
    this.lab = h("div", { class: "lab" },
      h("div", { class: "lab-controls" }, h("fieldset", {}, h("legend", {}, "The keys in it"), this.keysNote, this.keys)),
      h("div", { class: "lab-picture" }, asking.form, this.sentence, this.sum, this.marks, this.stage, this.bit));
    this.element = h("div", {},
      h("div", { class: "ask" },
        h("label", { class: "grow" }, h("span", {}, "Table"), this.choice),
        this.before, this.next, this.where),
      this.damage, this.figures, this.note, this.lab);
    this.observer = new ResizeObserver(() => this.layOut());
    this.observer.observe(this.stage);
  }

  /** Change the state that is in the URL. */
  go(change) {
    const { name, n, block, bit, hex: key } = { name: this.data?.name, ...this.query, ...change };
    let kept = { name, n, block, bit, hex: key };
    if (change.name !== undefined) kept = { name };
    else if (change.n !== undefined) kept = { name, n, block, hex: key };
    this.page.go("filters", { show: "table", ...kept }, { replace: true });
  }

  async update(query) {
    this.query = query;
    try {
      if (this.tables === null) await this.fillChoice();
      const name = query.name ?? this.choice.value;
      this.element.firstChild.hidden = !name;
      if (!name) throw new Error(isReport ? "This report has no filters." : `The store has no tables yet, so it has no filters. ${this.unflushed}`);
      const question = { name, n: query.n ?? 0, ...(query.block === undefined ? {} : { block: query.block }) };
      if (this.held !== JSON.stringify(question)) {
        this.forget(name);
        const found = await ask("filter", question);
        if (this.query !== query) return;
        this.held = JSON.stringify(question);
        this.take(found);
      }
      this.lab.hidden = !this.grid;
      const asked = query.hex === undefined ? null : bytesOf(query.hex);
      if (document.activeElement !== this.field) this.write(asked);
      await this.answer(asked);
      const bit = Number(query.bit ?? -1);
      if (this.grid && bit !== this.grid.selected) this.grid.select(bit);
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
    if (level === null) return `${this.data.name} is no longer in the store: a compaction has removed it. Its filter is shown as it was read.`;
    await this.fillChoice();
    this.choose(this.data.name);
    return null;
  }

  watches() {
    return this.data ? { table: this.data.name } : {};
  }

  /** Begin again with the tables that the store has now. */
  reload() {
    const { query } = this;
    this.tables = null;
    this.held = "";
    this.data = null;
    this.page.go("filters", { show: "table" }, { replace: true });
    if (this.query === query) this.update(query); // the address was this one already
  }

  choose(name) {
    if (!this.tables.some(([, known]) => known === name)) {
      this.choice.append(h("option", { value: name }, name));
      this.tables.push([null, name]);
    }
    this.choice.value = name;
  }

  /** Name the table that is asked for, and show nothing of another one meanwhile. */
  forget(name) {
    this.choose(name);
    this.held = "";
    this.data = null;
    this.grid = null;
    this.lab.hidden = true;
    this.damage.hidden = true;
    this.before.disabled = true;
    this.next.disabled = true;
    for (const part of [this.where, this.figures, this.note]) show(part);
  }

  take(found) {
    this.data = found;
    if (!found.filters) {
      show(this.note, `${found.words} `, isReport ? null
        : h("a", { href: this.page.link("filters", { show: "replay" }) }, "Replay the store’s Gets with filters"));
      return;
    }
    this.array = bytesOf(found.hex);
    this.reads = null;
    this.near = [];
    if (found.leveldb) {
      for (const key of found.keys) key.positions = found.bits ? positionsOf(key.hash, found.probes, found.bits) : [];
    }
    this.grid = found.fuse ? this.slots : found.bits ? this.bits : null;
    show(this.stage, this.grid?.root);
    show(this.marks, (found.fuse ? SLOT_MARKS : MARKS).map(([names, text]) =>
      h("span", {}, h("i", { class: `lab-mark ${names}` }), ` ${text}`)));
    this.before.disabled = !this.holds(found.before);
    this.next.disabled = !this.holds(found.next);
    const alone = this.before.disabled && this.next.disabled; // then arrows would lead nowhere
    this.before.hidden = this.next.hidden = alone;
    show(this.where, `filter ${number(found.n)}; ${number(found.place)} of ${number(found.filters)}`,
      alone && found.filters > 1 ? "; this report has no other filter of this table" : "");
    this.describe();
    this.layout = "";
    if (this.grid) this.grid.selected = -1;
    this.layOut();
    const chips = found.keys.map((key) => h("li", {}, button(shortKey(key), () => this.lookAt(key))));
    show(this.keys, chips);
    const noun = found.kind === "prefix" ? "prefix" : "key";
    const many = found.more_keys ? `The first ${count(found.keys.length, noun)}; it has more.` : count(found.keys.length, noun);
    show(this.keysNote, many);
  }

  /** Whether there is such a filter to go to. */
  holds(filter) {
    return Boolean(filter) && holds("filter", { name: this.data.name, n: filter.n, block: filter.block });
  }

  describe() {
    const { data } = this;
    const { fuse } = data;
    const covers = { table: "the whole table", prefix: `the prefixes of all keys, by ${data.extractor}` };
    show(this.figures,
      figure("covers", covers[data.kind] ?? `blocks from ${number(data.first)} to ${number(data.last)}`),
      figure("policy", h("code", {}, data.policy)), figure("size", bytes(data.bytes)),
      data.bits ? [figure("bits, m", number(data.bits)), figure("probes, k", number(data.probes))] : null,
      fuse ? [figure("slots, a byte each", number(fuse.slots)), figure("slots of a key", number(fuse.arity)),
        figure("segments", `${number(fuse.segments)} of ${number(fuse.segment_slots)} slots`),
        figure("fingerprint", `${fuse.fingerprint_bits} bits`)] : null,
      data.bits || fuse ? [
        data.bits ? figure("fill", percent(data.ones / data.bits)) : null,
        figure(fuse ? "false positives, 1 in 256" : "false positives, by its fill", percent(data.rate))] : null,
      figure("keys, n", `${data.counted ? "" : data.bits ? "about " : "more than "}${number(data.key_count)}`),
      figure("bits a key", `${data.counted || data.bits ? "" : "at most "}${((data.bits ?? 8 * data.bytes) / Math.max(1, data.key_count)).toFixed(1)}`));
    const damage = [...data.damage, data.keys_problem].filter(Boolean);
    this.damage.hidden = !damage.length;
    show(this.damage, damage.map((words) => h("p", {}, words)));
    const notes = [];
    if (fuse) {
      notes.push(`Each key has ${fuse.arity} slots, one in each of ${fuse.arity} neighboring segments. The XOR of their bytes is the key’s fingerprint; for an absent key, only by chance.`);
      if (fuse.slots > DRAWN_SLOTS) notes.push(`The first ${number(DRAWN_SLOTS)} slots are drawn, or those around the slots of the key.`);
    } else if (!data.bits) notes.push("It comes from a custom policy. Only that policy’s code can interpret its bytes, so they are not drawn.");
    else if (data.probes > MOST_PROBES) notes.push("This number of probes is reserved: such a filter answers maybe for every key.");
    if (data.bits > DRAWN) notes.push(`The first ${number(DRAWN)} bits are drawn.`);
    show(this.note, notes.join(" "));
  }

  layOut() {
    if (!this.grid || !this.stage.clientWidth) return;
    const width = Math.max(220, Math.floor(this.stage.clientWidth));
    const { fuse, bits } = this.data;
    const bands = fuse ? this.bands() : [{ first: 0, end: Math.min(bits, DRAWN) }];
    const layout = `${width} ${JSON.stringify(bands)} ${this.near.length}`;
    if (this.layout === layout) return;
    this.layout = layout;
    if (fuse) this.slots.layOut(bands, (slot) => this.valueOf(slot), fuse.segment_slots, width);
    else this.bits.layOut(bands[0].end, width);
    this.color();
  }

  /** The slots to draw: the first ones, or those around the slots that were read. */
  bands() {
    const { slots } = this.data.fuse;
    const begin = [{ first: 0, end: Math.min(slots, DRAWN_SLOTS) }];
    const read = this.reads?.slots ?? [];
    if (read.every((slot) => slot < begin[0].end)) return begin;
    const firsts = [...new Set(read.map((slot) => slot - (slot % NEAR)))].sort((a, b) => a - b);
    return firsts.map((first) => ({ first, end: Math.min(slots, first + NEAR) }));
  }

  /** The value of a slot; undefined for one that did not come. */
  valueOf(slot) {
    if (slot < this.array.length) return this.array[slot];
    const piece = this.near.find((one) => slot >= one.first && slot < one.first + one.bytes.length);
    if (piece) return piece.bytes[slot - piece.first];
    const at = this.reads?.slots?.indexOf(slot) ?? -1;
    return at < 0 ? undefined : this.reads.values[at];
  }

  /** Whether a bit is set; undefined for one that did not come. */
  isSet(position) {
    const byte = this.array[position >> 3];
    return byte === undefined ? undefined : ((byte >> (position & 7)) & 1) === 1;
  }

  color() {
    if (this.grid === this.slots) this.slots.color(this.reads?.slots ?? []);
    else this.grid?.color((position) => this.isSet(position), this.reads?.positions ?? []);
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
    else this.tell(key, shortKey(key), true);
  }

  /** Look a key up; null takes the last one back. */
  async answer(data) {
    if (!this.grid) return;
    this.asking?.abort();
    if (data === null) {
      this.mark(null);
      this.sentence.dataset.kind = "";
      show(this.sentence, `Type a key, or choose one: the ${this.data.fuse ? "slots that a lookup reads" : "bits that a lookup probes"} are marked.`);
      return;
    }
    const text = hex(data);
    const same = this.data.keys.find((key) => key.hex === text);
    const read = this.data.leveldb ? this.probes(data) : await this.probed(text, same);
    if (read) this.tell(read, same ? shortKey(same) : shown(keyOf(data).text), same !== undefined);
  }

  /** The bits that a lookup in a filter of LevelDB's probes. */
  probes(data) {
    const positions = positionsOf(leveldbHash(data), this.data.probes, this.data.bits);
    return { positions };
  }

  /** What a lookup reads in a filter of 64-bit hashes, which the server knows; null if another key was asked for since. */
  async probed(text, same) {
    if (isReport) {
      if (same) return same;
      this.mark(null);
      this.sentence.dataset.kind = "";
      show(this.sentence, "A report can ask this filter only for the listed keys; 'lsmkv inspect' can ask it for any key.");
      return null;
    }
    const { data } = this;
    this.asking = new AbortController();
    try {
      const found = await ask("filter/probe", { name: data.name, n: data.n, block: data.block, hex: text }, this.asking.signal);
      return data === this.data ? found : null;
    } catch (error) {
      this.page.fail(error);
      return null;
    }
  }

  /** Mark what was read. */
  mark(read) {
    this.reads = read;
    this.near = (read?.near ?? []).map((one) => ({ first: one.first, bytes: bytesOf(one.hex) }));
    this.sum.hidden = !read?.slots && !read?.positions.length;
    show(this.sum, this.sum.hidden ? null : read.slots ? xorSum(read) : probedBits(this.shownProbes(read), this.verdict(read).maybe !== false));
    this.layOut();
    this.color();
  }

  /** The bits that decide a lookup: up to the first that is 0, as far as that is known here. */
  shownProbes({ positions }) {
    const clear = positions.findIndex((position) => this.isSet(position) === false);
    return clear < 0 ? positions : positions.slice(0, clear + 1);
  }

  tell(read, text, isKey) {
    this.mark(read);
    const name = `“${shown(text)}”`;
    const all = this.data.keys.every((key) => key.hex !== undefined) && !this.data.more_keys && !this.data.keys_problem && this.data.keys.length > 0;
    const { maybe, why } = this.verdict(read);
    let kind = "maybe";
    let words;
    if (maybe === false) {
      kind = "no";
      words = `No: ${name} is absent, because ${why}. The block is not read.`;
    } else if (maybe === undefined) words = `${name} probes bits beyond those shown here.`;
    else if (isKey) words = `Maybe: ${why}. ${name} is one of its ${this.data.kind === "prefix" ? "prefixes" : "keys"}.`;
    else if (all) {
      kind = "wrong";
      words = `Maybe: ${why}. ${name} is not one of its keys: a false positive, and a wasted read.`;
    } else words = `Maybe: ${why}. ${name} is not among the keys listed here.`;
    this.sentence.dataset.kind = kind;
    show(this.sentence, words);
  }

  /** What a filter answers by what was read, undefined if that is not known here, and why. */
  verdict({ positions, slots, may_match: known }) {
    if (slots) return { maybe: known, why: known ? "the XOR of its slots is its fingerprint" : "the XOR of its slots is not its fingerprint" };
    const clear = this.data.probes > MOST_PROBES ? undefined : positions.find((position) => this.isSet(position) === false);
    if (clear !== undefined) return { maybe: false, why: `bit ${number(clear)} is 0` };
    if (known === false) return { maybe: false, why: `bit ${number(positions.at(-1))} is 0` };
    const unknown = known === undefined && positions.some((position) => this.isSet(position) === undefined);
    return { maybe: unknown ? undefined : true, why: "all its bits are 1" };
  }

  tellBit() {
    if (!this.grid) return;
    const { fuse } = this.data;
    const at = this.grid.selected;
    if (at < 0) {
      show(this.bit, fuse ? "Click a slot, or move to it with the arrow keys, to see which keys read it."
        : "Click a bit, or move to it with the arrow keys, to see which keys set it.");
      return;
    }
    const users = this.data.keys.filter((key) => (fuse ? key.slots : key.positions)?.includes(at)).map(shortKey);
    const some = this.data.more_keys ? " (and perhaps by keys not listed here)" : "";
    if (fuse) {
      const value = this.valueOf(at);
      const by = users.length ? `it is read for ${listed(users)}${some}.` : "none of the listed keys reads it.";
      show(this.bit, `Slot ${number(at)}, in segment ${number(Math.floor(at / fuse.segment_slots))}, ${value === undefined ? "is not shown here" : `holds ${hexByte(value)}`}; ${by}`);
      return;
    }
    let what = `is 1, set by ${listed(users)}${some}.`;
    if (!users.length) what = this.isSet(at) ? "is 1, set by a key not listed here." : "is 0: no key set it.";
    show(this.bit, `Bit ${number(at)}, in byte ${number(at >> 3)}, ${what}`);
  }

  twin() {
    return this.held ? ["filter", JSON.parse(this.held)] : ["levels", {}];
  }

  close() {
    this.asking?.abort();
    this.observer.disconnect();
  }
}

function bytesOf(text) {
  return Uint8Array.from(text.match(/[0-9a-fA-F]{2}/g) ?? [], (pair) => parseInt(pair, 16));
}
