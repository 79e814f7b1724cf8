// Buttons that go through steps, forward and back; the arrow keys and Space do the same.

import { button, h, svg } from "./dom.js";
import { number } from "./format.js";

const SHAPES = {
  first: "M3 3h2v10H3zM14 3v10L6 8z",
  back: "M12 3v10L4 8z",
  play: "M4 2.5v11L13 8z",
  stop: "M4 3h3v10H4zM9 3h3v10H9z",
  forward: "M4 3v10l8-5z",
  last: "M11 3h2v10h-2zM2 3v10l8-5z",
};

/** `onstep(step)` is called when the user or the clock goes to another step. */
export class Player {
  constructor({ label, onstep, pause = 900 }) {
    this.step = 0;
    this.steps = 0;
    this.onstep = onstep;
    this.pause = pause;
    this.timer = 0;
    this.range = h("input", {
      type: "range", min: "0", value: "0", "aria-label": label,
      oninput: () => this.go(Number(this.range.value)),
    });
    this.playing = button(icon("play"), () => this.toggle(), { "aria-label": "Play", title: "Play (Space)", class: "main" });
    this.where = h("output", { class: "where" });
    const at = (shape, label, title, step) => button(icon(shape), () => this.go(step()), { "aria-label": label, title });
    this.backward = [at("first", "First step", "Home", () => 0), at("back", "Step back", "←", () => this.step - 1)];
    this.forward = [at("forward", "Step forward", "→", () => this.step + 1), at("last", "Last step", "End", () => this.steps - 1)];
    this.element = h("div", { class: "player", role: "group", "aria-label": label },
      this.backward, this.playing, this.forward, this.range, this.where);
  }

  /** There are so many steps, and this is the one that is shown. */
  set(step, steps) {
    this.steps = steps;
    this.step = Math.min(Math.max(0, step), Math.max(0, steps - 1));
    this.range.max = String(Math.max(0, steps - 1));
    this.range.value = String(this.step);
    const { activeElement } = document; // before it is disabled, which may take the focus from it
    for (const one of this.backward) one.disabled = this.step === 0;
    for (const one of this.forward) one.disabled = this.step >= steps - 1;
    this.playing.disabled = steps < 2;
    if (activeElement?.disabled && this.element.contains(activeElement)) this.playing.focus(); // keys go on being heard
    this.range.setAttribute("aria-valuetext", `step ${number(this.step + 1)} of ${number(steps)}`);
    this.where.textContent = steps
      ? `${number(this.step + 1)} of ${number(steps)}` : "";
  }

  go(step) {
    const to = Math.min(Math.max(0, step), this.steps - 1);
    if (to !== this.step && this.steps) this.onstep(to);
  }

  toggle() {
    if (this.timer) {
      this.stop();
      return;
    }
    if (this.step >= this.steps - 1) this.go(0);
    this.playing.replaceChildren(icon("stop"));
    this.playing.setAttribute("aria-label", "Stop");
    this.timer = setInterval(() => {
      if (this.step >= this.steps - 1) this.stop();
      else this.go(this.step + 1);
    }, this.pause);
  }

  stop() {
    clearInterval(this.timer);
    this.timer = 0;
    this.playing.replaceChildren(icon("play"));
    this.playing.setAttribute("aria-label", "Play");
  }

  /** A key of the keyboard; whether it was one for steps. */
  key(event) {
    if (event.target === this.range && event.key !== " ") return false;
    const wide = event.shiftKey ? 10 : 1;
    if (event.key === "ArrowRight") this.go(this.step + wide);
    else if (event.key === "ArrowLeft") this.go(this.step - wide);
    else if (event.key === "Home") this.go(0);
    else if (event.key === "End") this.go(this.steps - 1);
    else if (event.key === " ") this.toggle();
    else return false;
    return true;
  }
}

function icon(name) {
  return svg("svg", { viewBox: "0 0 16 16", width: "16", height: "16", "aria-hidden": "true" },
    svg("path", { d: SHAPES[name], fill: "currentColor" }));
}
