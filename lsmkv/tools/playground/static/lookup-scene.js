// The second scene: one Get, table by table, without filters or with them.

import { FilterZoom } from "./filter-zoom.js";
import { button, h, show } from "./inspect/dom.js";
import { Choice, keyForm } from "./inspect/fields.js";
import { bytes, count } from "./inspect/format.js";
import { Player } from "./inspect/player.js";
import { shown } from "./inspect/sentences.js";
import { SIGNS, Tree, shortName } from "./tree.js";

const KINDS = [["absent", "absent"], ["wrong", "absent, but a filter errs"], ["present", "present"]];
const LEGEND = [["read", "read, with the key"], ["wasted", "read for nothing"], ["saved", "not read: a filter said no"]];

/** The steps of a Get, of what the engine explained: `{where, words, asked, mark, read, filter}` each.
 *
 * `where` tells of a step what may be told before its outcome; `filter` is what `FilterZoom.open` takes.
 */
export function stepsOf(found, filtered) {
  const none = { asked: null, mark: null, read: false, filter: null };
  const steps = [
    { ...none, where: "Get", words: `A Get of ${shown(found.key)}. The memtable is asked first, then tables, the newest first.` },
    { ...none, where: "The memtable", words: found.memtable ? "The memtable has the key, so no table is asked." : "The memtable does not have the key." },
  ];
  for (const table of found.tables) {
    const offset = table.block ?? table.spared;
    if (!table.asked || offset === null) continue;
    const where = `Level ${table.level}, table ${shortName(table.name)}`;
    const read = !filtered || table.block !== null;
    const tone = !read ? "saved" : table.block === null || table.wasted ? "wasted" : "read";
    const what = !read ? `its filter says no, so ${bytes(table.bytes)} are not read.`
      : `${filtered ? "its filter says maybe" : "its key range covers the key"}, so a block is read: ${bytes(table.bytes)}. ${tone === "read" ? "The key is in it." : filtered ? "The key is not in it: a false positive." : "The key is not in it."}`;
    steps.push({ where, words: `${where}: ${what}`, asked: table.name, mark: [table.name, offset, tone], read, filter: filtered ? [table.name, offset] : null });
  }
  const blocks = filtered ? found.searched : found.without;
  const size = filtered ? found.bytes : found.bytes_without;
  steps.push({ ...none, where: "The answer", words: `${found.found ? "Found" : "Not there"}: ${count(blocks, "block")} read, ${bytes(size)}.` });
  return steps;
}

/** The scene; `begin(levels)` is called once the store is made.
 *
 * With suspense, which is for a stage, nothing is told of a step before it is revealed.
 */
export class Lookup {
  constructor(place, engine, state, keep) {
    this.engine = engine;
    this.keep = keep;
    this.key = state.get("key");
    this.found = null; // the engine's answer about `key`
    this.turn = 0;
    this.tree = new Tree("The tables of the store, in which the blocks that the Get reads are marked");
    const asking = keyForm("A key of your own", "Get", (key) => this.get(key));
    this.field = asking.field;
    this.suggestions = h("div", { class: "suggestions" });
    this.filters = new Choice("filters", [["off", "off"], ["on", "on"]], state.get("filters") === "on" ? "on" : "off", () => {
      this.keep({ filters: this.filters.value });
      if (this.found) this.play();
    });
    this.suspense = h("input", { type: "checkbox", checked: state.get("suspense") === "on", onchange: () => this.change() });
    this.player = new Player({ label: "Steps of the Get", onstep: (step) => this.draw(step), pause: 700 });
    this.revealer = button("Reveal the next step", () => this.player.go(this.player.step + 1), { class: "main", title: "→" });
    this.stage = h("p", { class: "actions" }, this.revealer, button("Begin again", () => this.player.go(0), { title: "Home" }),
      h("span", { class: "quiet" }, "→ reveals a step, ← hides it again."));
    this.words = h("p", { class: "now", role: "status" });
    this.blocks = { off: h("p", { class: "big" }, "–"), on: h("p", { class: "big" }, "–") };
    this.squares = { off: h("div", { class: "squares", "aria-hidden": "true" }), on: h("div", { class: "squares", "aria-hidden": "true" }) };
    this.list = h("ol", { class: "get-steps", "aria-label": "The steps so far" });
    this.zoom = new FilterZoom(engine);
    this.body = h("div", { hidden: true },
      h("div", { class: "lab asking-key" }, asking.form, this.suggestions),
      h("div", { class: "choices" },
        h("fieldset", { class: "choice" }, h("legend", {}, "Filters"), this.filters.root),
        h("label", { class: "lab-check" }, this.suspense, " Suspense: nothing is told before it is revealed")),
      this.player.element, this.stage, this.words,
      h("div", { class: "compare" }, [["off", "Without filters"], ["on", "With filters, 10 bits per key"]].map(([name, title]) =>
        h("section", { class: "side", "aria-label": title }, h("p", {}, title), this.blocks[name], this.squares[name]))),
      this.tree.root,
      h("ul", { class: "legend signs" }, LEGEND.map(([tone, words]) => h("li", {}, h("i", { class: tone, "aria-hidden": "true" }, SIGNS[tone]), words))),
      this.list, this.zoom.root);
    this.waits = h("p", { class: "quiet" }, "This begins when the store is made.");
    show(place, this.waits, this.body);
    document.addEventListener("keydown", (event) => {
      const { target } = event;
      const isHeard = this.body.contains(target) || (this.suspense.checked && target === document.body);
      if (!isHeard || this.body.hidden || event.ctrlKey || event.altKey || event.metaKey) return;
      if (target.closest("input:not([type=range], [type=checkbox]), textarea, select, .lab-bits")) return;
      if (event.key === " " && target.closest("button, input")) return;
      if (this.player.key(event)) event.preventDefault();
    });
  }

