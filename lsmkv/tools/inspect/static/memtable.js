// The memtable: what is in the log and in no table yet, entry by entry.

import { ask, isReport } from "./data.js";
import { button, grid, h, keyText, numeric, row, show } from "./dom.js";
import { bytes, number } from "./format.js";

const STEP = 300;
const HEAD = ["key", numeric("write"), "type", "value"];

/** The part of the view Levels about the memtable; `query.at` is the key that its list begins with. */
export class Memtable {
  constructor(page, go) {
    this.page = page;
    this.first = 0;
    this.at = undefined;
    this.facts = null;
    this.opened = null; // by the user, or null
    this.field = h("input", { type: "text", autocomplete: "off", spellcheck: "false", placeholder: "a key, escaped as 'lsmkv scan' prints it" });
    const form = h("form", { class: "ask", onsubmit: (event) => {
      event.preventDefault();
      go(this.field.value === "" ? undefined : this.field.value);
    } }, h("label", { class: "grow" }, h("span", {}, "Start at this key"), this.field), h("button", { type: "submit" }, "List"));
    this.words = h("p", {});
    this.meter = h("meter", { min: "0", "aria-label": "How full the memtable is" });
    this.used = h("span", { class: "quiet" });
    this.title = h("summary", {});
    this.list = grid("Entries of the memtable", HEAD, [], { class: "narrow typed" });
    this.body = this.list.querySelector("tbody");
    this.pages = h("p", { class: "actions" });
    this.details = h("details", { ontoggle: () => this.fill() }, this.title, isReport ? null : form, this.list, this.pages);
    this.title.addEventListener("click", () => { this.opened = !this.details.open; });
    this.element = h("section", { "aria-label": "Memtable", hidden: true }, h("h2", {}, "Memtable"), this.words,
      h("p", {}, this.meter, " ", this.used), this.details);
  }

  /** Show it with these facts, of the answer about the levels; none for a store that cannot be opened. */
  update(facts, hasTables, { at }) {
    this.element.hidden = !facts;
    if (!facts) return;
    if (at !== this.at) {
      this.at = at;
      this.first = 0;
      this.jump = at !== undefined;
      if (document.activeElement !== this.field) this.field.value = at ?? "";
    }
    this.facts = facts;
    show(this.words, facts.where || "It is empty: all entries are in tables.");
    this.meter.max = facts.full_at;
    this.meter.value = Math.min(facts.bytes, facts.full_at);
    show(this.used, `${bytes(facts.bytes)} of ${bytes(facts.full_at)}${facts.full_at_known || !hasTables ? "" : ", if its writer uses the default size"}`);
    show(this.title, `Its entries, as a list (${number(facts.total)})`);
    this.details.hidden = facts.total === 0;
    this.details.open = this.opened ?? (!hasTables || at !== undefined);
    this.fill();
  }

  async fill() {
    if (!this.details.open || !this.facts.total) return;
    const from = this.jump ? { key: this.at } : { from: this.first };
    try {
      const found = await ask("memtable", isReport ? {} : from);
      this.first = found.first;
      this.jump = false;
      show(this.body, found.entries.map((one) => row(HEAD, [this.link(one.key), number(one.sequence),
        one.where === "memtable" ? one.type : `${one.type}, in the ${one.where}`,
        one.value === null ? "–" : keyText(one.value)])));
      const turn = (to) => () => {
        this.first = Math.max(0, to);
        this.fill();
      };
      const end = found.first + found.entries.length;
      show(this.pages, (found.first || found.more) && !isReport ? [
        button("← before", turn(found.first - STEP), { disabled: found.first === 0 }),
        ` ${number(found.first + 1)} to ${number(end)} `,
        button("more →", turn(end), { disabled: !found.more })] : null);
    } catch (error) {
      this.page.fail(error);
    }
  }

  link(key) {
    return key.cut || isReport ? keyText(key) : h("a", { href: this.page.link("get", { key: key.text }), title: "A Get of this key, step by step" }, keyText(key));
  }
}
