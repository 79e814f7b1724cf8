// The filter lab: a Bloom filter to play with, a table's own filter, and a replay under other settings.

import { button, h, show } from "./dom.js";
import { mountLab } from "./lab.js";
import { Replay } from "./replay.js";
import { Stored } from "./stored.js";
import { hex } from "./trial.js";

/** The lab that computes in the page. */
class Play {
  constructor() {
    this.element = h("div");
    this.lab = null;
  }

  /** It has nothing to do with the store. */
  follow() {
    return null;
  }

  update() {
    this.lab ??= mountLab(this.element);
  }

  /** No server knows this filter: its data is made here. */
  twin() {
    const { filter, keys } = this.lab.trial;
    return ["", {}, {
      bits: filter.bits,
      probes: filter.probes,
      hex: hex(filter.toBytes()),
      keys: keys.map((key) => ({ text: key.text, hex: hex(key.data), positions: key.positions })),
    }];
  }

  close() {}
}

// Each part is made once it is shown: `{element, update(query), twin(), close()}`, and as a view has them `follow`,
// `watches` and `reload`.
const PARTS = {
  play: ["A filter to play with", Play],
  table: ["A table's own filter", Stored],
  replay: ["Replay under other settings", Replay],
};

export const view = {
  name: "filters",
  title: "Filter lab",
  menu: "Filters",
  about: "A Bloom filter bit by bit, the store's own filters, and what other filters would save.",
  mount,
};

function mount(root, page) {
  const parts = new Map();
  const tabs = new Map(Object.entries(PARTS).map(([name, [title]]) => [
    name, button(title, () => page.go("filters", { show: name })),
  ]));
  const place = h("div");
  let current = null;
  show(root, h("p", { class: "actions", role: "group", "aria-label": "Parts of the lab" }, [...tabs.values()]), place);

  return {
    update(query) {
      const name = query.show in PARTS ? query.show : "play";
      for (const [one, tab] of tabs) tab.setAttribute("aria-pressed", String(one === name));
      if (!parts.has(name)) parts.set(name, new PARTS[name][1](page));
      const part = parts.get(name);
      if (part !== current) {
        current = part;
        show(place, part.element);
      }
      part.update(query);
    },
    twin: () => current.twin(),
    follow: (state) => current.follow(state),
    watches: () => current.watches?.() ?? {},
    reload: () => current.reload?.(),
    get again() {
      return current.again;
    },
    close() {
      for (const part of parts.values()) part.close();
    },
  };
}
