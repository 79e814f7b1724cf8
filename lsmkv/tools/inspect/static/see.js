// The page of `lsmkv course see`: a student's steps beside the engine's, one after the other.
//
// The server runs the student's file for each question; the page asks again once the file is saved.

import { h, show } from "./dom.js";
import { count } from "./format.js";
import { Player } from "./player.js";
import { shown } from "./sentences.js";

const LOOK = 1000; // milliseconds between two looks at the file

if (matchMedia("(prefers-color-scheme: dark)").matches) document.documentElement.dataset.theme = "dark";

const SIDES = [["yours", "Yours"], ["engine", "The engine's"]];

let seen = null;
let step = 0;
let asked = null; // the question that is not answered yet

const title = h("h1", {}, "…");
const about = h("p", { class: "about" });
const input = h("input", { type: "text", name: "key", autocomplete: "off", spellcheck: "false", "aria-label": "Key" });
const form = h("form", { class: "ask", onsubmit: (event) => {
  event.preventDefault();
  step = 0;
  load(input.value);
} }, h("label", { class: "grow" }, h("span", {}, "Key"), input), h("button", { type: "submit", class: "main" }, "See"));
const trouble = h("p", { class: "trouble", role: "alert", hidden: true });
const verdict = h("p", { class: "verdict", role: "status" });
const player = new Player({ label: "Steps", pause: 700, onstep: (to) => {
  step = to;
  draw();
} });
const now = h("div", { class: "now", "aria-live": "polite" });
const pictures = h("div", { class: "beside" });
const steps = h("tbody");
const table = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "All steps" },
  h("table", { class: "see-steps" },
    h("thead", {}, h("tr", {}, ["Step", "Yours", "The engine's"].map((name) => h("th", { scope: "col" }, name)))), steps));
const result = h("div", { hidden: true }, verdict, player.element, now, pictures, h("h2", {}, "All steps"), table);

document.body.append(
  h("header", {}, h("span", { class: "brand" }, "lsmkv ", h("small", {}, "course see"))),
  h("main", {}, title, about, form, trouble, result),
);
document.addEventListener("keydown", (event) => {
  if (event.target === input || event.ctrlKey || event.metaKey || event.altKey || !seen) return;
  if (event.target.closest?.("button") && event.key === " ") return;
  if (player.key(event)) event.preventDefault();
});
setInterval(look, LOOK);
load();

async function load(key = undefined) {
  asked?.abort();
  const mine = new AbortController();
  asked = mine;
  form.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(`api/see${key === undefined ? "" : `?${new URLSearchParams({ key })}`}`, { signal: mine.signal });
    const found = await answer.json();
    if (!answer.ok) throw new Error(found.error);
    const first = seen === null;
    seen = found;
    if (first || document.activeElement !== input) input.value = seen.key;
    // A part that differs is shown at the step where it does.
    if (first && seen.differs !== null) step = seen.differs;
    trouble.hidden = true;
    result.hidden = false;
    draw();
  } catch (error) {
    if (error.name === "AbortError") return;
    trouble.hidden = false;
    show(trouble, error.message);
  } finally {
    if (asked === mine) {
      asked = null;
      form.removeAttribute("aria-busy");
    }
  }
}

/** Ask again if the file has been saved since the answer. */
async function look() {
  if (asked || !seen || document.hidden) return;
  try {
    const { stamp } = await (await fetch("api/saved")).json();
    if (stamp !== null && stamp !== seen.stamp && !asked) load(seen.key);
  } catch {
    // The server has ended; the page keeps what it shows.
  }
}

function draw() {
  step = Math.min(step, Math.max(0, seen.steps.length - 1));
  document.title = `Lab ${seen.lab}: ${seen.title}`;
  show(title, `Lab ${seen.lab}: ${seen.title}`);
  show(about, `The steps of ${seen.file}, as it was saved last, beside the engine's.`);
  player.set(step, seen.steps.length);
  drawVerdict();
  const here = seen.steps[step];
  show(now, h("strong", {}, here.what.trim()), SIDES.map(([side, name]) =>
    h("div", {}, `${name}: `, here[side] === null ? h("em", {}, "nothing") : h("code", { class: "key" }, here[side]))));
  show(pictures, SIDES.map(([side, name]) => h("section", { class: "card", "aria-label": name },
    h("h2", {}, name), picture(side))));
  show(steps, seen.steps.map((one, at) => h("tr", {
    class: `${at > step ? "ahead" : ""} ${differ(one) ? "differs" : ""}`, "aria-current": at === step ? "step" : null,
    onclick: () => player.go(at),
  }, h("th", { scope: "row" }, at === seen.differs ? "▸ " : "", one.what.trim()),
  SIDES.map(([side]) => h("td", {}, one[side] === null ? "–" : h("code", { class: "key" }, one[side]))))));
}

function drawVerdict() {
  const passed = seen.outcome === "passed";
  verdict.className = `verdict ${passed && seen.differs === null ? "alike" : "differ"}`;
  const words = seen.differs === null ? "All steps are the engine's."
    : `They part at step ${seen.differs + 1}: ${seen.steps[seen.differs].what.trim()}.`;
  show(verdict, words, passed ? "" : ` ${seen.outcome}: ${seen.message}`);
}

function differ(one) {
  return one.yours !== one.engine;
}

/** What one side has made up to this step. */
function picture(side) {
  const done = seen.steps.map((one, at) => ({ ...one, at })).slice(0, step + 1);
  const cells = done.filter((one) => one.kind !== "text" && one[side] !== null);
  if (seen.steps.some((one) => one.kind === "bits")) return bits(cells, side);
  if (seen.steps.some((one) => one.kind === "bytes")) return bytes(cells, side);
  return path(done.filter((one) => one[side] !== null), side);
}

/** The bits of a filter, eight in a row, the lowest first. */
function bits(cells, side) {
  return [h("div", { class: "bits", role: "img", "aria-label": `${cells.length} bytes of the filter` }, cells.map((one, row) => {
    const [mine, other] = [byte(one[side]), byte(side === "yours" ? one.engine : one.yours)];
    return Array.from({ length: 8 }, (_, bit) => h("i", {
      class: `${mine >> bit & 1 ? "set" : ""} ${(mine ^ other) >> bit & 1 ? "other" : ""} ${one.at === step ? "here" : ""}`,
      title: `bit ${8 * row + bit}`,
    }));
  })), cells.length ? null : h("p", { class: "quiet" }, "The filter has no byte yet.")];
}

/** The bytes of a block, in hexadecimal; those of one part stand together. */
function bytes(cells, side) {
  return [h("div", { class: "bytes" }, cells.map((one) => h("code", {
    class: `${differ(one) ? "other" : ""} ${one.at === step ? "here" : ""}`, title: one.what.trim(),
  }, one[side]))), cells.length ? null : h("p", { class: "quiet" }, "The block has no byte yet.")];
}

/** The way of a Get: what it asks and reads. */
function path(done, side) {
  const reads = done.filter((one) => one[side].startsWith("read block")).length;
  const asks = done.filter((one) => one[side].startsWith("filter")).length;
  return [h("p", { class: "way-sum" }, h("strong", {}, count(reads, "block")), ` read, ${count(asks, "filter")} asked`),
    h("ol", { class: "way" }, done.map((one) => h("li", { class: `${differ(one) ? "other" : ""} ${one.at === step ? "here" : ""}` },
      `${one.what.trim()}: ${shown(one[side])}`)))];
}

function byte(text) {
  return text === null ? 0 : parseInt(text.slice(0, 2), 16);
}
