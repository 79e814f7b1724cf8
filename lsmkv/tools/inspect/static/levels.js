// The levels: every table as a bar whose area is its bytes.

import { Bars } from "./bars.js";
import { act, ask, holds, isReport } from "./data.js";
import { button, figure, grid, h, keyText, numeric, show } from "./dom.js";
import { bytes, count, number } from "./format.js";
import { clock } from "./following.js";
import { Memtable } from "./memtable.js";
import { levelRows } from "./tables.js";

const PAGE = 100;

export const view = {
  name: "levels",
  title: "Levels",
  about: "Every table as a bar, whose area is the table's size. Choose one to see its contents.",
  mount,
};

function mount(root, page) {
  let data = null;
  let query = {};
  let timer = 0;
  let closed = false;
  const bars = new Bars({
    label: "Tables by level",
    twice: true,
    onselect: (bar) => page.go("levels", { ...query, table: bar.table.name }, { replace: true }),
    onpick: (bar) => {
      if (holds("table", { name: bar.table.name })) page.go("table", { name: bar.table.name });
    },
  });
  const figures = h("dl", { class: "figures" });
  const trouble = h("div");
  const picked = h("section", { class: "card", hidden: true, "aria-label": "The selected table" });
  const list = h("div");
  const fullness = h("div");
  const why = h("p", { class: "quiet", hidden: true });
  const modes = h("fieldset", { class: "choice" }, h("legend", {}, "Bars"),
    [["size", "by size"], ["keys", "by keys"]].map(([value, label]) => h("label", {},
      h("input", { type: "radio", name: "mode", value, onchange: () => page.go("levels", { ...query, bars: value }) }),
      label)));
  const zooming = h("span", { class: "zoom", hidden: true },
    button("+", () => bars.zoomBy(2), { "aria-label": "Zoom in" }),
    button("−", () => bars.zoomBy(0.5), { "aria-label": "Zoom out" }),
    button("all keys", () => bars.zoomOut()));
  const doing = (action) => async () => {
    try {
      await act(action);
      await load();
    } catch (error) {
      page.fail(error);
    }
  };
  const checker = isReport ? null : button("Check every file", doing("check"), { title: "Reads every byte, like 'lsmkv verify'" });
  const ender = button("End the check", doing("check/end"), { hidden: true });
  const memtable = new Memtable(page, (at) => page.go("levels", { ...query, at }, { replace: true }));
  show(trouble, h("p", { class: "quiet", role: "status" }, "The store is being read …"));
  show(root, trouble, figures, h("div", { class: "bar-tools" }, modes, zooming, checker, isReport ? null : ender),
    bars.element, why, picked, memtable.element, fullness, list);

  async function load() {
    try {
      const found = await ask("levels");
      if (closed) return;
      const before = data;
      data = found;
      page.clear();
      describe();
      if (JSON.stringify(before?.levels) !== JSON.stringify(data.levels)) draw();
      clearTimeout(timer);
      if (data.check.state === "running") timer = setTimeout(load, 500);
    } catch (error) {
      show(trouble);
      page.fail(error);
    }
  }

  /** The figures, and what is wrong. */
  function describe() {
    const { facts } = data;
    show(figures,
      figure("store", h("code", {}, data.path), { class: "figure wide" }),
      figure("tables", number(data.tables)),
      figure("in tables", bytes(data.bytes)),
      facts.memtable ? figure("memtable", `${bytes(facts.memtable.bytes)}, ${count(facts.memtable.total, "entry")}`) : null,
      facts.filters && data.tables ? figure("filters of the newest table", facts.filter_damage ? "damaged" : facts.filters.join(", ") || "none") : null,
      facts.comparator ? figure("key order", facts.comparator) : null);
    const missing = data.levels.reduce((sum, level) => sum + (level.left_out ?? 0), 0);
    ender.hidden = data.check.state !== "running";
    show(trouble, damage(data, page),
      facts.filter_damage ? h("section", { class: "card damaged", "aria-label": "A damaged filter" }, h("p", {}, facts.filter_damage)) : null,
      facts.saving ? h("p", { class: "saving" }, facts.saving) : null,
      missing ? h("p", { class: "quiet" }, `${count(missing, "table")} more, which this report leaves out.`) : null);
    why.hidden = !facts.why;
    show(why, facts.why);
    memtable.update(facts.memtable, data.tables > 0, query);
  }

  function draw() {
    const mode = query.bars === "keys" ? "keys" : "size";
    modes.querySelectorAll("input").forEach((one) => { one.checked = one.value === mode; });
    zooming.hidden = mode !== "keys";
    bars.set(levelRows(data.levels), { mode, selected: query.table ?? null });
    pick();
    show(fullness, full(data.levels));
    const open = list.querySelector("details")?.open ?? false;
    show(list, data.tables ? tables(data, page, Number(query.from ?? 0), open, (from) => page.go("levels", { ...query, from }, { replace: true })) : null);
  }

  function pick() {
    const all = data.levels.flatMap((level) => level.tables.map((table) => ({ level: level.level, table })));
    const found = all.find((one) => one.table.name === query.table);
    picked.hidden = !found;
    if (!found) return;
    const { table, level } = found;
    const beneath = all.filter((one) => one.level !== level && one.table.from <= table.to && one.table.to >= table.from);
    show(picked,
      h("h2", {}, table.name),
      h("p", {}, `level ${level}, ${bytes(table.size)}; ${count(beneath.length, "table")} on other levels overlap its range`),
      h("p", {}, keyText(table.smallest), " … ", keyText(table.largest)),
      h("p", { class: "actions" },
        holds("table", { name: table.name }) ? h("a", { class: "main", href: page.link("table", { name: table.name }) }, "Its anatomy") : null,
        table.smallest.cut || !holds("get", { key: table.smallest.text }) ? null : h("a", { href: page.link("get", { key: table.smallest.text }) }, "Get its first key")));
  }

  return {
    update(given) {
      const before = query;
      query = given;
      if (!data) load();
      else if (before.table !== given.table && before.bars === given.bars && before.from === given.from) {
        bars.select(given.table);
        pick();
      } else {
        describe();
        draw();
      }
    },
    twin: () => ["levels", {}],
    async follow() {
      await load();
      return null;
    },
    reload: load,
    close() {
      closed = true;
      clearTimeout(timer);
      bars.close();
    },
  };
}

