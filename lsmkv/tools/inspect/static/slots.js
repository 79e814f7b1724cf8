// The slots of a fuse filter: bytes in rows.

import { shape } from "./draw.js";
import { number } from "./format.js";
import { hexByte } from "./probes.js";

const MARGIN = 50; // for the slot that a row begins with
const PITCH = { least: 18, most: 24 }; // a cell and the space after it, in pixels
const ROW = 20;
const BREAK = 14; // between rows that do not follow each other

/** Slots in rows of 8, 16 or 32; the arrow keys, Home, End and a click select one.
 *
 * `onselect(slot)` is called with what is selected.
 */
export class SlotGrid {
  constructor(label, onselect) {
    this.onselect = onselect;
    this.selected = -1;
    this.order = []; // the slots that are drawn
    this.cells = new Map(); // slot -> its rectangle
    this.columns = 8;
    this.root = shape("svg", { class: "lab-bits lab-slots", tabindex: "0", role: "application", "aria-label": label });
    this.root.addEventListener("click", (event) => {
      const slot = event.target.dataset?.slot;
      if (slot !== undefined) this.select(Number(slot));
    });
    this.root.addEventListener("keydown", (event) => this.move(event));
  }

  /** Draw `bands`, `[{first, end}]` with `first` a multiple of 64; `valueOf(slot)` may be undefined. */
  layOut(bands, valueOf, segment, width) {
    this.columns = [32, 16].find((some) => (width - MARGIN) / some >= PITCH.least) ?? 8;
    const pitch = Math.min(PITCH.most, Math.floor((width - MARGIN) / this.columns));
    const parts = [];
    this.order = [];
    this.cells = new Map();
    let y = 0;
    let before = 0;
    for (const { first, end } of bands) {
      if (first !== before) {
        parts.push(shape("text", { class: "lab-offset", x: MARGIN - 7, y: y + 9 }, "⋮"));
        y += BREAK;
      }
      for (let row = first; row < end; row += this.columns) {
        parts.push(shape("text", { class: "lab-offset", x: MARGIN - 7, y: y + 14 }, number(row)));
        if (row % segment === 0 && row > 0) {
          parts.push(shape("line", { class: "lab-segment", x1: MARGIN, x2: MARGIN + this.columns * pitch, y1: y, y2: y }));
        }
        for (let slot = row; slot < Math.min(end, row + this.columns); slot++) {
          const x = MARGIN + (slot - row) * pitch;
          const cell = shape("rect", { x, y: y + 1, width: pitch - 2, height: ROW - 2, rx: 2, "data-slot": slot });
          const value = valueOf(slot);
          const text = shape("text", { x: x + (pitch - 2) / 2, y: y + 14, "data-slot": slot }, value === undefined ? "·" : hexByte(value));
          parts.push(cell, text);
          this.cells.set(slot, [cell, text]);
          this.order.push(slot);
        }
        y += ROW;
      }
      before = end;
    }
    const full = MARGIN + this.columns * pitch;
    this.root.setAttribute("viewBox", `0 0 ${full} ${y + 2}`);
    this.root.setAttribute("width", full);
    this.root.setAttribute("height", y + 2);
    this.root.replaceChildren(...parts);
  }

  /** Mark the slots that a query read. */
  color(read) {
    for (const [slot, [cell, text]] of this.cells) {
      const names = read.includes(slot) ? ["lab-probed", "lab-set"] : ["lab-clear"];
      cell.setAttribute("class", [...names, slot === this.selected ? "lab-selected" : ""].join(" ").trim());
      text.setAttribute("class", `lab-slot ${names[0]}`);
    }
  }

  select(slot) {
    this.cells.get(this.selected)?.[0].classList.remove("lab-selected");
    this.selected = slot;
    this.cells.get(slot)?.[0].classList.add("lab-selected");
    this.onselect(slot);
  }

  move(event) {
    const at = this.order.indexOf(this.selected);
    const last = this.order.length - 1;
    const places = {
      ArrowLeft: at - 1, ArrowRight: at + 1, ArrowUp: at - this.columns, ArrowDown: at + this.columns, Home: 0, End: last,
    };
    if (!(event.key in places) || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    const wanted = at < 0 ? 0 : places[event.key];
    if (wanted >= 0 && wanted <= last) this.select(this.order[wanted]);
  }
}
