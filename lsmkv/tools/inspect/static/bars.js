// Rows of bars whose area is their bytes, on a canvas: tables by level, or the parts of a file.
//
// By size, a row is as many lines as it needs, like text.  By key, a row is one line, and a bar lies
// where its keys lie.  Arrow keys move the selection, and what is selected is announced in words.

import { h } from "./dom.js";

const LINE = 22;
const TALL = 34; // where there are few lines
const FEW_LINES = 7;
const GAP = 3;
const ROW_GAP = 11;
const LEAST = 3;
const ROOMY = 26; // pixels that a bar of average size should have
const MOST_LINES = 24;

/** A drawing of rows: `{label, note, bars: [{id, size, tone, text, about, from, to, level}]}`. */
export class Bars {
  /**
   * `onpick(bar)` is called with what is clicked or entered, `onselect(bar)` with what is selected;
   * with `twice` the first click selects alone.
   */
  constructor({ label, onpick = () => {}, onselect = () => {}, twice = false }) {
    this.twice = twice;
    this.rows = [];
    this.mode = "size";
    this.placed = [];
    this.selected = null;
    this.hovered = null;
    this.onpick = onpick;
    this.onselect = onselect;
    this.view = [0, 1];
    this.canvas = h("canvas", { "aria-hidden": "true" });
    this.tip = h("div", { class: "tip", hidden: true });
    this.announced = h("p", { class: "sr", "aria-live": "polite" });
    this.stage = h("div", {
      class: "bars", tabindex: "0", role: "application", "aria-roledescription": "bars",
      "aria-label": `${label}. Arrow keys select, Enter opens.`,
      onkeydown: (event) => this.key(event),
    }, this.canvas, this.tip);
    this.element = h("div", { class: "stage" }, this.stage, this.announced);
    this.listen();
    this.observer = new ResizeObserver(() => this.layout());
    this.observer.observe(this.stage);
    this.redraw = () => this.draw();
    document.addEventListener("lsmkv-theme", this.redraw);
  }

  /** Stop listening. */
  close() {
    this.observer.disconnect();
    document.removeEventListener("lsmkv-theme", this.redraw);
  }

  /** Draw these rows. */
  set(rows, { mode = this.mode, selected = this.selected } = {}) {
    this.rows = rows;
    this.mode = mode;
    this.selected = selected;
    this.hovered = null;
    this.tip.hidden = true;
    this.layout();
  }

  /** Select a bar by its id, without a call of `onselect`. */
  select(id) {
    this.selected = id;
    this.draw();
  }

  /** Show a part of the axis of keys, between 0 and 1. */
  zoom(from, to) {
    const width = Math.min(1, Math.max(to - from, 1e-4));
    const start = Math.min(Math.max(0, from), 1 - width);
    this.view = [start, start + width];
    this.layout();
  }

