// What the filter lab draws: elements, a grid of bits, and a curve.  Text is always set as text.

import { number } from "./format.js";

const SVG = "http://www.w3.org/2000/svg";

/** An HTML element with attributes and children. */
export function element(tag, attributes = {}, ...children) {
  return fitOut(document.createElement(tag), attributes, children);
}

/** An SVG element with attributes and children. */
export function shape(tag, attributes = {}, ...children) {
  return fitOut(document.createElementNS(SVG, tag), attributes, children);
}

function fitOut(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

const MARGIN = 40; // for the position that a row begins with
const GAP = 3; // between two bytes
const LARGEST = 22; // a cell and the space after it, in pixels
const SMALLEST = { few: 15, many: 9, touched: 16 };
const MANY = 640;
const NARROW = 560; // a phone: fingers are less exact than pointers

/** The bits of a filter in rows of 8, 16, 32 or 64, as many as the width has room for.
 *
 * The arrow keys, Home and End move from bit to bit; a click does too.  `onselect(position)` is called.
 */
export class BitGrid {
  constructor(label, onselect) {
    this.onselect = onselect;
    this.selected = -1;
    this.cells = [];
    this.columns = 8;
    this.root = shape("svg", { class: "lab-bits", tabindex: "0", role: "application", "aria-label": label });
    this.root.addEventListener("click", (event) => {
      const position = event.target.dataset?.bit;
      if (position !== undefined) this.select(Number(position));
    });
    this.root.addEventListener("keydown", (event) => this.move(event));
  }

  /** Draw `bits` cells into `width` pixels, each with `least` pixels a side or more. */
  layOut(bits, width, least = width < NARROW ? SMALLEST.touched : bits > MANY ? SMALLEST.many : SMALLEST.few) {
    const pitchOf = (bytes) => Math.floor((width - MARGIN - bytes * GAP) / (8 * bytes));
    const bytes = [8, 4, 2].find((some) => pitchOf(some) >= least) ?? 1;
    const pitch = Math.min(pitchOf(bytes), LARGEST);
    this.columns = 8 * bytes;
    this.selected = Math.min(this.selected, bits - 1);
    const rows = Math.ceil(bits / this.columns);
    const full = MARGIN + bytes * (pitch * 8 + GAP);
    this.root.setAttribute("viewBox", `0 0 ${full} ${rows * pitch + 2}`);
    this.root.setAttribute("width", full);
    this.root.setAttribute("height", rows * pitch + 2);
    this.root.replaceChildren();
    this.cells = [];
    for (let position = 0; position < bits; position++) {
      const row = Math.floor(position / this.columns);
      const column = position % this.columns;
      if (column === 0 && (pitch >= 12 || row % 2 === 0)) {
        const at = { class: "lab-offset", x: MARGIN - 7, y: row * pitch + pitch / 2 + 4 };
        this.root.append(shape("text", at, number(position)));
      }
      const cell = shape("rect", {
        x: MARGIN + column * pitch + Math.floor(column / 8) * GAP,
        y: row * pitch + 1,
        width: pitch - 2,
        height: pitch - 2,
        rx: 2,
        "data-bit": position,
      });
      this.root.append(cell);
      this.cells.push(cell);
    }
  }

  /** Color the cells: `isSet(position)`, and `probed`, the positions that a query looked at. */
  color(isSet, probed) {
    const looked = new Set(probed);
    this.cells.forEach((cell, position) => {
      const names = [isSet(position) ? "lab-set" : "lab-clear"];
      if (looked.has(position)) names.push("lab-probed");
      if (position === this.selected) names.push("lab-selected");
      cell.setAttribute("class", names.join(" "));
    });
  }

  select(position) {
    this.cells[this.selected]?.classList.remove("lab-selected");
    this.selected = position;
    this.cells[position]?.classList.add("lab-selected");
    this.reveal(position);
    this.onselect(position);
  }

  /** Scroll the box around the grid, where it is a box, so that a bit is seen.  The page stays. */
  reveal(position) {
    const [cell, box] = [this.cells[position], this.root.parentElement];
    if (!cell || !box || box.scrollHeight <= box.clientHeight) return;
    const [bit, seen] = [cell.getBoundingClientRect(), box.getBoundingClientRect()];
    if (bit.top < seen.top || bit.bottom > seen.bottom) box.scrollTop += bit.top - seen.top - box.clientHeight / 2;
  }

  move(event) {
    const last = this.cells.length - 1;
    const steps = {
      ArrowLeft: -1,
      ArrowRight: 1,
      ArrowUp: -this.columns,
      ArrowDown: this.columns,
      Home: -last,
      End: last,
    };
    if (!(event.key in steps) || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    const step = this.selected < 0 ? 0 : steps[event.key];
    const wanted = Math.max(this.selected, 0) + step;
    if (event.key === "Home" || event.key === "End" || (wanted >= 0 && wanted <= last)) {
      this.select(Math.max(0, Math.min(last, wanted)));
    }
  }
}

const WIDTH = 360;
const HEIGHT = 210;
const PLOT = { left: 48, right: 350, top: 10, bottom: 172 };

/** An expected curve and measured points over a number of keys, or of what `across` says.
 *
 * `ticks` are the values of the y axis with their texts; `place(value)` is 0 at its foot and 1 at
 * its head, or below 0 for what it does not show.
 */
export function curve({ title, description, most, ticks, place, expected, measured, now, across = "keys added" }) {
  const x = (keys) => PLOT.left + ((PLOT.right - PLOT.left) * keys) / most;
  const y = (value) => PLOT.bottom - (PLOT.bottom - PLOT.top) * place(value);
  const parts = [];
  for (const [value, text] of ticks) {
    const at = y(value).toFixed(1);
    parts.push(shape("line", { class: "lab-rule", x1: PLOT.left, x2: PLOT.right, y1: at, y2: at }));
    parts.push(shape("text", { class: "lab-tick lab-end", x: PLOT.left - 6, y: Number(at) + 4 }, text));
  }
  for (const keys of [0, Math.round(most / 2), most]) {
    const tick = { class: "lab-tick lab-middle", x: x(keys).toFixed(1), y: PLOT.bottom + 17 };
    parts.push(shape("text", tick, number(keys)));
  }
  const middle = (PLOT.left + PLOT.right) / 2;
  parts.push(shape("text", { class: "lab-tick lab-middle", x: middle, y: HEIGHT - 6 }, across));
  const line = [];
  for (let step = 0; step <= 100; step++) {
    const value = expected((most * step) / 100);
    if (place(value) >= 0) line.push(`${x((most * step) / 100).toFixed(1)},${y(value).toFixed(1)}`);
  }
  parts.push(shape("polyline", { class: "lab-expected", points: line.join(" ") }));
  for (const [keys, value] of measured) {
    if (place(value) < 0) continue;
    const at = { cx: x(keys).toFixed(1), cy: y(value).toFixed(1), r: keys === now ? 4.5 : 2.5 };
    parts.push(shape("circle", { class: keys === now ? "lab-measured lab-now" : "lab-measured", ...at }));
  }
  return shape(
    "svg",
    { class: "lab-curve", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${title}. ${description}` },
    ...parts,
  );
}
