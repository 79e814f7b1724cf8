// A replay: the same Gets under other filter settings, and where the store's reads are wasted.

import { act, ask, isReport } from "./data.js";
import { figure, grid, h, numeric, row, show } from "./dom.js";
import { bytes, count, number } from "./format.js";
import { percent } from "./sentences.js";

const PAUSE = 400; // milliseconds between two looks at one that runs
const HOTTEST = 40;
const BITS = "[0-9]+(\\.[0-9]+)?";
const SETTING = `(none|fuse|((block|table)(64)?|own):(auto:${BITS}|${BITS}(,${BITS})*))`;
const SETTINGS = new RegExp(`^\\s*${SETTING}(\\s+${SETTING})*\\s*$`);

/** The part of the lab that replays Gets. */
export class Replay {
  constructor(page) {
    this.page = page;
    this.timer = 0;
    this.state = null;
    const field = (type, name, more) => h("input", { type, name, autocomplete: "off", ...more });
    this.settings = h("textarea", {
      name: "settings", rows: "1", required: true, autocomplete: "off", spellcheck: "false",
      oninput: () => this.judge(),
      onkeydown: (event) => {
        if (event.key !== "Enter") return;
        event.preventDefault();
        this.form.requestSubmit();
      },
    });
    this.gets = field("number", "gets", { min: "1", step: "1", required: true });
    this.seed = field("number", "seed", { min: "0", step: "1", required: true });
    this.keys = h("select", { name: "keys" });
    this.form = h("form", { class: "ask", hidden: true, onsubmit: (event) => this.start(event) },
      h("label", { class: "whole" }, h("span", {}, "Filter settings, separated by spaces"), this.settings),
      h("label", {}, h("span", {}, "Gets"), this.gets), h("label", {}, h("span", {}, "Seed"), this.seed),
      h("label", {}, h("span", {}, "Keys"), this.keys),
      h("button", { type: "submit", class: "main" }, "Replay"));
    this.hint = h("p", { class: "quiet" },
      "none means no filter. block:10 is a filter for each 2 KiB of a table, with 10 bits per key; table:15 is one for each table. block64:10 and table64:10 use 64-bit hashes; fuse is a fuse filter for each table. Bits per level: block:10,10,8.5, or distributed over the levels: block:auto:10. LevelDB uses only filters of the kind block.");
    this.status = h("p", { role: "status" });
    this.result = h("div");
    this.element = h("div", {}, isReport ? null : [this.form, this.hint], this.status, this.result);
  }

  async update(query) {
    this.query = query;
    if (this.state === null) await this.look();
  }

  async look() {
    try {
      this.take(await ask("replay"));
    } catch (error) {
      this.page.fail(error);
    }
  }

  /** A text that is not a list of settings is not sent. */
  judge() {
    const fits = SETTINGS.test(this.settings.value);
    this.settings.setCustomValidity(fits ? "" : "Enter settings such as none block:10 table64:10 fuse, separated by spaces.");
  }

  async start(event) {
    event.preventDefault();
    const body = { settings: this.settings.value, gets: this.gets.value, seed: this.seed.value, keys: this.keys.value };
    this.page.go("filters", { show: "replay", ...body }, { replace: true });
    try {
      this.take(await act("replay", body));
    } catch (error) {
      this.page.fail(error);
    }
  }

  take(state) {
    clearTimeout(this.timer);
    if (this.state === null) this.fillForm(state);
    this.state = state;
    if (state.running) this.timer = setTimeout(() => this.look(), PAUSE);
    this.tell();
    show(this.result, state.outcome ? outcome(state, this.page) : null);
  }

  fillForm({ question, trace }) {
    const { settings, gets, seed, keys } = this.query;
    show(this.keys,
      h("option", { value: "sample" }, "a sample, and near misses"),
      trace === null ? null : h("option", { value: "trace" }, `the trace ${trace}`));
    this.settings.value = settings ?? question.settings;
    this.judge();
    this.gets.value = gets ?? question.gets;
    this.seed.value = seed ?? question.seed;
    const wanted = keys ?? (question.traced ? "trace" : "sample");
    this.keys.value = trace === null ? "sample" : wanted;
    this.form.hidden = false;
  }

  /** The store has changed: the Gets that were replayed are of an older state. */
  async follow() {
    await this.look();
    const { running, outcome: found, older } = this.state;
    return found && !running && older ? "The store has changed since these Gets were replayed." : null;
  }

  /** Replay the same again. */
  reload() {
    this.form.requestSubmit();
  }

