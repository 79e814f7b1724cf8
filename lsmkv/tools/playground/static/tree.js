// The tables of a store by level, each with its data blocks as cells, which can be marked.

import { h, show } from "./inspect/dom.js";
import { bytes, number } from "./inspect/format.js";

/** What a mark says beside its color. */
export const SIGNS = { read: "•", wasted: "×", saved: "–" };

/** A drawing of the levels; `draw` and `mark` may be called at any time. */
export class Tree {
  constructor(label) {
    this.root = h("div", { class: "tree", role: "img", "aria-label": label });
    this.cells = new Map(); // "table offset" -> the cell
    this.rows = new Map(); // the name of a table -> its box
  }

  /** `levels`: `[{level, tables: [{name, size, blocks: [[offset, size]]}]}]`. */
  draw(levels) {
    this.cells.clear();
    this.rows.clear();
    show(this.root, levels.map(({ level, tables }) => h("div", { class: "tree-level" },
      h("span", { class: "tree-name" }, `level ${level}`),
      h("div", { class: "tree-tables" }, tables.map((table) => this.table(table, level))))));
  }

  table({ name, size, blocks }, level) {
    const cells = blocks.map(([offset]) => {
      const cell = h("i", {});
      this.cells.set(`${name} ${offset}`, cell);
      return cell;
    });
    const box = h("div", { class: "tree-table", "data-level": level, title: `${name}: ${bytes(size)}, ${number(blocks.length)} blocks` },
      h("span", {}, shortName(name)), h("span", { class: "tree-cells" }, cells));
    this.rows.set(name, box);
    return box;
  }

  /** Mark blocks, `[[table, offset, tone]]`, and the table that is asked now; all other marks go. */
  mark(marks, asked = null) {
    for (const cell of this.cells.values()) {
      cell.className = "";
      cell.textContent = "";
    }
    for (const [name, offset, tone] of marks) {
      const cell = this.cells.get(`${name} ${offset}`);
      if (!cell) continue;
      cell.className = tone;
      cell.textContent = SIGNS[tone];
    }
    for (const [name, box] of this.rows) box.classList.toggle("asked", name === asked);
  }
}

/** The number of a table. */
export function shortName(name) {
  return String(Number.parseInt(name, 10));
}
