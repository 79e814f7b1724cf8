// The anatomy of a table: its parts in the order of the file, down to entries and raw bytes.

import { Bars } from "./bars.js";
import { ask, holds } from "./data.js";
import { button, figure, grid, h, keyText, numeric, plainKey, row, show } from "./dom.js";
import { bytes, count, number } from "./format.js";
import { percent } from "./sentences.js";

const KINDS = {
  data: ["data block", "level-2"],
  filter: ["filter block", "filter"],
  "full filter": ["whole-table filter", "filter"],
  "prefix filter": ["filter of prefixes", "filter"],
  meta: ["meta block", "level-4"],
  metaindex: ["metaindex block", "level-4"],
  index: ["index block", "level-1"],
  footer: ["footer", "level-0"],
  unknown: ["bytes that no handle points to", "quiet"],
};
const STEP = 300;

export const view = {
  name: "table",
  title: "Anatomy of a table",
  about: "The whole file, to scale: data blocks, filter, metaindex, index, footer.",
  parent: "levels",
  hidden: true,
  mount,
};

function mount(root, page) {
  let data = null;
  let query = {};
  const bars = new Bars({
    label: "Parts of the file",
    onpick: (bar) => page.go("table", { name: query.name, block: bar.part.offset }, { replace: true }),
    onselect: (bar) => page.go("table", { name: query.name, block: bar.part.offset }, { replace: true }),
  });
  const heading = h("div");
  const legend = h("ul", { class: "legend" });
  const inside = h("section", { class: "inside", "aria-label": "The selected part" });
  show(root, heading, bars.element, legend, inside);

  async function load() {
    data = null;
    show(inside);
    try {
      const found = await ask("table", { name: query.name });
      if (found.name !== query.name) return;
      data = found;
      draw();
      await open();
    } catch (error) {
      page.fail(error);
    }
  }

  function draw() {
    show(heading,
      h("dl", { class: "figures" },
        figure("table", h("code", {}, data.name)), figure("size", `${bytes(data.size)} (${number(data.size)} bytes)`),
        figure("parts", number(data.parts.length))),
      data.parts.some((part) => part.kind.endsWith("filter")) ? h("p", {}, h("a", { href: page.link("filters", { show: "table", name: data.name }) }, "Its filters, bit by bit")) : null,
      data.checked ? null : h("p", {}, "The table is too large to check every block here: use 'lsmkv verify'."),
      data.problems.length ? h("section", { class: "card damaged", "aria-label": "Damage" },
        h("p", {}, h("strong", {}, `${count(data.problems.length, "problem")}:`)),
        h("ul", {}, data.problems.slice(0, 20).map((one) => h("li", {}, `${KINDS[one.kind]?.[0] ?? one.kind} at ${number(one.offset)}: ${one.reason}`))),
        [...new Set(data.problems.map((one) => one.effect))].map((words) => h("p", {}, words))) : null);
    bars.set([{ bars: data.parts.map(bar) }], { selected: chosen() });
    const sums = new Map();
    for (const part of data.parts) {
      const sum = sums.get(part.kind) ?? { n: 0, size: 0 };
      sums.set(part.kind, { n: sum.n + 1, size: sum.size + part.size });
    }
    show(legend, [...sums].map(([kind, { n, size }]) => h("li", { "data-tone": KINDS[kind][1] },
      `${n > 1 ? `${number(n)} ${KINDS[kind][0]}s` : KINDS[kind][0]}, ${bytes(size)}`)));
  }

  function chosen() {
    return query.block === undefined ? null : `part-${query.block}`;
  }

  async function open() {
    bars.select(chosen());
    if (query.block === undefined) {
      show(inside, h("p", { class: "hint" }, "Choose a part of the file to see its entries and its bytes."));
      return;
    }
    const asked = { name: query.name, offset: query.block };
    if (query.from) asked.from = query.from;
    const part = data.parts.find((one) => String(one.offset) === query.block);
    if (part && !holds("block", asked)) {
      show(inside, h("h2", {}, bar(part).about[0]),
        h("p", { class: "quiet" }, `${bytes(part.size)} in the file. This report does not include the content of this part.`));
      return;
    }
    try {
      const found = await ask("block", asked);
      if (String(found.offset) !== query.block) return;
      const tab = query.show === "bytes" || !(found.entries?.length || found.filters?.length) ? "bytes" : "entries";
      show(inside, contents(found, tab));
    } catch (error) {
      show(inside);
      page.fail(error);
    }
  }

  function contents(found, tab) {
    const first = found.first ?? 0;
    const to = (more) => page.go("table", { ...query, ...more });
    const more = tab === "bytes" ? found.more_pieces : found.more_entries || found.more_filters;
    return [
      h("h2", {}, `${KINDS[found.kind]?.[0] ?? found.kind} at ${number(found.offset)}`),
      h("p", {}, `${bytes(found.size)} in the file`,
        found.codec ? `, ${found.codec}` : "",
        found.plain_size !== undefined && found.plain_size !== found.size ? `, ${bytes(found.plain_size)} once decompressed` : "",
        found.restarts?.length ? `; ${count(found.restarts.length, "restart point")}, marked ⚑` : ""),
      h("p", { class: "actions" },
        found.entries?.length || found.filters?.length ? button(found.filters?.length ? "Filters" : "Entries", () => to({ show: "entries" }), { "aria-pressed": String(tab === "entries") }) : null,
        button("Bytes", () => to({ show: "bytes" }), { "aria-pressed": String(tab === "bytes") })),
      tab === "bytes" ? pieces(found) : found.filters?.length ? filters(found) : entries(found),
      turning(found, first, more, to),
    ];
  }

  /** Buttons to what comes before and after, or a sentence if this report has neither. */
  function turning(found, first, more, to) {
    if (first === 0 && !more) return null;
    const at = (from) => from >= 0 && holds("block", { name: query.name, offset: found.offset, ...(from ? { from } : {}) });
    const [before, after] = [first > 0 && at(Math.max(0, first - STEP)), more && at(first + STEP)];
    if (!before && !after) return h("p", { class: "quiet" }, "There is more, but not in this report.");
    return h("p", { class: "actions" },
      button("← before", () => to({ from: Math.max(0, first - STEP) }), { disabled: !before }),
      button("more →", () => to({ from: first + STEP }), { disabled: !after }));
  }

  function entries(found) {
    const isData = found.kind === "data";
    const head = isData ? [numeric("offset"), "key", numeric("prefix"), numeric("write"), "value"]
      : [numeric("offset"), found.kind === "index" ? "separator" : "name", "leads to"];
    return grid("Entries of the block", head, found.entries.map((one) => {
      if (one.problem) return row(head, [h("td", { colspan: head.length }, one.problem)], { class: "damaged" });
      const flag = one.restart ? h("span", { title: "a restart point points here" }, "⚑ ") : "";
      if (!isData) {
        const to = one.handle ? h("a", { href: page.link("table", { name: query.name, block: one.handle.offset }) },
          `block at ${number(one.handle.offset)}, ${bytes(one.handle.size)}`) : "no handle";
        return [[flag, number(one.offset)], keyText(one.key), to];
      }
      return [[flag, number(one.offset)], keyText(one.key), one.shared ? `shares ${number(one.shared)}` : "whole",
        one.sequence === null ? "not an internal key" : number(one.sequence),
        one.deletion ? h("em", {}, "a deletion") : keyText(one.value)];
    }));
  }

  function filters(found) {
    const rows = found.filters.map((one) => [
      linkOf(one),
      one.kind === "block" ? `blocks at ${number(one.first)} to ${number(one.last)}` : one.kind === "prefix" ? "prefixes" : "the whole table",
      bytes(one.bytes), formOf(one), one.rate === null ? "–" : percent(one.rate)]);
    return grid("Filters of the block", ["filter", "of", numeric("size"), "consists of", numeric("false positives")], rows);
  }

  /** A link to a filter, if this page can show it. */
  function linkOf(one) {
    const asked = { name: query.name, n: one.n };
    const exact = { ...asked, block: one.block };
    const words = `filter ${number(one.n)}`;
    const known = holds("filter", asked) && !(several() && holds("filter", exact)) ? asked : exact;
    return holds("filter", known) ? h("a", { href: page.link("filters", { show: "table", ...known }) }, words) : words;
  }

  /** Whether the table has more than one filter block. */
  function several() {
    return data.parts.filter((part) => part.kind.endsWith("filter")).length > 1;
  }

  function pieces(found) {
    const head = [numeric("offset"), "meaning", "bytes"];
    return grid("Bytes and their meaning", head, found.pieces.map((one) => {
      if (one.problem) return row(head, [h("td", { colspan: head.length }, one.problem)], { class: "damaged" });
      const cut = one.bytes * 2 > one.hex.length ? `… (${number(one.bytes)} bytes)` : "";
      return [one.inside ? `+${number(one.offset)}` : number(one.offset), one.meaning,
        h("code", { class: "hex" }, one.hex.replace(/(..)(?=.)/g, "$1 ") + cut)];
    }), { class: "pieces" });
  }

  return {
    update(given) {
      const before = query;
      query = given;
      if (!given.name) page.go("levels", {}, { replace: true });
      else if (given.name !== before.name) load();
      else if (data) open();
    },
    twin: () => (query.block === undefined ? ["table", { name: query.name }]
      : ["block", { name: query.name, offset: query.block, ...(query.from ? { from: query.from } : {}) }]),
    // The file of a table never changes; a compaction removes it.
    watches: () => ({ table: query.name }),
    follow: ({ level }) => (level === null && data ? `${query.name} is no longer in the store: a compaction has removed it. The view shows what was read before.` : null),
    again: "To the levels",
    reload: () => page.go("levels"),
    close: () => bars.close(),
  };
}

/** What a filter consists of, in words. */
function formOf({ bits, ones, probes, fuse }) {
  if (fuse) return `fuse: ${number(fuse.slots)} slots, ${number(fuse.arity)} for each key, fingerprints of ${number(fuse.fingerprint_bits)} bits`;
  return bits ? `${number(bits)} bits, ${number(ones)} set, ${count(probes, "probe")}` : "bytes of a custom policy";
}

function bar(part) {
  const [words, tone] = KINDS[part.kind] ?? KINDS.meta;
  const about = [`${words} at ${number(part.offset)}`, bytes(part.size)];
  if (part.up_to) about.push(`keys up to ${plainKey(part.up_to)}`);
  if (part.problem) about.push(`damaged: ${part.problem}`);
  return {
    id: `part-${part.offset}`, size: part.size, part, about, text: part.kind === "data" ? "" : part.kind,
    tone: part.problem ? "wasted" : tone, damaged: Boolean(part.problem),
  };
}
