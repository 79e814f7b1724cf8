// A Get, step by step: the path of `explain` over the levels, and the blocks it reads or saves.

import { Bars } from "./bars.js";
import { answered, ask, isReport } from "./data.js";
import { button, h, keyText, shortKey, show } from "./dom.js";
import { bytes, count, number } from "./format.js";
import { Player } from "./player.js";
import { probedBits, xorSum } from "./probes.js";
import { levelRows } from "./tables.js";

const MARKS = { memtable: "▤", index: "☰", filter: "▚", block: "■", table: "▭", answer: "⚑" };
const WORDS = { saved: "saved", read: "read", wasted: "wasted", plain: "" };
const TONES = [["saved", "saved: a filter said no"], ["read", "read: it contains the key"],
  ["wasted", "wasted: read, but without the key"], ["asking", "looked at"],
  ["waiting", "not looked at yet"], ["unasked", "not looked at: the answer was known"], ["pale", "the key is outside its range"]];

const KINDS = [["absent", "absent, in the range of tables"], ["near", "absent, a near miss"], ["wrong", "absent, but a filter errs"],
  ["present", "present"]];

export const view = {
  name: "get",
  title: "A Get, step by step",
  menu: "Get",
  about: "The steps of a read of one key, in order, and what it would read without filters.",
  mount,
};

