// The result of `lsmkv demo`, on which its report opens: reads with each kind of filters, and one absent key.

import { answered, ask } from "./data.js";
import { grid, h, keyText, numeric, show } from "./dom.js";
import { bytes, count, number } from "./format.js";

export const view = {
  name: "demo",
  title: "What a filter saves",
  menu: "Result",
  about: "The demo's result: data blocks that a Get reads from disk, without filters and with each kind of filter.",
  hidden: !answered("demo").length, // an inspector's page has none
  mount,
};

const LEGEND = [["read", "a read of the block with the key"], ["wasted", "a wasted read"], ["saved", "a read that a filter saved"]];

function mount(root, page) {
  async function load() {
    try {
      draw(await ask("demo"));
    } catch (error) {
      page.fail(error);
    }
  }

  function draw(data) {
    const [loaded, compacted] = data.states;
    show(root,
      h("p", { class: "quiet" }, `${count(data.keys, "key")}, ${bytes(data.bytes)} with their values: ${data.title}. `
        + `Each kind of filter has its own store. ${count(data.lookups, "key")} that exist and as many absent ones`
        + " were looked up, without a block cache."),
      h("h2", {}, data.found ? `The result, ${data.found}` : "The result"),
      h("ol", { class: "findings" }, data.findings.map((sentence) => h("li", {}, sentence))),
      h("h2", {}, "Data blocks read from disk, per Get"),
      reads(loaded),
      story(data.story, page),
      h("h2", {}, "All figures"),
      figures(loaded),
      compacted ? h("details", {},
        h("summary", {}, "After compact_range(): at most one table covers a key"), reads(compacted), figures(compacted)) : null,
      h("p", { class: "quiet" }, `The other views show the store ${data.shown}, as it was loaded.`));
  }

  return { update: load, twin: () => ["demo", {}], close() {} };
}

/** Bars of the blocks that a Get reads, of absent keys and of existing ones, on one scale. */
function reads({ stores }) {
  const kinds = [["absent", "An absent key", 0], ["present", "A present key", 1]];
  const most = Math.max(...stores.flatMap((one) => [one.absent.blocks, one.present.blocks]), 0.001);
  const off = stores.find((one) => one.layout === "off");
  return [
    h("div", { class: "charts" }, kinds.map(([kind, title, useful]) => h("section", { "aria-label": title },
      h("h3", {}, title),
      h("dl", { class: "reads" }, stores.map((one) => {
        const { blocks } = one[kind];
        const held = Math.min(useful, blocks);
        const saved = off ? Math.max(0, off[kind].blocks - blocks) : 0;
        const parts = [["read", held], ["wasted", blocks - held], ["saved", saved]];
        return [
          h("dt", {}, one.name),
          h("dd", {}, h("strong", {}, blocks.toFixed(3)),
            h("span", { class: "reads-bar", "aria-hidden": "true" }, parts.filter(([, part]) => part > 0).map(([tone, part]) =>
              long(h("i", { class: tone }), part / most))),
            kind === "absent" ? h("span", { class: "quiet fewer" }, fewer(off, one)) : null),
        ];
      }))))),
    h("ul", { class: "legend" }, LEGEND.map(([tone, words]) => h("li", { "data-tone": tone }, words))),
    h("p", { class: "quiet" }, stores.map((one) => `${one.name}: ${one.about}`).join("; "), "."),
  ];
}

/** Give an element a share of the width; the page's policy forbids styles in attributes. */
function long(element, share) {
  element.style.width = `${100 * share}%`;
  return element;
}

function fewer(off, one) {
  if (!off || one === off || !off.absent.blocks) return "";
  const { blocks } = one.absent;
  return blocks ? `${number(Math.round(off.absent.blocks / blocks))} times fewer` : "no read at all";
}

/** Which tables a Get of one absent key asks in each store, and what comes of it. */
function story({ key, near, stores }, page) {
  const held = answered("get").some((one) => one.key === key.text);
  return [
    h("h2", {}, "A Get of one absent key"),
    h("p", {}, keyText(key), " is absent; ", keyText(near), " is present. The Get asks each table whose range covers the key, newest first."),
    h("div", { class: "stories" }, stores.map((store) => h("section", { class: "story", "aria-label": store.name },
      h("h3", {}, store.name, " ", h("span", { class: "quiet" }, outcome(store))),
      h("ol", {}, store.tables.map((table) => h("li", { class: table.tone ?? "plain" },
        h("span", { class: "quiet" }, `level ${table.level}, ${table.name}`),
        h("span", {}, answer(table))))))),
    ),
    held ? h("p", { class: "actions" }, h("a", { class: "main", href: page.link("get", { key: key.text }) }, "Step by step, with the bits that were probed")) : null,
  ];
}

function outcome({ searched, without }) {
  const read = searched ? `${count(searched, "block")} read` : "no block read";
  return searched === without ? read : `${read}, ${number(without - searched)} saved`;
}

function answer({ filter, tone }) {
  const asked = filter === null ? "no filter" : `filter: ${filter}`;
  const then = { saved: "block not read", wasted: "a wasted block read", read: "block read" }[tone] ?? "no block can contain it";
  return `${asked}; ${then}`;
}

function figures({ stores, spread }) {
  const head = ["filters", ...["blocks, absent key", "blocks, existing key", "µs, absent key", "µs, existing key",
    "false positives", "by their bits", "bits a key"].map(numeric)];
  const rate = (value) => (value === null ? "–" : `${(100 * value).toFixed(2)}%`);
  const rows = stores.map((one) => [
    one.name, one.absent.blocks.toFixed(3), one.present.blocks.toFixed(3),
    one.absent.microseconds.toFixed(1), one.present.microseconds.toFixed(1),
    rate(one.measured_rate), rate(one.predicted_rate), one.bits_per_key ? one.bits_per_key.toFixed(1) : "–",
  ]);
  return [grid("Figures of all stores", head, rows, { class: "measured" }), h("p", { class: "quiet" }, spread)];
}