  layout() {
    const width = this.stage.clientWidth;
    if (!width) return;
    this.gutter = this.rows.some((row) => row.label) ? (width < 560 ? 44 : 118) : 0;
    const room = Math.max(40, width - this.gutter - 2);
    this.line = this.linesFor(room) <= FEW_LINES ? TALL : LINE;
    this.placed = [];
    this.labels = [];
    let y = 2;
    for (const row of this.rows) {
      const top = y;
      y = this.mode === "keys" ? this.byKey(row, y, room) : this.bySize(row, y, room);
      this.labels.push({ row, y: top });
      y += ROW_GAP;
    }
    this.height = Math.max(this.line, y - ROW_GAP + 2);
    const scale = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(width * scale);
    this.canvas.height = Math.round(this.height * scale);
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${this.height}px`;
    this.draw();
  }

  bySize(row, y, room) {
    const perByte = this.pixelsPerByte(room);
    let x = 0;
    for (const bar of row.bars) {
      const wide = Math.min(room, Math.max(LEAST, bar.size * perByte));
      if (x > 0 && x + wide > room + 0.5) {
        x = 0;
        y += this.line + GAP;
      }
      this.placed.push({ bar, row, x: this.gutter + x, y, w: wide, h: this.line });
      x += wide;
    }
    return y + this.line;
  }

  /** About how many lines the rows take. */
  linesFor(room) {
    if (this.mode === "keys") {
      return this.rows.reduce((sum, row) => sum + (row.overlaps ? Math.min(8, row.bars.length) : 1), 0);
    }
    const perByte = this.pixelsPerByte(room);
    return this.rows.reduce((sum, row) =>
      sum + Math.max(1, Math.ceil((row.bars.reduce((all, bar) => all + bar.size, 0) * perByte) / room)), 0);
  }

  pixelsPerByte(room) {
    const bars = this.rows.reduce((sum, row) => sum + row.bars.length, 0);
    const most = Math.max(1, ...this.rows.map((row) => row.bars.reduce((sum, bar) => sum + bar.size, 0)));
    const lines = Math.min(MOST_LINES, Math.max(1, Math.ceil((bars * ROOMY) / room)));
    return (lines * room * 0.97) / most;
  }

  byKey(row, y, room) {
    const [from, to] = this.view;
    const at = d3.scaleLinear([from, to], [0, room]);
    const lines = row.overlaps ? row.bars.map((bar) => [bar]) : [row.bars];
    const tall = row.overlaps && lines.length > 8 ? Math.max(4, Math.floor(176 / lines.length)) : this.line;
    for (const line of lines) {
      for (const bar of line) {
        const start = Math.max(-2, at(bar.from));
        const end = Math.min(room + 2, at(bar.to));
        if (end < 0 || start > room) continue;
        const w = Math.max(LEAST, end - start);
        this.placed.push({ bar, row, x: this.gutter + start, y, w, h: tall });
      }
      y += tall + (tall < LINE ? 1 : GAP);
    }
    return Math.max(y - GAP, y - tall + this.line);
  }

  draw() {
    if (this.pending) return;
    this.pending = requestAnimationFrame(() => {
      this.pending = 0;
      this.paint();
    });
  }

  paint() {
    const style = getComputedStyle(this.stage);
    const color = (name) => style.getPropertyValue(`--${name}`).trim();
    const colors = new Map();
    const toned = (tone) => {
      if (!colors.has(tone)) colors.set(tone, color(tone) || color("bar"));
      return colors.get(tone);
    };
    const pen = this.canvas.getContext("2d");
    const scale = window.devicePixelRatio || 1;
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.clearRect(0, 0, this.canvas.width, this.canvas.height);
    pen.textBaseline = "middle";
    for (const { row, y } of this.labels ?? []) {
      pen.fillStyle = color("text");
      pen.font = "600 13px system-ui, sans-serif";
      pen.fillText(row.label ?? "", 0, y + this.line / 2);
      if (row.note && this.gutter > 100) {
        pen.fillStyle = color("quiet");
        pen.font = "11.5px system-ui, sans-serif";
        pen.fillText(row.note, 24, y + this.line / 2);
      }
      if (!row.bars.length) {
        pen.fillStyle = color("line");
        pen.fillRect(this.gutter, y + this.line / 2, 40, 1);
      }
    }
    pen.font = "11px ui-monospace, monospace";
    for (const place of this.placed) this.paintBar(pen, place, toned, color);
  }

  paintBar(pen, { bar, x, y, w, h: tall }, toned, color) {
    const inset = w > 4 ? 1 : 0.5;
    pen.globalAlpha = bar.dim ? 0.3 : 1;
    pen.fillStyle = toned(bar.tone ?? "bar");
    if (bar.ghost) {
      pen.strokeStyle = toned("wasted");
      pen.setLineDash([3, 2]);
      pen.strokeRect(x + 1, y + 1, w - 2, tall - 2);
      pen.setLineDash([]);
    } else {
      pen.fillRect(x, y, w - inset, tall);
    }
    if (bar.damaged) this.hatch(pen, x, y, w - inset, tall, color("page"));
    const chosen = bar.id === this.selected;
    if (chosen || bar === this.hovered || bar.outlined) {
      pen.globalAlpha = 1;
      pen.lineWidth = chosen ? 3 : 2;
      pen.strokeStyle = color(chosen ? "focus" : "text");
      pen.strokeRect(x + 1, y + 1, Math.max(1, w - inset - 2), tall - 2);
      pen.lineWidth = 1;
    }
    pen.globalAlpha = 1;
    if (bar.text && tall >= 16 && w > bar.text.length * 7 + 6) this.paintText(pen, bar, x + 5, y + tall / 2 + 0.5, toned, color);
  }

  /** The text of a bar: on a plate of its color where it is hatched, and dark where it is pale. */
  paintText(pen, bar, x, y, toned, color) {
    if (bar.damaged && !bar.ghost) {
      pen.fillStyle = bar.dim ? color("page") : toned(bar.tone ?? "bar");
      pen.fillRect(x - 3, y - 8, pen.measureText(bar.text).width + 6, 15);
    }
    pen.fillStyle = bar.ghost || bar.dim ? color("text") : color("on-bar");
    pen.fillText(bar.text, x, y);
  }

  hatch(pen, x, y, w, tall, color) {
    pen.save();
    pen.beginPath();
    pen.rect(x, y, w, tall);
    pen.clip();
    pen.strokeStyle = color;
    pen.lineWidth = 1.5;
    for (let at = x - tall; at < x + w; at += 6) {
      pen.beginPath();
      pen.moveTo(at, y + tall);
      pen.lineTo(at + tall, y);
      pen.stroke();
    }
    pen.restore();
  }

  listen() {
    this.stage.addEventListener("pointermove", (event) => this.hover(event));
    this.stage.addEventListener("pointerleave", () => this.leave());
    this.stage.addEventListener("click", (event) => {
      const found = this.at(event);
      if (!found) return;
      const again = found.bar.id === this.selected;
      this.choose(found.bar);
      if (again || !this.twice) this.onpick(found.bar);
    });
    const zoom = d3.zoom().scaleExtent([1, 4000]).filter((event) =>
      this.mode === "keys" && (event.type !== "wheel" || event.ctrlKey) &&
      !(event.touches && event.touches.length < 2) && !event.button);
    zoom.on("zoom", ({ transform }) => {
      const room = Math.max(40, this.stage.clientWidth - this.gutter);
      const width = 1 / transform.k;
      this.zoom(-transform.x / transform.k / room, -transform.x / transform.k / room + width);
    });
    d3.select(this.stage).call(zoom).on("dblclick.zoom", null);
    this.zoomBy = (factor) => d3.select(this.stage).call(zoom.scaleBy, factor);
    this.zoomOut = () => d3.select(this.stage).call(zoom.transform, d3.zoomIdentity);
  }

  at(event) {
    const box = this.canvas.getBoundingClientRect();
    const x = event.clientX - box.left;
    const y = event.clientY - box.top;
    return this.placed.findLast((one) =>
      x >= one.x && x <= one.x + one.w && y >= one.y && y <= one.y + one.h);
  }

  hover(event) {
    const found = this.at(event);
    const bar = found ? found.bar : null;
    this.stage.classList.toggle("over", bar !== null);
    if (bar !== this.hovered) {
      this.hovered = bar;
      this.draw();
      this.tip.hidden = bar === null;
      if (bar) this.tip.replaceChildren(...lines(bar.about));
    }
    if (found) {
      const left = Math.min(found.x, Math.max(0, this.stage.clientWidth - this.tip.offsetWidth - 4));
      this.tip.style.transform = `translate(${left}px, ${found.y + found.h + 6}px)`;
    }
  }

  leave() {
    this.hovered = null;
    this.tip.hidden = true;
    this.draw();
  }

  choose(bar) {
    this.selected = bar.id;
    this.announced.textContent = bar.about.join(", ");
    this.draw();
    this.onselect(bar);
  }

  key(event) {
    const { key } = event;
    if (event.ctrlKey || event.altKey || event.metaKey || !this.placed.length) return;
    const at = this.placed.findIndex((one) => one.bar.id === this.selected);
    let next = at;
    if (key === "ArrowRight") next = at + 1;
    else if (key === "ArrowLeft") next = at < 0 ? 0 : at - 1;
    else if (key === "ArrowDown" || key === "ArrowUp") next = this.beside(at, key === "ArrowDown" ? 1 : -1);
    else if (key === "Home") next = 0;
    else if (key === "End") next = this.placed.length - 1;
    else if ((key === "Enter" || key === " ") && at >= 0) this.onpick(this.placed[at].bar);
    else return;
    event.preventDefault();
    event.stopPropagation();
    if (this.placed[next] && next !== at) this.choose(this.placed[next].bar);
  }

  /** The nearest bar on the next line, or the line before. */
  beside(at, step) {
    if (at < 0) return 0;
    const from = this.placed[at];
    const other = this.placed.filter((one) => (step > 0 ? one.y > from.y : one.y < from.y));
    if (!other.length) return at;
    const y = step > 0 ? Math.min(...other.map((one) => one.y)) : Math.max(...other.map((one) => one.y));
    const middle = from.x + from.w / 2;
    const off = (one) => Math.abs(one.x + one.w / 2 - middle);
    return this.placed.indexOf(other.filter((one) => one.y === y).reduce((a, b) => (off(b) < off(a) ? b : a)));
  }
}

function lines(about) {
  return about.map((line, at) => h(at ? "div" : "strong", {}, line));
}
