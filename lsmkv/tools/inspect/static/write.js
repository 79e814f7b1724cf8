// The write path, on a scratch store in memory: log, memtable, flush, compaction.

import { Bars } from "./bars.js";
import { act, ask, isReport } from "./data.js";
import { button, figure, grid, h, keyText, numeric, show } from "./dom.js";
import { bytes, count, number } from "./format.js";
import { Player } from "./player.js";
import { levelRows } from "./tables.js";

export const view = {
  name: "write",
  title: "The write path",
  menu: "Write",
  about: "A scratch store in memory, separate from yours: put a key and see where its bytes go.",
  mount,
};

function mount(root, page) {
  let query = {};
  let data = null;
  const key = h("input", { type: "text", name: "key", value: "ant", autocomplete: "off", spellcheck: "false" });
  const value = h("input", { type: "text", name: "value", value: "six legs", autocomplete: "off", spellcheck: "false" });
  const form = h("form", { class: "ask", onsubmit: (event) => {
    event.preventDefault();
    perform("put", { key: key.value, value: value.value });
  } },
  h("label", { class: "grow" }, h("span", {}, "Key"), key), h("label", { class: "grow" }, h("span", {}, "Value"), value),
  h("button", { type: "submit", class: "main" }, "Put"),
  button("Delete", () => perform("delete", { key: key.value })));
  const actions = h("p", { class: "actions" },
    button("Put 20 keys", () => perform("fill", { keys: "20" })),
    button("Flush", () => perform("flush")),
    button("Compact", () => perform("compact")),
    button("Start again", () => perform("reset")));
  const player = new Player({
    label: "What was done",
    onstep: (step) => page.go("write", { step }, { replace: true }),
  });
  const words = h("p", { class: "edit", "aria-live": "polite" });
  const log = h("section", { class: "card", "aria-label": "Write-ahead log" });
  const memtable = h("section", { class: "card", "aria-label": "Memtable" });
  const bars = new Bars({ label: "Tables by level" });
  const levels = h("div");
  const figures = h("dl", { class: "figures" });
  show(root, isReport ? null : [form, actions], player.element, words,
    h("div", { class: "flow" }, log, memtable),
    h("section", { class: "card", "aria-label": "Tables" }, h("h2", {}, "3. Tables"), levels, bars.element), figures);

  async function perform(action, body = {}) {
    try {
      page.clear();
      data = await act(`scratch/${action}`, body);
      page.go("write", {}, { replace: true });
      draw();
    } catch (error) {
      page.fail(error);
    }
  }

  async function load() {
    try {
      data = await ask("scratch");
      draw();
    } catch (error) {
      page.fail(error);
    }
  }

  function draw() {
    if (!data) return;
    const last = data.moments.length - 1;
    const at = query.step === undefined ? last : Math.min(Number(query.step) || 0, last);
    const moment = data.moments[at];
    const before = data.moments[at - 1];
    player.set(at, data.moments.length);
    show(words, moment.words, moment.why ? h("span", { class: "quiet" }, `. ${moment.why}`) : null);
    drawLog(moment);
    drawMemtable(moment);
    const old = new Set((before?.levels ?? []).flatMap((level) => level.tables.map((table) => table.number)));
    bars.set(levelRows(moment.levels, (bar, table) => {
      if (!old.has(table.number)) {
        bar.tone = "added";
        bar.about.push("new");
      }
    }), { selected: null });
    show(levels, h("p", { class: "quiet" }, moment.tables
      ? `${count(moment.tables, "table")}, ${bytes(moment.bytes)}. A flush makes one; level 0 is compacted at 4.`
      : "No table yet. A full memtable becomes one; Flush makes one, too."));
    const { written } = moment;
    const total = written.log + written.flushed + written.compacted;
    show(figures,
      figure("keys and values given", bytes(written.user)),
      figure("into the log", bytes(written.log)),
      figure("by flushes", bytes(written.flushed)),
      figure("by compactions", bytes(written.compacted)),
      figure("written in total", written.user ? `${(total / written.user).toFixed(1)}× what was given` : "–"));
  }

  function drawLog(moment) {
    show(log, h("h2", {}, "1. Write-ahead log"),
      h("p", { class: "quiet" }, `${moment.log.name}, ${count(moment.log.size, "byte")}; what this step added:`),
      moment.log.new.length ? grid("Bytes of the log", [numeric("offset"), "meaning", "bytes"], moment.log.new.map((one) => [
        number(one.offset), one.meaning, h("code", { class: "hex" }, one.hex.replace(/(..)(?=.)/g, "$1 ")),
      ]), { class: "pieces" }) : h("p", {}, "nothing"));
  }

  function drawMemtable(moment) {
    const { shown, entries, bytes: used } = moment.memtable;
    show(memtable, h("h2", {}, "2. Memtable"),
      h("p", { class: "quiet" }, `${count(entries, "entry")}; full at ${bytes(data.write_buffer)}`),
      h("meter", { min: "0", max: String(data.write_buffer), value: String(Math.min(used, data.write_buffer)), "aria-label": "How full the memtable is" }),
      h("span", { class: "quiet" }, ` ${bytes(used)}`),
      shown.length ? grid("Entries of the memtable", ["key", numeric("write"), "value"], shown.map((one) => [
        keyText(one.key), number(one.sequence), one.value === null ? h("em", {}, "a deletion") : keyText(one.value),
      ]), { class: "narrow" }) : h("p", {}, "empty"));
  }

  return {
    update(given) {
      query = given;
      if (data) draw();
      else load();
    },
    twin: () => ["scratch", {}],
    follow: () => null, // it has nothing to do with the store
    key: (event) => data !== null && player.key(event),
    close() {
      player.stop();
      bars.close();
    },
  };
}
