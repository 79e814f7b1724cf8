// The bits of a filter with the number of each probe in them.

import { BitGrid, shape } from "./inspect/draw.js";

/** A grid of bits in which probed ones have their number, and those that are 0 are round. */
export class NumberedBits extends BitGrid {
  constructor(label, onselect) {
    super(label, onselect);
    this.marks = shape("g", { class: "probe-marks" });
  }

  layOut(...place) {
    super.layOut(...place);
    this.root.append(this.marks);
  }

  /** Color the cells, and number `probed`, the positions in their order. */
  color(isSet, probed) {
    super.color(isSet, probed);
    for (const cell of this.cells) cell.setAttribute("rx", 2);
    const numbers = new Map();
    probed.forEach((position, at) => numbers.set(position, [...(numbers.get(position) ?? []), at + 1]));
    const parts = [];
    for (const [position, which] of numbers) {
      const cell = this.cells[position];
      if (!cell) continue;
      const [x, y, side] = ["x", "y", "width"].map((name) => Number(cell.getAttribute(name)));
      cell.setAttribute("rx", isSet(position) ? 2 : side / 2);
      const text = which.length > 1 ? `${which[0]}+` : String(which[0]);
      parts.push(shape("text", { x: x + side / 2, y: y + side / 2 + 4, "font-size": Math.min(12, side - 3) }, text));
    }
    this.marks.replaceChildren(...parts);
  }
}
