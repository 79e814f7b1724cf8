// Now: what the owner of the store publishes, once a second.

import { axisOf, colors } from "./chart.js";
import { ask } from "./data.js";
import { figure, grid, h, numeric, row, show } from "./dom.js";
import { duration, number } from "./format.js";

const PAUSE = 1000; // milliseconds; so often does an owner publish
const HEIGHT = 190;
const TONES = { get: "level-2", put: "level-0", delete: "wasted", write: "level-4", seek: "filter" };
const OPERATIONS = ["", ...["a second", "p50", "p90", "p99", "max"].map(numeric)];
const LEVELS = ["level", ...["tables", "size", "read a second"].map(numeric), ""];

export const view = {
  name: "live",
  title: "Now",
  about: "What the program that has this store open is doing, updated once a second while this view is open.",
  served: true,
  mount,
};

function mount(root, page) {
  let timer = 0;
  let closed = false;
  const state = h("dl", { class: "figures" });
  const silent = h("p", { role: "status", hidden: true });
  const nothing = h("section", { class: "card", "aria-label": "Nothing is published", hidden: true });
  const rates = new Chart("Operations a second", Object.entries(TONES), (value) => number(value));
  const p99 = new Chart("Gets: 99 of 100 took at most", [["p99", "level-2"]], duration);
  const operations = rowsOf("Operations, last 10 seconds", OPERATIONS);
  const levels = rowsOf("Levels", LEVELS);
  const cards = { hits: "Hits", filters: "Filters", written: "Written", background: "Background" };
  const pairs = Object.fromEntries(Object.keys(cards).map((name) => [name, h("dl", { class: "pairs" })]));
  const all = h("div", { hidden: true }, h("div", { class: "charts" }, rates.element, p99.element),
    operations.element,
    h("div", { class: "cards" }, Object.entries(cards).map(([name, title]) =>
      h("section", { class: "card", "aria-label": title }, h("h2", {}, title), pairs[name]))),
    levels.element);
  show(root, state, silent, nothing, all);

  async function look() {
    clearTimeout(timer);
    try {
      if (!document.hidden) {
        const found = await ask("live");
        if (closed) return;
        page.clear();
        draw(found);
      }
    } catch (error) {
      if (!closed) page.fail(error);
    }
    if (!closed) timer = setTimeout(look, PAUSE);
  }

  function draw({ published, explanation, silent_seconds: quiet, figures, curves }) {
    nothing.hidden = explanation === null;
    all.hidden = explanation !== null;
    state.hidden = published === null;
    silent.hidden = !quiet;
    if (explanation !== null) {
      explain(explanation);
      return;
    }
    if (quiet) silent.textContent = `It has published nothing for ${number(Math.round(quiet))} seconds.`;
    show(state, figure("process", String(published.pid)), figure("open for", span(published.time - published.opened)),
      published.trace === null ? null : figure("traced to", published.trace));
    rates.set(curves.time, Object.keys(TONES).map((name) => curves.rates[name]));
    p99.set(curves.time, [curves.p99]);
    show(operations.body, figures.operations.map((one) =>
      row(OPERATIONS, [one.name, one.each_second, ...one.percentiles], one.seen ? {} : { class: "idle" })));
    for (const name of Object.keys(cards)) show(pairs[name], figures[name].map(pair));
    if (figures.compaction) {
      const { levels: between, tables, share } = figures.compaction;
      pairs.background.prepend(pair({ name: `level ${between}`, text: tables, tone: "" }),
        h("div", {}, h("dt", {}, "compaction"), h("dd", {}, h("meter", { min: "0", max: "1", value: String(share), "aria-label": "Share of its input that the compaction has read" }), ` ${percentOf(figures.compaction)}`)));
    } else pairs.background.prepend(pair({ name: "compaction", text: figures.no_compaction, tone: "" }));
    show(levels.body, figures.levels.map((one) => row(LEVELS,
      [`level ${one.level}`, one.tables, one.size, one.read_each_second, h("td", { class: "wide" }, share(one.share))])));
  }

  function explain({ heading, text, call }) {
    show(nothing, h("h2", {}, heading), text ? h("p", {}, text) : null, call ? [
      h("p", {}, "A process that opens the store as follows is shown here after a second:"),
      h("code", { class: "call" }, call),
      h("p", { class: "quiet" }, "With this option each operation is timed; without it there is no cost. This view keeps looking for such a process."),
    ] : null);
  }

  const repaint = () => [rates, p99].forEach((chart) => chart.repaint());
  document.addEventListener("lsmkv-theme", repaint);
  return {
    update() {
      look();
    },
    twin: () => ["live", {}],
    follow: () => null, // it looks by itself
    close() {
      closed = true;
      clearTimeout(timer);
      document.removeEventListener("lsmkv-theme", repaint);
      rates.close();
      p99.close();
    },
  };
}

