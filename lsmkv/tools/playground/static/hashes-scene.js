// The fourth scene: the answers of filters for absent keys, names beside sequential keys.

import { button, h, show } from "./inspect/dom.js";
import { shape } from "./inspect/draw.js";
import { count, number } from "./inspect/format.js";
import { percent } from "./inspect/sentences.js";

const CELL = 8;
const GAP = 1;
const AT_ONCE = 12; // cells of a frame

/** The scene; `begin` is called once the store is made. */
export class Hashes {
  constructor(place, engine) {
    this.engine = engine;
    this.grids = h("div", { class: "hash-grids" });
    this.words = h("p", { role: "status" });
    this.table = h("div");
    this.again = button("Ask again", () => this.play(), { hidden: true });
    this.start = button("Ask 1,000 absent keys of each", () => this.run(), { class: "main", disabled: true });
    show(place, h("p", { class: "actions" }, this.start, this.again), this.grids, this.words, this.table);
  }

  begin() {
    this.start.disabled = false;
  }

  async run() {
    this.start.disabled = true;
    try {
      Object.assign(this, await this.engine.ask("hashes")); // kinds, sizes and patterns
      this.start.hidden = true;
      this.again.hidden = false;
      this.play();
    } catch (error) {
      this.start.disabled = false;
      show(this.words, h("span", { class: "trouble" }, error.message));
    }
  }

  /** Fill the grids side by side, or at once for those who want no motion. */
  play() {
    cancelAnimationFrame(this.frame);
    const grids = this.kinds.map((kind) => new Grid(kind));
    show(this.grids, grids.map((grid) => grid.root));
    show(this.words);
    show(this.table);
    const whole = Math.max(...grids.map((grid) => grid.answers.length));
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    let done = still ? whole : 0;
    const next = () => {
      done = Math.min(done + AT_ONCE, whole);
      for (const grid of grids) grid.draw(done);
      if (done < whole) this.frame = requestAnimationFrame(next);
      else this.sum(grids);
    };
    next();
  }

  sum(grids) {
    const [names, gaps, calm] = grids.map((grid) => percent(grid.passed / grid.answers.length));
    show(this.words, `Of names ${names} pass, of the numbers between sequential keys `, h("strong", {}, gaps),
      `: their 32-bit hashes are close to each other, so they share bits. With a 64-bit hash it is ${calm}. `,
      h("code", {}, "filter_policy=lsmkv.Bloom64Policy(10)"), " chooses that one; LevelDB reads such tables without their filters.");
    show(this.table, h("p", {}, "How many pass depends on the numbers that are asked for, and on the number of keys in a filter. Without gaps, every number is a key."),
      h("div", { class: "scroll" }, h("table", { class: "narrow devices patterns" },
        h("thead", {}, h("tr", {}, ["absent keys that pass", ...this.sizes.map((size) => count(size, "key")), `${this.keys}, 64-bit`]
          .map((one) => h("th", { scope: "col" }, one)))),
        h("tbody", {}, this.patterns.map(({ title, leveldb, bloom64 }) => h("tr", {}, h("th", { scope: "row" }, title),
          [...leveldb, bloom64].map((share) => h("td", {}, percent(share)))))))));
  }
}

/** The answers of one kind: a row for each filter, a cell for each absent key. */
class Grid {
  constructor({ title, answers }) {
    this.columns = answers[0].length;
    this.answers = answers.join("");
    this.passed = 0;
    const [width, height] = [this.columns * CELL, answers.length * CELL];
    this.paths = { 0: shape("path", { class: "hash-no" }), 1: shape("path", { class: "hash-maybe" }) };
    this.figure = h("span", {});
    const picture = shape("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Answers of ${answers.length} filters of ${title}` }, ...Object.values(this.paths));
    this.root = h("figure", {}, h("figcaption", {}, h("strong", {}, title), h("br"), this.figure), picture);
  }

  draw(done) {
    const lines = { 0: [], 1: [] };
    for (let at = 0; at < done; at++) {
      const [x, y] = [(at % this.columns) * CELL, Math.floor(at / this.columns) * CELL];
      const side = CELL - GAP;
      lines[this.answers[at]].push(this.answers[at] === "1" ? `M${x} ${y}h${side}v${side}h-${side}z` : `M${x + 2} ${y + 2}h${side - 4}v${side - 4}h-${side - 4}z`);
    }
    for (const [answer, path] of Object.entries(this.paths)) path.setAttribute("d", lines[answer].join(""));
    this.passed = lines[1].length;
    this.figure.textContent = `${number(this.passed)} of ${number(done)} absent keys pass: ${percent(this.passed / done)}`;
  }
}
