// The second scene: one Get, table by table, without filters or with them.

import { button, h, show } from "./inspect/dom.js";
import { Choice, keyForm } from "./inspect/fields.js";
import { bytes, count } from "./inspect/format.js";
import { Player } from "./inspect/player.js";
import { shown } from "./inspect/sentences.js";
import { SIGNS, Tree, shortName } from "./tree.js";

const KINDS = [["absent", "absent"], ["wrong", "absent, but a filter errs"], ["present", "present"]];
const LEGEND = [["read", "read, with the key"], ["wasted", "read for nothing"], ["saved", "not read: a filter said no"]];

/** The steps of a Get, of what the engine explained: `{words, asked, mark, read}` each. */
export function stepsOf(found, filtered) {
  const steps = [{ words: found.memtable ? "The memtable has the key, so no table is asked." : "The memtable does not have the key. Tables are asked, the newest first.", asked: null, mark: null, read: false }];
  for (const table of found.tables) {
    const offset = table.block ?? table.spared;
    if (!table.asked || offset === null) continue;
    const where = `Level ${table.level}, table ${shortName(table.name)}`;
    const read = !filtered || table.block !== null;
    const tone = !read ? "saved" : table.block === null || table.wasted ? "wasted" : "read";
    const what = !read ? `its filter says no, so ${bytes(table.bytes)} are not read.`
      : `${filtered ? "its filter says maybe" : "its key range covers the key"}, so a block is read: ${bytes(table.bytes)}. ${tone === "read" ? "The key is in it." : filtered ? "The key is not in it: a false positive." : "The key is not in it."}`;
    steps.push({ words: `${where}: ${what}`, asked: table.name, mark: [table.name, offset, tone], read });
  }
  const blocks = filtered ? found.searched : found.without;
  const size = filtered ? found.bytes : found.bytes_without;
  steps.push({ words: `${found.found ? "Found" : "Not there"}: ${count(blocks, "block")} read, ${bytes(size)}.`, asked: null, mark: null, read: false });
  return steps;
}

/** The scene; `begin(levels)` is called once the store is made. */
export class Lookup {
  constructor(place, engine, state, keep) {
    this.engine = engine;
    this.keep = keep;
    this.key = state.get("key");
    this.found = null;
    this.tree = new Tree("The tables of the store, in which the blocks that the Get reads are marked");
    const asking = keyForm("A key of your own", "Get", (key) => this.get(key));
    this.field = asking.field;
    this.suggestions = h("div", { class: "suggestions" });
    this.filters = new Choice("filters", [["off", "off"], ["on", "on"]], state.get("filters") === "on" ? "on" : "off", () => {
      this.keep({ filters: this.filters.value });
      this.play();
    });
    this.player = new Player({ label: "Steps of the Get", onstep: (step) => this.draw(step), pause: 700 });
    this.words = h("p", { class: "now", role: "status" });
    this.blocks = { off: h("p", { class: "big" }, "–"), on: h("p", { class: "big" }, "–") };
    this.squares = { off: h("div", { class: "squares", "aria-hidden": "true" }), on: h("div", { class: "squares", "aria-hidden": "true" }) };
    this.body = h("div", { hidden: true },
      h("div", { class: "lab asking-key" }, asking.form, this.suggestions),
      h("fieldset", { class: "choice" }, h("legend", {}, "Filters"), this.filters.root),
      this.player.element, this.words,
      h("div", { class: "compare" }, [["off", "Without filters"], ["on", "With filters, 10 bits per key"]].map(([name, title]) =>
        h("section", { class: "side", "aria-label": title }, h("p", {}, title), this.blocks[name], this.squares[name]))),
      this.tree.root,
      h("ul", { class: "legend signs" }, LEGEND.map(([tone, words]) => h("li", {}, h("i", { class: tone, "aria-hidden": "true" }, SIGNS[tone]), words))));
    this.waits = h("p", { class: "quiet" }, "This begins when the store is made.");
    show(place, this.waits, this.body);
    this.body.addEventListener("keydown", (event) => {
      if (event.target.closest("input:not([type=range]), textarea, select") || event.ctrlKey || event.altKey || event.metaKey) return;
      if (event.key === " " && event.target.closest("button, input")) return;
      if (this.player.key(event)) event.preventDefault();
    });
  }

  async begin(levels) {
    this.tree.draw(levels);
    try {
      const suggested = await this.engine.ask("story/suggest");
      show(this.suggestions, KINDS.map(([kind, words]) => (suggested[kind].length ? h("p", {}, h("span", { class: "quiet" }, `${words}: `),
        suggested[kind].map((key) => [button(shown(key), () => this.get(key), { class: "hint-key" }), " "])) : null)));
      this.waits.hidden = true;
      this.body.hidden = false;
      await this.get(this.key ?? suggested.absent[0], this.key === null);
    } catch (error) {
      show(this.words, error.message);
    }
  }

  async get(key, isFirst = false) {
    if (!isFirst) this.keep({ key });
    this.key = key;
    if (document.activeElement !== this.field) this.field.value = key;
    try {
      this.found = await this.engine.ask("story/get", { key });
    } catch (error) {
      this.player.stop();
      show(this.words, h("span", { class: "trouble" }, error.message));
      return;
    }
    this.play(isFirst);
  }

  /** Go through the steps: at once to the end at first, and for those who want no motion. */
  play(isFirst = false) {
    const still = isFirst || matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.player.stop();
    this.steps = { off: stepsOf(this.found, false), on: stepsOf(this.found, true) };
    this.draw(still ? this.steps[this.filters.value].length - 1 : 0);
    if (!still) this.player.toggle();
  }

  draw(step) {
    const steps = this.steps[this.filters.value];
    this.player.set(step, steps.length);
    const done = steps.slice(0, this.player.step + 1);
    const marks = done.map((one) => one.mark).filter(Boolean);
    this.tree.mark(marks, done.at(-1).asked);
    show(this.words, done.at(-1).words);
    for (const name of ["off", "on"]) {
      const known = name === this.filters.value ? done : this.seen?.[name] === this.key ? this.steps[name] : null;
      this.blocks[name].textContent = known ? count(known.filter((one) => one.read).length, "block") : "–";
      show(this.squares[name], (known ?? []).map((one) => one.mark).filter(Boolean).map(([, , tone]) => h("i", { class: tone })));
    }
    if (done.length === steps.length) this.seen = { ...this.seen, [this.filters.value]: this.key };
  }
}