/** A chart of some curves over time. */
class Chart {
  constructor(title, series, shown) {
    this.series = series;
    this.shown = shown;
    this.place = h("div", { class: "chart" });
    this.element = h("section", { "aria-label": title }, h("h2", {}, title), this.place);
    this.plot = null;
    this.observer = new ResizeObserver(() => this.plot?.setSize({ width: this.place.clientWidth, height: HEIGHT }));
    this.observer.observe(this.place);
  }

  set(times, values) {
    const data = [times, ...values];
    if (this.plot) {
      this.plot.setData(data);
      return;
    }
    const color = colors(this.place);
    const axis = axisOf(color);
    this.plot = new uPlot({
      width: this.place.clientWidth || 500, height: HEIGHT, padding: [8, 16, 0, 0],
      cursor: { drag: { x: false, y: false } }, legend: { live: false },
      scales: { y: { range: (_, least, most) => [0, Math.max(1, most ?? 1) * 1.05] } },
      series: [{ label: "time" }, ...this.series.map(([label, tone]) => ({ label, stroke: () => color(tone), width: 2 }))],
      axes: [{ ...axis, space: 90, size: 34, values: (_, all) => all.map(clock) },
        { ...axis, size: 70, values: (_, all) => all.map((value) => (value ? this.shown(value) : "0")) }],
    }, data, this.place);
  }

  repaint() {
    this.plot?.redraw(false);
  }

  close() {
    this.observer.disconnect();
    this.plot?.destroy();
  }
}

/** A table whose rows change: its place in the page and its focus stay. */
function rowsOf(caption, head) {
  const table = grid(caption, head, [], { class: "rows" });
  return { element: h("section", { "aria-label": caption }, h("h2", {}, caption), table), body: table.querySelector("tbody") };
}

function pair({ name, text, tone }) {
  return h("div", {}, h("dt", {}, name), h("dd", tone && /[1-9]/.test(text) ? { "data-tone": tone } : {}, text));
}

function share(part) {
  const bar = h("i", { class: "read" });
  bar.style.width = `${100 * part}%`;
  return h("span", { class: "share", "aria-hidden": "true" }, bar);
}

function percentOf(compaction) {
  return `${Math.round(100 * compaction.share)}%`;
}

/** A moment, in seconds since 1970, as the time of the day. */
function clock(seconds) {
  return new Date(1000 * seconds).toTimeString().slice(0, 8);
}

/** A span of time in its two largest units. */
function span(seconds) {
  const units = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
  const at = Math.max(0, Math.min(units.findIndex(([, size]) => seconds >= size), 3));
  const first = seconds < 1 ? 3 : at;
  let left = Math.max(0, Math.floor(seconds));
  return units.slice(first, first + 2).map(([unit, size]) => {
    const whole = Math.floor(left / size);
    left -= whole * size;
    return `${whole} ${unit}`;
  }).join(" ");
}
