// The third scene: 200 lookups, counted by the engine without filters and with filters of a size.

import { h, show } from "./inspect/dom.js";
import { Choice } from "./inspect/fields.js";
import { bytes, count, duration, number } from "./inspect/format.js";

const MOST_PER_KEY = 20;
const SHARES = [["0", "all absent"], ["100", "half of them present"], ["200", "all present"]];
const DEVICES = [["a disk that seeks", 10e6], ["an SSD", 100e3], ["an object store", 50e6]]; // nanoseconds for a block
const CALM = 120; // milliseconds without a change

/** The scene; `begin` is called once the store is made. */
export class Lookups {
  constructor(place, engine, state, keep) {
    this.engine = engine;
    this.keep = keep;
    this.turn = 0;
    const given = Number(state.get("bits") ?? NaN);
    const perKey = Number.isInteger(given) && given >= 0 && given <= MOST_PER_KEY ? given : 10;
    const share = SHARES.some(([value]) => value === state.get("present")) ? state.get("present") : "0";
    this.perKey = h("input", { type: "range", id: "lookup-bits", min: "0", max: String(MOST_PER_KEY), value: String(perKey), oninput: () => this.change() });
    this.perKeyShown = h("output", { for: "lookup-bits" });
    this.share = new Choice("share", SHARES, share, () => this.change());
    this.result = h("div", { class: "lookups-result" });
    this.sentence = h("p", { class: "sentence", role: "status" });
    this.body = h("div", { hidden: true },
      h("label", { for: "lookup-bits", class: "bits-label" }, "Bits per key: ", this.perKeyShown), this.perKey,
      h("fieldset", { class: "choice" }, h("legend", {}, "The keys"), this.share.root),
      this.result, this.sentence);
    this.waits = h("p", { class: "quiet" }, "This begins when the store is made.");
    show(place, this.waits, this.body);
  }

  begin() {
    this.waits.hidden = true;
    this.body.hidden = false;
    this.ask();
  }

  change() {
    this.keep({ bits: this.perKey.value, present: this.share.value });
    this.ask();
  }

  /** Ask for the figures of the present choice, once it has been the same for a moment. */
  ask() {
    const turn = ++this.turn;
    const perKey = Number(this.perKey.value);
    this.perKeyShown.textContent = perKey ? String(perKey) : "0, no filters";
    this.body.classList.add("pending");
    clearTimeout(this.timer);
    this.timer = setTimeout(async () => {
      try {
        const found = await this.engine.ask("story/lookups", { per_key: perKey, present: Number(this.share.value) });
        if (turn === this.turn) this.draw(found);
      } catch (error) {
        if (turn === this.turn) show(this.sentence, error.message);
      }
      if (turn === this.turn) this.body.classList.remove("pending");
    }, CALM);
  }

  draw(found) {
    const { without, with: filtered, per_key: perKey, gets } = found;
    const most = Math.max(without.blocks, filtered.blocks, 1);
    const held = found.found - found.from_memory;
    show(this.result,
      h("dl", { class: "reads" }, [["without filters", without.blocks], [perKey ? `with ${count(perKey, "bit")} per key` : "with no filters", filtered.blocks]].map(([title, blocks]) => [
        h("dt", {}, title),
        h("dd", {}, h("strong", {}, number(blocks)), h("span", { class: "reads-bar", "aria-hidden": "true" },
          long("read", Math.min(held, blocks) / most), long("wasted", Math.max(0, blocks - held) / most))),
      ])),
      h("p", { class: "quiet" }, held ? `Blocks read. Blue: ${number(held)} that hold a key that was looked up. Red: wasted reads.` : "Blocks read. No block holds an absent key, so all of these reads are wasted."),
      h("div", { class: "scroll" }, h("table", { class: "narrow devices" },
        h("thead", {}, h("tr", {}, ["one block takes", "without filters", "with filters"].map((one) => h("th", { scope: "col" }, one)))),
        h("tbody", {}, DEVICES.map(([name, time]) => h("tr", {}, h("th", { scope: "row" }, `${name}: ${duration(time)}`),
          h("td", {}, duration(time * without.blocks)), h("td", {}, filtered.blocks ? duration(time * filtered.blocks) : "none")))))),
      h("p", { class: "quiet" }, "The times are estimates: the blocks that were counted, one after the other, at the time that is stated. ",
        perKey ? `The filters that were asked take ${bytes(filtered.filter_bytes)} of memory.` : ""));
    show(this.sentence, `Your ${count(gets, "lookup")} read `, h("strong", {}, count(filtered.blocks, "block")),
      ` instead of ${number(without.blocks)}: ${bytes(filtered.bytes)} instead of ${bytes(without.bytes)}.`);
  }
}

/** A part of a bar; the page's policy forbids styles in attributes. */
function long(tone, share) {
  const part = h("i", { class: tone, hidden: share === 0 });
  part.style.width = `${100 * share}%`;
  return part;
}
