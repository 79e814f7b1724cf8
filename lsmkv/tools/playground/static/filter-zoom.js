// One filter of the story's store: its bits, the probes of a Get with their numbers, and the keys that set these bits.

import { button, h, show } from "./inspect/dom.js";
import { count, number } from "./inspect/format.js";
import { shown } from "./inspect/sentences.js";
import { Lines } from "./lines.js";
import { NumberedBits } from "./numbered.js";
import { shortName } from "./tree.js";

const SMALLEST = 12; // pixels of a bit, for its number: a phone shows all bits below each other

/** Opens on a filter's step of a Get. */
export class FilterZoom {
  constructor(engine) {
    this.engine = engine;
    this.found = null;
    this.turn = 0;
    this.title = h("h3", { tabindex: "-1" });
    this.words = h("p", { role: "status" });
    this.grid = new NumberedBits("The filter's bits. The arrow keys move from bit to bit.", (bit) => this.tell(bit));
    this.stage = h("div", { class: "lab-stage" }, this.grid.root);
    this.bit = h("p", { class: "lab-note", role: "status" });
    this.keys = h("ul", { class: "lab-keys setters" });
    this.linked = h("div", { class: "linked" }, this.stage, this.keys, this.bit);
    this.lines = new Lines(this.linked);
    this.root = h("section", { class: "zoom lab below", "aria-label": "The bits of a filter", hidden: true },
      h("div", { class: "zoom-head" }, this.title, button("Close", () => this.close())), this.words, this.linked);
    new ResizeObserver(() => this.layOut()).observe(this.stage);
  }

  /** Show the filter that a Get of `key` asks before it reads the block of a table at an offset. */
  async open(key, table, block) {
    const turn = ++this.turn;
    const found = await this.engine.ask("story/filter", { key, table, block });
    if (turn !== this.turn) return;
    this.found = found;
    this.root.hidden = false;
    this.layout = "";
    show(this.title, `Table ${shortName(table)}: the filter of ${count(found.keys, "key")}`);
    show(this.words, `${number(found.bits)} bits, and ${count(found.probes, "probe")} of a key. `, ...this.answer());
    const names = [...new Set(found.setters.flat())];
    this.chips = new Map(names.map((name) => [name, h("li", {}, h("span", { class: "setter-key", tabindex: "0" }, shown(name)))]));
    show(this.keys, [...this.chips.values()]);
    this.bit.textContent = "Each black or red bit has the number of its probe. Lines lead to the keys that set it.";
    this.layOut();
    this.title.focus({ preventScroll: true });
    this.root.scrollIntoView({ block: "nearest" });
  }

  close() {
    this.turn++;
    this.root.hidden = true;
    this.found = null;
  }

  answer() {
    const { key, positions, may_match: maybe, present } = this.found;
    const name = h("code", { class: "key" }, shown(key));
    if (!maybe) {
      const before = positions.length - 1;
      return [h("strong", { class: "good" }, "No. "), before ? `${count(before, "probe")} of `: "A probe of ", name,
        before ? ` ${before > 1 ? "hit bits that are" : "hits a bit that is"} 1, but probe ${positions.length} hits a 0: the key is not in the block.`
          : " hits a 0 at once: the key is not in the block."];
    }
    if (present) return [h("strong", { class: "good" }, "Maybe. "), "All probes of ", name, " hit bits that are 1: the key itself set them."];
    return [h("strong", { class: "bad" }, "Maybe, and wrong. "), "All probes of ", name, " hit bits that are 1, and other keys set them."];
  }

  layOut() {
    if (!this.found) return;
    const width = Math.max(220, Math.floor(this.stage.clientWidth) - 6);
    if (`${width}` !== this.layout) {
      this.layout = `${width}`;
      this.grid.layOut(this.found.bits, width, SMALLEST);
      const bytes = Uint8Array.from(this.found.hex.match(/../g), (pair) => Number.parseInt(pair, 16));
      this.grid.color((at) => ((bytes[at >> 3] >> (at & 7)) & 1) === 1, this.found.positions);
      this.lines.draw(this.found.positions.flatMap((at, probe) =>
        this.found.setters[probe].map((name) => [this.grid.cells[at], this.chips.get(name).firstChild])));
    }
  }

  tell(bit) {
    const at = this.found.positions.indexOf(bit);
    if (at < 0) this.bit.textContent = `Bit ${number(bit)}: this Get does not probe it.`;
    else {
      const setters = this.found.setters[at];
      this.bit.textContent = `Bit ${number(bit)}, probe ${at + 1}: ${setters.length ? `1, set by ${setters.map((name) => `“${shown(name)}”`).join(", ")}.` : "0, no key set it."}`;
    }
  }
}