function mount(root, page) {
  let query = {};
  let found = null;
  let levels = null;
  let suggested = null; // keys to ask for, by kind
  let asked = null;
  const input = h("input", {
    type: "text", name: "key", autocomplete: "off", spellcheck: "false", "aria-label": "Key",
    placeholder: "a key, escaped as 'lsmkv scan' prints it",
  });
  const hex = h("input", { type: "checkbox", name: "hex" });
  const form = h("form", { class: "ask", onsubmit: (event) => {
    event.preventDefault();
    player.stop();
    page.go("get", { [hex.checked ? "hex" : "key"]: input.value });
  } }, h("label", { class: "grow" }, h("span", {}, "Key"), input),
  h("label", { class: "check" }, hex, " in hexadecimal"),
  h("button", { type: "submit", class: "main" }, "Get"));
  const hints = h("div", { class: "hints" });
  const player = new Player({
    label: "Steps of the Get",
    onstep: (step) => page.go("get", { ...query, step }, { replace: true }),
  });
  const verdict = h("p", { class: "verdict", role: "status" });
  const compare = h("div", { class: "compare" });
  const nowhere = h("p", { class: "quiet" });
  const steps = h("ol", { class: "steps", "aria-label": "Steps" });
  const now = h("div", { class: "now", "aria-live": "polite" });
  const bars = new Bars({
    label: "The path over the levels",
    onpick: (bar) => page.go("table", { name: bar.table.name }),
  });
  const result = h("div", { class: "result", hidden: true },
    verdict, player.element,
    h("div", { class: "walk" }, h("div", { class: "stay" }, compare, now, bars.element, nowhere,
      h("ul", { class: "legend", "aria-label": "The colors of the bars" }, TONES.map(([tone, words]) =>
        h("li", tone === "pale" ? { class: "pale" } : { "data-tone": tone }, words)))), steps));
  show(root, isReport ? null : form, hints, result);

  function key() {
    return query.hex === undefined ? query.key : query.hex;
  }

  async function load() {
    asked?.abort();
    asked = new AbortController();
    const { signal } = asked;
    try {
      if (!levels) show(hints, "The store is being read …");
      if (!levels) {
        levels = await ask("levels", {}, signal);
        suggested = null;
      }
      hint();
      if (!levels.readable) throw new Error(`The store cannot be opened: ${levels.error}`);
      if (key() === undefined && isReport && answered("get").length) {
        page.go("get", answered("get")[0], { replace: true });
        return;
      }
      if (key() === undefined) {
        await suggest(signal);
        return;
      }
      found = await ask("get", question(), signal);
      if (!isReport && found.tables.some((one) => !knows(levels, one.name))) {
        levels = await ask("levels", {}, signal); // a writer has moved on
      }
      result.hidden = false;
      draw();
      await suggest(signal);
      asked = null;
    } catch (error) {
      if (error.name === "AbortError") return;
      asked = null;
      found = null;
      result.hidden = true;
      page.fail(error);
    }
  }

  /** Ask for keys to offer; after the Get, since the engine takes a moment to find them. */
  async function suggest(signal) {
    if (isReport || suggested) return;
    try {
      suggested = await ask("get/suggest", {}, signal);
    } catch (error) {
      if (error.name === "AbortError") throw error;
      suggested = {}; // the page works without them
    }
    hint();
  }

  /** Ask again, of the store as it is now. */
  function reload() {
    levels = null;
    return load();
  }

  function question() {
    return query.hex === undefined ? { key: query.key } : { hex: query.hex };
  }

  function hint() {
    const kinds = isReport ? [["The Gets in this report", answered("get").map((one) => ({ text: one.key })).slice(0, 40)]]
      : KINDS.map(([kind, words]) => [words, suggested?.[kind] ?? []]);
    show(hints, kinds.map(([words, keys]) => (keys.length ? h("p", {}, `${words}: `, keys.map((one) =>
      [button(shortKey(one), () => page.go("get", { key: one.text }), {
        class: "hint-key", "aria-pressed": String(one.text === query.key),
      }), " "]).flat()) : null)));
  }

  function draw() {
    // Without a step in the URL, the whole way is shown; playing begins at its first step.
    const last = found.steps.length - 1;
    const step = query.step === undefined ? last : Math.min(Number(query.step) || 0, last);
    player.set(step, found.steps.length);
    show(verdict, keyText(found.key), ": ", h("strong", {}, found.answer), ". ", outlook(found), found.saving ? ` ${found.saving}` : "");
    drawSteps(step);
    drawCompare(step);
    drawBars(step);
    bars.element.hidden = levels.tables === 0;
    show(nowhere, levels.tables === 0 ? ["No table is asked: the store has none. ", levels.facts.memtable.where] : null);
    show(now, detail(found.steps[step]));
  }

  function drawSteps(step) {
    const focused = steps.contains(document.activeElement);
    show(steps, found.steps.map((one, number) => {
      const state = number < step ? "done" : number === step ? "here" : "ahead";
      return h("li", { class: `${state} ${one.tone} kind-${one.kind}`, "aria-current": number === step ? "step" : null },
        button([h("span", { class: "mark", "aria-hidden": "true" }, MARKS[one.kind] ?? "•"),
          h("span", { class: "step-title" }, one.title.replace(/^level \d+, .*?: /, one.kind === "index" ? "$&" : "")),
          h("span", { class: "step-words" }, one.detail, one.index_key ? [" ", keyText(one.index_key)] : ""),
          WORDS[one.tone] ? h("span", { class: "tag" }, WORDS[one.tone]) : null].flat(),
        () => page.go("get", { ...query, step: number }, { replace: true })));
    }));
    const here = steps.children[step];
    if (focused) here.querySelector("button").focus({ preventScroll: true });
    if (steps.scrollHeight > steps.clientHeight) steps.scrollTop = here.offsetTop - steps.offsetTop - steps.clientHeight / 2;
  }

  function drawCompare(step) {
    const done = found.steps.slice(0, step + 1);
    const blocks = done.filter((one) => one.tone === "saved" || one.kind === "block");
    const at = found.steps[step];
    const squares = (shown) => h("span", { class: "squares", "aria-hidden": "true" },
      blocks.map((one) => h("i", { class: shown(one) })));
    const end = step === found.steps.length - 1;
    show(compare,
      side("with filters", at.with, squares((one) => (one.tone === "saved" ? "saved" : one.tone)),
        end ? `${bytes(found.totals.bytes_read)} from files` : ""),
      side("without filters", at.without, squares((one) => (one.tone === "read" ? "read" : "wasted")),
        end ? `${bytes(found.totals.bytes_without)} if none were cached` : ""));
  }

  function drawBars(step) {
    const here = found.steps[step].table;
    const passed = new Map();
    for (const one of found.steps.slice(0, step + 1)) {
      if (one.table && one.kind !== "table" && (one.tone !== "plain" || !passed.has(one.table))) passed.set(one.table, one.tone);
    }
    const path = new Set(found.tables.map((one) => one.name));
    // Tables that are not asked follow the one that has the answer.
    const known = found.steps.findIndex((one) => one.kind === "table");
    const unasked = new Set(known >= 0 && step >= known - 1 ? found.steps.filter((one) => one.kind === "table").map((one) => one.table) : []);
    bars.set(levelRows(levels.levels, (bar, table) => {
      bar.dim = !path.has(table.name);
      bar.outlined = table.name === here;
      const tone = passed.get(table.name);
      if (tone) bar.tone = tone === "plain" ? "asking" : tone;
      else if (!bar.dim) bar.tone = unasked.has(table.name) ? "unasked" : "waiting";
      else if (!bar.damaged) bar.tone = "bar"; // as in the legend
      bar.about.push(bar.dim ? "its range does not include the key" : tone && tone !== "plain" ? WORDS[tone]
        : unasked.has(table.name) ? "not looked at: the answer was known" : "its range includes the key");
    }), { selected: null });
  }

  return {
    update(given) {
      const before = query;
      query = given;
      if (key() !== undefined && document.activeElement !== input) {
        // A space at an end is not seen in a field.
        input.value = key().replace(/^ +| +$/g, (spaces) => "\\x20".repeat(spaces.length));
        hex.checked = query.hex !== undefined;
      }
      if (key() === undefined) {
        result.hidden = true;
        found = null;
        input.focus();
      }
      const same = before.key === given.key && before.hex === given.hex && found;
      if (same) draw();
      else load();
      if (levels) hint();
    },
    twin: () => (key() === undefined ? ["levels", {}] : ["get", question()]),
    async follow(_, asOf) {
      if (found) return `This is the Get as of ${asOf}. The store has changed since then.`;
      await reload();
      return null;
    },
    reload,
    key: (event) => found !== null && player.key(event),
    close() {
      asked?.abort();
      player.stop();
      bars.close();
    },
  };
}

