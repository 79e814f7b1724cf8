// The entries: a search over keys and values, and an export as JSON lines.

import { ask } from "./data.js";
import { button, grid, h, keyText, numeric, row, show } from "./dom.js";
import { count, number } from "./format.js";

const MOST_SHOWN = 2000;
const HEAD = ["key", "value"];
const FILE_HEAD = ["file", numeric("write"), "key", "value"];

export const view = {
  name: "entries",
  title: "Entries",
  about: "The keys and values of the store, those in the log included. Search them, or save them as JSON lines.",
  whole: true,
  mount,
};

function mount(root, page) {
  let query = {};
  let turn = 0; // of the newest search
  let place = ""; // where it continues
  let seen = 0;
  let lookedAt = 0;
  let saving = null;
  const prefix = field("Keys that begin with", "all of them");
  const text = field("Keys or values that contain", "any text");
  const byFile = h("input", { type: "checkbox", name: "by-file" });
  const form = h("form", { class: "ask", onsubmit: (event) => {
    event.preventDefault();
    page.go("entries", {
      prefix: prefix.input.value || null, text: text.input.value || null, by: byFile.checked ? "file" : null,
    });
  } }, prefix.label, text.label,
  h("label", { class: "check", title: "Every version in each log and table, also of files that are damaged" }, byFile, " file by file"),
  h("button", { type: "submit", class: "main" }, "Search"));
  const format = h("p", { class: "saving", hidden: true });
  const words = h("p", { role: "status" });
  const more = button("More", () => load());
  const saver = button("Save as JSON lines", () => (saving ? saving.abort() : save()));
  const saved = h("span", { class: "quiet", role: "status" });
  const list = h("div");
  let body = null;
  show(root, form, format, words, h("p", { class: "actions" }, saver, saved), list, h("p", { class: "actions" }, more));

  function question() {
    return Object.fromEntries(Object.entries(query).filter(([name]) => ["prefix", "text", "by"].includes(name)));
  }

  function begin() {
    turn += 1;
    place = "";
    seen = lookedAt = 0;
    body = null;
    show(list);
    return load();
  }

  /** Look on until there is another window of entries, or the end. */
  async function load() {
    const own = turn;
    more.disabled = true;
    page.clear();
    try {
      const wanted = seen + 100;
      while (place !== null && seen < wanted) {
        show(words, lookedAt ? `${count(seen, "entry")} of ${number(lookedAt)} so far …` : "The store is being read …");
        const found = await ask("entries", { ...question(), ...(place ? { place } : {}) });
        if (own !== turn) return;
        take(found);
      }
      tell();
    } catch (error) {
      if (own === turn) {
        show(words, seen ? `${count(seen, "entry")} so far.` : "");
        page.fail(error);
      }
    } finally {
      if (own === turn) more.disabled = place === null || seen >= MOST_SHOWN;
    }
  }

  function take(found) {
    const head = found.by_file ? FILE_HEAD : HEAD;
    if (!body) {
      const made = grid("Entries", head, [], { class: found.by_file ? "entries" : "entries narrow" });
      body = made.querySelector("tbody");
      show(list, made);
      byFile.checked = found.by_file;
    }
    format.hidden = !found.format;
    if (found.format) show(format, h("strong", {}, `This is ${found.format.name}. `), found.format.words);
    body.append(...found.entries.map((one) => entryRow(one, head, found.by_file)));
    seen += found.entries.length;
    lookedAt += found.looked_at;
    place = found.next;
  }

  function entryRow(one, head, isByFile) {
    if (one.fault) return h("tr", { class: "damaged" }, h("td", {}, fileLink(one.file)), h("td", { colspan: "3" }, one.fault));
    const cells = [link(one.key), one.value === null ? h("em", {}, "deleted") : keyText(one.value)];
    return row(head, isByFile ? [fileLink(one.file), number(one.sequence), ...cells] : cells);
  }

  function fileLink(name) {
    return name.endsWith(".log") ? h("code", {}, name) : h("a", { href: page.link("table", { name }) }, name);
  }

  function link(key) {
    return key.cut ? keyText(key) : h("a", { href: page.link("get", { key: key.text }), title: "A Get of this key, step by step" }, keyText(key));
  }

  function tell() {
    const all = place === null;
    const of = query.prefix || query.text ? ` of ${number(lookedAt)} that were read` : "";
    show(words, all ? `${count(seen, "entry")}${of}.`
      : seen >= MOST_SHOWN ? `The first ${count(seen, "entry")}. Search, or save them all as JSON lines.`
        : `The first ${count(seen, "entry")}.`);
  }

  async function save() {
    saving = new AbortController();
    saver.textContent = "Stop saving";
    const parts = [];
    let at = "";
    let read = 0;
    try {
      while (at !== null) {
        const found = await ask("entries/lines", { ...question(), ...(at ? { place: at } : {}) });
        saving.signal.throwIfAborted();
        parts.push(new Blob([found.lines]));
        read += found.looked_at;
        at = found.next;
        show(saved, `${count(read, "entry")} read …`);
      }
      const url = URL.createObjectURL(new Blob(parts, { type: "application/jsonl" }));
      h("a", { href: url, download: "entries.jsonl" }).click();
      setTimeout(() => URL.revokeObjectURL(url), 60000);
      show(saved, `${count(read, "entry")} read, saved as entries.jsonl.`);
    } catch (error) {
      show(saved, error.name === "AbortError" ? "Stopped." : "");
      page.fail(error);
    } finally {
      saving = null;
      saver.textContent = "Save as JSON lines";
    }
  }

  return {
    update(given) {
      query = given;
      prefix.input.value = given.prefix ?? "";
      text.input.value = given.text ?? "";
      byFile.checked = given.by === "file";
      begin();
    },
    twin: () => ["entries", question()],
    async follow(_, asOf) {
      return `The store has changed since ${asOf}.`;
    },
    reload: begin,
    close() {
      turn += 1;
      saving?.abort();
    },
  };
}

function field(name, placeholder) {
  const input = h("input", { type: "text", autocomplete: "off", spellcheck: "false", placeholder });
  return { input, label: h("label", { class: "grow" }, h("span", {}, name), input) };
}
