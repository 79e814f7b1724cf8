// Lines from bits of a filter to the keys that set them, over what lies between.

import { shape } from "./inspect/draw.js";

/** Lines within `place`, whose position is relative.  They follow its layout. */
export class Lines {
  constructor(place) {
    this.place = place;
    this.drawn = []; // {from, to, path}
    this.root = shape("svg", { class: "lines", "aria-hidden": "true" });
    place.append(this.root);
    new ResizeObserver(() => this.lay()).observe(place);
    place.addEventListener("scroll", () => this.lay(), { capture: true });
    for (const [begins, ends] of [["pointerover", "pointerout"], ["focusin", "focusout"]]) {
      place.addEventListener(begins, ({ target }) => this.light(target));
      place.addEventListener(ends, () => this.light(null));
    }
  }

  /** Draw a line for each of `pairs`, `[from, to]`: two elements of the place. */
  draw(pairs) {
    this.drawn = pairs.map(([from, to]) => ({ from, to, path: shape("path", { pathLength: 1 }) }));
    this.root.replaceChildren(...this.drawn.map(({ path }) => path));
    this.lay();
  }

  lay() {
    const place = this.place.getBoundingClientRect();
    for (const { from, to, path } of this.drawn) {
      const [bit, key] = [from.getBoundingClientRect(), to.getBoundingClientRect()];
      const box = from.closest(".lab-stage").getBoundingClientRect(); // a phone scrolls the bits in it
      const x = bit.left + bit.width / 2 - place.left;
      const y = Math.min(Math.max(bit.top + bit.height / 2, box.top), box.bottom) - place.top;
      const [toX, toY] = [key.left + key.width / 2 - place.left, key.top - place.top];
      const middle = (y + toY) / 2;
      path.setAttribute("d", `M${x} ${y}C${x} ${middle} ${toX} ${middle} ${toX} ${toY}`);
    }
  }

  /** Mark the lines of a bit or a key. */
  light(target) {
    for (const { from, to, path } of this.drawn) path.classList.toggle("lit", from === target || to === target);
  }
}