function side(title, blocks, squares, note) {
  return h("div", { class: "side" }, h("h2", {}, title), h("p", { class: "big" }, number(blocks)),
    h("p", {}, `data block${blocks === 1 ? "" : "s"} searched`), squares, h("p", { class: "quiet" }, note));
}

function outlook(found) {
  const saved = found.totals.without - found.totals.searched;
  if (saved > 0) return `Filters saved the read of ${count(saved, "data block")} of ${number(found.totals.without)}.`;
  if (found.totals.without === 0) return "No block had to be searched.";
  return found.saving ? "" : "Filters saved nothing here.";
}

function detail(step) {
  const words = [h("strong", {}, step.title), h("br"), step.detail];
  if (step.index_key) words.push(" ", keyText(step.index_key));
  if (step.filter) {
    const { positions, slots, slot_values: values, fingerprint, may_match: maybe, bytes: size, policy } = step.filter;
    words.push(h("br"), `${policy || "a filter"}, ${bytes(size)}`);
    if (positions.length) words.push(": ", probedBits(positions, maybe));
    if (slots.length) {
      const xored = values.reduce((sum, value) => sum ^ value, 0);
      words.push(h("br"), xorSum({ slots, values, fingerprint, xored, may_match: maybe }));
    }
  }
  if (step.block) {
    words.push(h("br"), `${bytes(step.block.size)} stored, ${step.block.codec === "none" ? "uncompressed" : step.block.codec}. `,
      h("a", { href: `#/table?${new URLSearchParams({ name: step.table, block: step.block.offset })}` }, "Its entries and bytes"));
  }
  return words;
}

function knows(levels, name) {
  return levels.levels.some((level) => level.tables.some((table) => table.name === name));
}