  tell() {
    const { running, doing, unit, done, total, error, outcome: found } = this.state;
    if (running) {
      const far = total ? `${number(done)} of ${count(total, unit)}` : done ? count(done, unit) : "";
      show(this.status, `${doing || "Beginning"} … ${far} `,
        total ? h("progress", { max: String(total), value: String(done), "aria-label": "Progress of the replay" }) : null);
    } else if (error) show(this.status, h("strong", {}, error));
    else if (!found) show(this.status, isReport ? "This report has no replay." : "Nothing has been replayed yet.");
    else show(this.status, this.state.older && !isReport ? "The store has changed since these Gets were replayed." : null);
    this.status.hidden = !this.status.hasChildNodes();
  }

  twin() {
    return ["replay", {}];
  }

  close() {
    clearTimeout(this.timer);
  }
}

function outcome({ outcome: found, cut }, page) {
  const { verdict, heat } = found;
  return [
    h("p", { class: "verdict" }, h("strong", {}, verdict.sentence)),
    h("p", { class: "quiet" }, verdict.rule),
    cut ? h("p", {}, h("strong", {}, cut)) : null,
    h("dl", { class: "figures" },
      figure("Gets", number(found.gets)), figure("keys", found.keys), figure("found a value", number(found.found)),
      figure("answered by a memtable", number(found.from_memory)), figure("seed", String(found.seed)),
      figure("entries in the tables", number(found.entries))),
    h("ul", { class: "legend" }, h("li", { "data-tone": "read" }, "blocks with the key"), h("li", { "data-tone": "wasted" }, "wasted reads")),
    settingsTable(found),
    h("h2", {}, "Wasted reads, as stored"),
    heat.tables.length ? heatOf(found, page) : h("p", {}, "The store has no tables."),
  ];
}

function settingsTable({ settings, verdict }) {
  const most = Math.max(1, ...settings.map((one) => one.blocks_read));
  const head = ["filters", ...["wasted reads", "blocks read", "per Get", "memory", "rate"].map(numeric), ""];
  return grid("Filter settings", head, settings.map((one) => {
    const chosen = one.setting === verdict.setting;
    const cells = [one.setting, number(one.wasted_reads), number(one.blocks_read), one.blocks_per_get.toFixed(3),
      bytes(one.filter_bytes), one.false_positive_rate === null ? "–" : percent(one.false_positive_rate)];
    if (chosen) cells[0] = [h("strong", {}, one.setting), h("span", { class: "aside" }, " ← the verdict's")];
    return row(head, [...cells,
      h("td", { class: "wide" }, bar([["read", one.blocks_read - one.wasted_reads], ["wasted", one.wasted_reads]], most))], chosen ? { class: "chosen" } : {});
  }), { class: "rows settings" });
}

function heatOf({ gets, heat }, page) {
  const levels = new Map();
  for (const table of heat.tables) {
    const level = levels.get(table.level) ?? { level: table.level, tables: 0, gets: 0, scans: 0 };
    levels.set(table.level, { ...level, tables: level.tables + 1, gets: level.gets + table.gets, scans: level.scans + table.scans });
  }
  const head = (first) => [first, numeric(""), numeric(count(gets, "Get")), "", numeric(count(heat.scans, "prefix scan")), ""];
  const rows = (all, name) => {
    const most = Math.max(1, ...all.map((one) => Math.max(one.gets, one.scans)));
    return all.map((one) => row(head(""), [...name(one), ...[one.gets, one.scans].flatMap((reads) =>
      [number(reads), h("td", { class: "wide" }, bar([["wasted", reads]], most))])]));
  };
  const hottest = heat.tables.filter((one) => one.gets + one.scans > 0)
    .sort((a, b) => b.gets + b.scans - a.gets - a.scans || a.number - b.number);
  const scanned = [...levels.values()].reduce((sum, one) => sum + one.scans, 0);
  const fileOf = (one) => `${String(one.number).padStart(6, "0")}.ldb`;
  return [
    heat.scans ? h("p", { class: "quiet" },
      `The prefixes are absent, and scans do not use these filters: each reads ${(scanned / heat.scans).toFixed(1)} blocks on average, whatever the setting.`) : null,
    grid("Wasted reads by level", head("level"), rows([...levels.values()].sort((a, b) => a.level - b.level),
      (one) => [`level ${one.level}`, count(one.tables, "table")]), { class: "rows" }),
    h("details", {}, h("summary", {}, `The tables with the most (${number(Math.min(hottest.length, HOTTEST))} of ${number(heat.tables.length)})`),
      grid("Wasted reads by table", head("table"), rows(hottest.slice(0, HOTTEST),
        (one) => [h("a", { href: page.link("table", { name: fileOf(one) }) }, fileOf(one)), `level ${one.level}`]), { class: "rows" })),
  ];
}

/** A bar of parts, `[tone, amount]`; `most` is its whole width.  The figures next to it say the same. */
function bar(parts, most) {
  return h("span", { class: "share", "aria-hidden": "true" }, parts.filter(([, amount]) => amount > 0).map(([tone, amount]) => {
    const part = h("i", { class: tone });
    part.style.width = `${(100 * amount) / most}%`;
    return part;
  }));
}