  async begin(levels) {
    this.tree.draw(levels);
    try {
      this.suggested = await this.engine.ask("story/suggest");
      this.waits.hidden = true;
      this.body.hidden = false;
      this.player.set(0, 0);
      this.drawStage();
      await this.get(this.key ?? this.suggested.absent[0], this.key === null);
    } catch (error) {
      show(this.words, error.message);
    }
  }

  /** Suspense begins, or ends. */
  change() {
    this.keep({ suspense: this.suspense.checked ? "on" : "off" });
    this.seen = {};
    this.drawStage();
    if (this.found) this.play();
    if (this.suspense.checked) this.revealer.focus();
  }

  /** What depends on suspense alone: the buttons, and whether the suggested keys are told apart. */
  drawStage() {
    const isOn = this.suspense.checked;
    this.player.element.hidden = isOn;
    this.stage.hidden = !isOn;
    const hint = (key) => [button(shown(key), () => this.get(key), { class: "hint-key" }), " "];
    const kinds = isOn ? [["keys to ask for", Object.values(this.suggested).flat().sort()]] : KINDS.map(([kind, words]) => [words, this.suggested[kind]]);
    show(this.suggestions, kinds.map(([words, keys]) => (keys.length ? h("p", {}, h("span", { class: "quiet" }, `${words}: `), keys.map(hint)) : null)));
  }

  /** Ask for a key; until the answer is there, the steps of the last one stay, as the last one's. */
  async get(key, isFirst = false) {
    if (!isFirst) this.keep({ key });
    const turn = ++this.turn;
    if (document.activeElement !== this.field) this.field.value = key;
    let found;
    try {
      found = await this.engine.ask("story/get", { key });
    } catch (error) {
      if (turn !== this.turn) return;
      this.player.stop();
      show(this.words, h("span", { class: "trouble" }, error.message));
      return;
    }
    if (turn !== this.turn) return;
    this.key = key;
    this.found = found;
    this.play(isFirst);
  }

  /** Go through the steps: at once to the end at first, and for those who want no motion. */
  play(isFirst = false) {
    const still = isFirst || matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.player.stop();
    this.zoom.close();
    this.steps = { off: stepsOf(this.found, false), on: stepsOf(this.found, true) };
    if (this.suspense.checked) {
      this.draw(0);
      return;
    }
    this.draw(still ? this.steps[this.filters.value].length - 1 : 0);
    if (!still) this.player.toggle();
  }

  draw(step) {
    const steps = this.steps[this.filters.value];
    this.player.set(step, steps.length);
    const done = steps.slice(0, this.player.step + 1);
    const next = this.suspense.checked ? steps[done.length] : undefined;
    const marks = done.map((one) => one.mark).filter(Boolean);
    this.tree.mark(marks, next ? next.asked : done.at(-1).asked);
    show(this.words, done.at(-1).words);
    if (done.length === steps.length) this.seen = { ...this.seen, [this.filters.value]: this.key };
    for (const name of ["off", "on"]) {
      const isSeen = this.seen?.[name] === this.key;
      const known = name === this.filters.value ? (next ? null : done) : isSeen ? this.steps[name] : null;
      this.blocks[name].textContent = known ? count(known.filter((one) => one.read).length, "block") : this.suspense.checked ? "?" : "–";
      show(this.squares[name], (known ?? []).map((one) => one.mark).filter(Boolean).map(([, , tone]) => h("i", { class: tone })));
    }
    this.revealer.setAttribute("aria-disabled", String(!next));
    this.drawList(done, next);
  }

  /** The steps so far; one of a filter opens that filter.  With suspense the next one is a question. */
  drawList(done, next) {
    show(this.list, done.slice(1).map(({ words, filter, mark }) => h("li", { class: mark?.[2] },
      filter ? button(words, () => this.look(filter), { class: "filter-step", title: "Show the filter’s bits" }) : words)),
    next ? h("li", { class: "quiet" }, `${next.where}: ?`) : null);
    if (this.zoomed && !done.some(({ filter }) => filter === this.zoomed)) this.zoom.close();
  }

  async look(filter) {
    this.zoomed = filter;
    this.player.stop();
    try {
      await this.zoom.open(this.key, ...filter);
    } catch (error) {
      show(this.words, h("span", { class: "trouble" }, error.message));
    }
  }
}