/** What is wrong with the store, and where; nothing for a sound one that was not checked. */
function damage(data, page) {
  const { check } = data;
  const parts = [];
  if (!data.readable) parts.push(h("p", {}, h("strong", {}, "The store cannot be opened: "), data.error));
  if (check.state === "running") {
    parts.push(h("p", {}, "Every file is being read … ",
      h("progress", { max: check.total || 1, value: check.done, "aria-label": "Files read" }),
      check.total ? ` ${bytes(check.done)} of ${bytes(check.total)}` : null));
  }
  if (check.older) parts.push(h("p", { class: "quiet" }, `This check ran at ${clock(1000 * check.time)}. The store has changed since then.`));
  if (check.error) parts.push(h("p", {}, `The files were not checked: ${check.error}`));
  if (check.state === "done" && !check.files.length) {
    const when = `Every file was read at ${clock(1000 * check.time)}: all `;
    return h("p", { class: "sound", role: "status" }, check.older
      ? [h("span", { class: "quiet" }, `${when}was sound. The store has changed since then.`)] : `${when}is sound.`);
  }
  if (check.files.length) {
    parts.push(h("p", {}, check.damaged
      ? `${count(check.damaged, "damaged file")}. Files that a writer removes during the check look like damage. 'lsmkv repair --plan' shows what can be kept.`
      : "No damage, but remarks:"));
    parts.push(h("ul", {}, check.files.map((file) => h("li", {},
      /\.(ldb|sst)$/.test(file.name) && file.size >= 0
        ? h("a", { href: page.link("table", { name: file.name }) }, file.name) : h("code", {}, file.name),
      ": ",
      [...file.problems.slice(0, 5).map((one) => `${one.reason} at ${number(one.offset)}`), ...file.remarks.slice(0, 5)].join("; "),
      file.problems.length + file.more > 5 ? `; ${number(file.problems.length + file.more - 5)} more` : "",
      file.effects.map((words) => h("p", { class: "effect" }, words))))));
  }
  if (!parts.length) return null;
  return h("section", { class: data.readable && !check.damaged ? "card" : "card damaged", "aria-label": "Damage" }, parts);
}

/** How near each level is to a compaction. */
function full(levels) {
  const used = levels.filter((level) => level.files && level.limit !== "none");
  if (!used.length) return null;
  return h("section", { class: "full", "aria-label": "How full the levels are" },
    h("h2", {}, "How full the levels are"),
    h("ul", {}, used.map((level) => h("li", {},
      h("span", { class: "level-name" }, `L${level.level}`),
      h("meter", { min: "0", max: "1", high: "0.999", optimum: "0", value: String(Math.min(1, level.score)), "aria-label": `Level ${level.level}` }),
      h("span", {}, level.level === 0 ? `${number(level.files)} of ${level.limit}` : `${bytes(level.bytes)} of ${bytes(parseInt(level.limit, 10))}`,
        level.score >= 1 ? h("strong", {}, ", a compaction is due") : "")))));
}

function tables(data, page, from, open, turn) {
  const all = data.levels.flatMap((level) => level.tables.map((table) => [
    String(level.level),
    h("a", { href: page.link("table", { name: table.name }) }, table.name),
    bytes(table.size), keyText(table.smallest), keyText(table.largest),
  ]));
  const start = Math.min(from, Math.max(0, all.length - 1));
  const turned = (to) => () => turn(to);
  return h("details", { open },
    h("summary", {}, `All tables, as a list (${number(all.length)})`),
    grid("All tables", [numeric("level"), "table", numeric("size"), "first key", "last key"], all.slice(start, start + PAGE)),
    all.length > PAGE ? h("p", { class: "actions" },
      button("← before", turned(Math.max(0, start - PAGE)), { disabled: start === 0 }),
      ` ${number(start + 1)} to ${number(Math.min(all.length, start + PAGE))} `,
      button("more →", turned(start + PAGE), { disabled: start + PAGE >= all.length })) : null);
}
