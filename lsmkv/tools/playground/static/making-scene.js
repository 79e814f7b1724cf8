// The first scene: names are put into a store until all are in it.

import { button, h, show } from "./inspect/dom.js";
import { bytes, count, number } from "./inspect/format.js";
import { Tree } from "./tree.js";

const AT_ONCE = 250; // names of one question to the engine
const SHOWN_EVENTS = 5;

/** Makes the store before the visitor's eyes; `made(levels)` is called when it is complete. */
export class Making {
  constructor(place, engine, made) {
    this.engine = engine;
    this.made = made;
    this.last = h("code", { class: "key" });
    this.count = h("strong", {});
    this.fill = h("meter", { min: "0", max: "1", value: "0", "aria-label": "The memtable’s fill" });
    this.fillWords = h("span", { class: "quiet" });
    this.tree = new Tree("The tables of the store by level, with a cell for each data block");
    this.events = h("ol", { class: "events", "aria-label": "What the engine’s log says" });
    this.words = h("p", { role: "status" });
    this.again = button("Make it again", () => this.run(), { disabled: true });
    place.classList.add("pending");
    this.place = place;
    show(place,
      h("p", { class: "making-now" }, this.count, " ", this.last),
      h("div", { class: "tree-level" }, h("span", { class: "tree-name" }, "memtable"), h("span", { class: "memtable" }, this.fill, " ", this.fillWords)),
      this.tree.root, this.words, this.events, h("p", { class: "actions" }, this.again));
  }

  async run() {
    this.again.disabled = true;
    this.place.classList.add("pending");
    show(this.events);
    try {
      this.count.textContent = "Choosing names …";
      let state = await this.engine.ask("story/begin");
      this.draw(state);
      const begun = performance.now();
      while (state.put < state.names) {
        state = await this.engine.ask("story/load", { keys: AT_ONCE });
        this.draw(state);
      }
      this.sum(state, (performance.now() - begun) / 1000);
      this.made(state.levels);
    } catch (error) {
      show(this.words, h("span", { class: "trouble" }, error.message));
    }
    this.place.classList.remove("pending");
    this.again.disabled = false;
  }

  draw(state) {
    this.count.textContent = `${number(state.put)} of ${number(state.names)} names`;
    this.last.textContent = state.last;
    this.fill.value = Math.min(1, state.memtable / state.write_buffer);
    this.fillWords.textContent = `${bytes(state.memtable)} of ${bytes(state.write_buffer)}`;
    this.tree.draw(state.levels);
    for (const line of state.events) this.events.prepend(h("li", { class: line.startsWith("Level-") ? "flush" : "compaction" }, h("code", {}, line)));
    while (this.events.children.length > SHOWN_EVENTS) this.events.lastChild.remove();
  }

  sum(state, seconds) {
    const tables = state.levels.reduce((sum, level) => sum + level.tables.length, 0);
    this.last.textContent = "";
    show(this.words, `In ${seconds.toFixed(1)} s the memtable was flushed ${count(state.flushes, "time")}, and ${count(state.compactions, "compaction")} merged tables. `
      + `Now ${count(tables, "table")} hold the names. Those on level 0 overlap: each may have any key.`);
  }
}
