// The life of the tree: its MANIFEST is a log of version edits, and a slider goes over them.

import { Bars } from "./bars.js";
import { axisOf, colors } from "./chart.js";
import { ask } from "./data.js";
import { figure, h, plainKey, show } from "./dom.js";
import { bytes, count, number } from "./format.js";
import { Player } from "./player.js";
import { levelRows } from "./tables.js";

const LEVELS = 7;
const POWERS = Array.from({ length: 50 }, (_, at) => 2 ** at);
const WHOLE = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6];

export const view = {
  name: "life",
  title: "Life of the tree",
  menu: "Life",
  about: "Every flush and compaction in the MANIFEST: what it wrote, and the levels after it.",
  mount,
};

function mount(root, page) {
  let query = {};
  let summary = null;
  let timer = 0;
  let closed = false;
  let plot = null;
  let drawing = 0;
  const windows = new Map(); // first edit -> promise of the window
  const player = new Player({
    label: "Edits of the MANIFEST",
    onstep: (step) => page.go("life", { ...query, step: step + first() }, { replace: true }),
    pause: 400,
  });
  const status = h("p", { class: "quiet", role: "status" });
  const words = h("p", { class: "edit", "aria-live": "polite" });
  const figures = h("dl", { class: "figures" });
  const bars = new Bars({
    label: "Levels after the edit",
    onpick: (bar) => page.go("table", { name: bar.table.name }),
  });
  const chart = h("div", { class: "chart" });
  const coincide = h("p", { class: "quiet", hidden: true });
  const observer = new ResizeObserver(() => plot?.setSize({ width: chart.clientWidth, height: 190 }));
  observer.observe(chart);
  show(root, player.element, words, figures, bars.element,
    h("section", { "aria-label": "Bytes written" }, h("h2", {}, "Bytes written so far"), coincide, chart), status);

  /** The first edit that can be shown: a report holds the last ones alone. */
  function first() {
    return summary?.first ?? 0;
  }

  async function load() {
    try {
      const before = summary;
      summary = await ask("history");
      if (closed) return;
      page.clear();
      const same = before?.complete && summary.complete && before.manifest === summary.manifest;
      if (same && before.edits === summary.edits) {
        describe();
        return;
      }
      if (before && before.manifest !== summary.manifest) {
        windows.clear(); // a writer has begun another MANIFEST: its edits are others
        if (query.step !== undefined) page.go("life", {}, { replace: true });
      }
      player.set(here() - first(), summary.edits - first());
      drawChart();
      describe();
      clearTimeout(timer);
      if (!summary.complete) timer = setTimeout(load, 400);
      else if (query.step === undefined) draw();
    } catch (error) {
      page.fail(error);
    }
  }

  function here() {
    const last = summary.edits - 1;
    if (query.step === undefined) return last;
    return Math.min(Math.max(first(), Number(query.step) || 0), last);
  }

  function describe() {
    const damage = summary.damage.map((one) => `${one.reason} at ${number(one.offset)}`).join("; ");
    show(status, `${summary.manifest}: ${count(summary.edits, "edit")}, ${bytes(summary.size)}`,
      summary.complete ? "" : " … being read",
      first() ? `; this report has them from ${number(first() + 1)} on` : "",
      summary.memtable?.total ? `. Not in it: ${summary.memtable.where.replace(/\.$/, "")}` : "",
      damage ? h("strong", {}, `. Damaged: ${damage}`) : "");
  }

  function windowOf(step) {
    const begin = step - (step % summary.window);
    if (!windows.has(begin)) {
      const asked = ask("history/window", { from: begin });
      windows.set(begin, asked);
      asked.then((found) => {
        // A window that was not full then may have more edits now.
        if (found.edits.length < summary.window) windows.delete(begin);
      }, () => windows.delete(begin));
      if (windows.size > 20) windows.delete(windows.keys().next().value);
    }
    return windows.get(begin);
  }

  async function draw() {
    if (!summary || !summary.edits) return;
    const step = here();
    const mine = ++drawing;
    player.set(step - first(), summary.edits - first());
    try {
      const found = await windowOf(step);
      if (mine !== drawing || closed) return;
      drawEdit(found.edits[step - found.first]);
      drawLevels(found, step);
      moveCursor();
    } catch (error) {
      player.stop();
      page.fail(error);
    }
  }

  function drawEdit(edit) {
    show(words, h("span", { class: `chip ${edit.kind}` }, edit.kind), " ", edit.words.replace(/^[a-z]+: /, ""),
      edit.why ? h("span", { class: "quiet" }, `. ${edit.why}`) : null);
    show(figures,
      figure("edit", number(edit.step + 1)),
      figure("written by it", bytes(edit.written)),
      figure("by flushes so far", bytes(edit.flushed_so_far)),
      figure("by compactions so far", bytes(edit.compacted_so_far)),
      figure("write amplification", edit.write_amplification === null ? "–" : `${edit.write_amplification.toFixed(2)}×`,
        { title: "bytes written into tables for each byte that was flushed, since this MANIFEST began" }));
  }

  function drawLevels(found, step) {
    const levels = Array.from({ length: LEVELS }, () => new Map());
    for (const table of found.before) levels[table.level].set(table.number, table);
    let gone = [];
    const added = new Set();
    for (const edit of found.edits.slice(0, step - found.first + 1)) {
      const last = edit.step === step;
      const removed = edit.removed.map((one) => ({ ...levels[one.level].get(one.number), level: one.level }));
      for (const one of edit.removed) levels[one.level].delete(one.number);
      for (const one of edit.added) levels[one.level].set(one.number, one);
      if (last) {
        gone = removed;
        for (const one of edit.added) added.add(one.number);
      }
    }
    const shown = levels.map((tables, level) => {
      const here = [...tables.values()].sort(inOrder(level));
      return { level, files: here.length, bytes: here.reduce((sum, one) => sum + one.size, 0), tables: here };
    });
    const rows = levelRows(shown, (bar, table) => {
      if (added.has(table.number)) {
        bar.tone = "added";
        bar.about.push("new");
      }
    });
    for (const table of gone) {
      while (rows.length <= table.level) rows.push({ label: `L${rows.length}`, note: "empty", bars: [] });
      rows[table.level].bars.push({
        id: `gone-${table.number}`, size: table.size, text: String(table.number), ghost: true, table,
        about: [`${table.name}, level ${table.level}`, bytes(table.size), "removed by this edit"],
      });
    }
    bars.set(rows, { selected: null });
  }

  function drawChart() {
    const { steps, flushed, compacted } = summary.curve;
    const data = [steps.map((one) => one + 1), flushed, flushed.map((one, at) => one + compacted[at])];
    coincide.hidden = !steps.length || compacted[0] > 0;
    show(coincide, together(steps, compacted));
    if (plot) {
      plot.setData(data);
      return;
    }
    const color = colors(root);
    const axis = axisOf(color);
    plot = new uPlot({
      width: chart.clientWidth || 600, height: 190, padding: [8, 24, 0, 0], scales: { x: { time: false } },
      cursor: { drag: { x: false, y: false } }, legend: { live: false },
      series: [
        { label: "edit" },
        { label: "by flushes", stroke: () => color("added"), width: 5 },
        { label: "with compactions", stroke: () => color("level-2"), width: 2, dash: [5, 7] },
      ],
      axes: [{ ...axis, incrs: WHOLE, values: (_, all) => all.map((one) => (one % 1 ? "" : number(one))) },
        { ...axis, incrs: POWERS, size: 76, values: (_, all) => all.map((one) => bytes(one)) }],
      hooks: {
        draw: [(u) => {
          const x = u.valToPos(here() + 1, "x", true);
          u.ctx.save();
          u.ctx.strokeStyle = color("focus");
          u.ctx.lineWidth = 2 * devicePixelRatio;
          u.ctx.beginPath();
          u.ctx.moveTo(x, u.bbox.top);
          u.ctx.lineTo(x, u.bbox.top + u.bbox.height);
          u.ctx.stroke();
          u.ctx.restore();
        }],
      },
    }, data, chart);
    plot.over.addEventListener("click", () => {
      const at = plot.cursor.left === null ? null : Math.round(plot.posToVal(plot.cursor.left, "x")) - 1;
      if (at !== null) player.go(at - first());
    });
  }

  function moveCursor() {
    plot?.redraw(false);
  }

  const repaint = () => plot?.redraw(false);
  document.addEventListener("lsmkv-theme", repaint);

  return {
    update(given) {
      query = given;
      if (!summary) load().then(draw);
      else draw();
    },
    twin: () => (summary && summary.edits && query.step !== undefined
      ? ["history/window", { from: here() - (here() % summary.window) }] : ["history", {}]),
    key: (event) => summary !== null && player.key(event),
    async follow() {
      await load();
      return null;
    },
    reload: load,
    close() {
      closed = true;
      clearTimeout(timer);
      player.stop();
      observer.disconnect();
      document.removeEventListener("lsmkv-theme", repaint);
      plot?.destroy();
      bars.close();
    },
  };
}

/** Where the two lines of the chart are one, in words. */
function together(steps, compacted) {
  const first = compacted.findIndex((one) => one > 0);
  const so = "the dashed line, with compactions, coincides with the line of the flushes";
  if (first < 0) return `No compaction has written anything since this MANIFEST began: ${so}.`;
  return `Up to edit ${number(steps[Math.max(0, first - 1)] + 1)} no compaction had written anything: up to there ${so}.`;
}

function inOrder(level) {
  if (level === 0) return (a, b) => b.number - a.number;
  return (a, b) => (plainKey(a.smallest) < plainKey(b.smallest) ? -1 : plainKey(a.smallest) > plainKey(b.smallest) ? 1 : a.number - b.number);
}
