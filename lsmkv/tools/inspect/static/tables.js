// A store's tables as rows of bars.

import { plainKey } from "./dom.js";
import { bytes, count, number } from "./format.js";

/** Rows for `Bars`: a row for each level up to the last that has tables; `change(bar, table)` adds. */
export function levelRows(levels, change = () => {}) {
  const used = levels.filter((level) => level.tables.length);
  const last = used.length ? used[used.length - 1].level : 0;
  return levels.slice(0, last + 1).map((level) => ({
    label: `L${level.level}`,
    note: level.files ? `${number(level.files)} · ${bytes(level.bytes)}` : "empty",
    overlaps: level.level === 0,
    bars: level.tables.map((table) => {
      const bar = {
        id: table.name,
        size: table.size,
        from: table.from,
        to: table.to,
        text: String(table.number),
        tone: `level-${level.level}`,
        level: level.level,
        damaged: Boolean(table.problems),
        table,
        about: [
          `${table.name}, level ${level.level}`,
          bytes(table.size),
          `${plainKey(table.smallest)} … ${plainKey(table.largest)}`,
        ],
      };
      if (table.problems) {
        bar.tone = "wasted";
        bar.about.push(`damaged: ${count(table.problems, "problem")}`);
      }
      change(bar, table);
      return bar;
    }),
  }));
}
