// The course: a lab's text, an editor for its file, and its checks, which run in a worker that a button can end.

import { editor } from "./editor.js";
import { button, h, show } from "./inspect/dom.js";
import { count } from "./inspect/format.js";
import { elements } from "./markdown.js";
import { begin } from "./page.js";
import { Workers } from "./workers.js";

const KEPT = "lsmkv-course ";
const SIGNS = { passed: ["✓", "passed"], failed: ["✗", "failed"], error: ["✗", "error"], stopped: ["✗", "stopped"], "not written": ["–", "not written"] };

begin();
const engines = new Workers(document.getElementById("engine"), "course");
const place = document.getElementById("course");

/** What the visitor wrote, in the browser's storage; in the page's memory, where there is none. */
class Files {
  constructor(names) {
    this.names = names;
    this.memory = new Map();
    this.lasts = true;
  }

  get(name) {
    try {
      return localStorage.getItem(KEPT + name) ?? this.memory.get(name) ?? null;
    } catch {
      return this.memory.get(name) ?? null;
    }
  }

  set(name, text) {
    try {
      localStorage.setItem(KEPT + name, text);
    } catch {
      this.lasts = false;
      this.memory.set(name, text);
    }
  }

  remove(name) {
    this.memory.delete(name);
    try {
      localStorage.removeItem(KEPT + name);
    } catch { /* it was in memory alone */ }
  }

  all() {
    return Object.fromEntries(this.names.map((name) => [name, this.get(name)]).filter(([, text]) => text !== null));
  }
}

class Course {
  constructor(labs) {
    this.labs = labs;
    this.files = new Files(labs.map((lab) => lab.file));
    this.passed = JSON.parse(this.files.get("passed") ?? "{}");
    this.lab = null;
    this.turn = 0;
    this.running = false;
    this.list = h("ol", { class: "labs" });
    this.text = h("article", { class: "lab-text", "aria-label": "The lab" });
    this.hints = h("div", { class: "hints-of-lab" });
    this.name = h("h2", {});
    this.saved = h("span", { class: "quiet", role: "status" });
    this.frame = h("div", { class: "editor" });
    this.runner = button("Run the checks", () => this.run(), { class: "main" });
    this.ender = button("End", () => this.end(), { disabled: true, title: "Ends code that does not end by itself" });
    this.results = h("ul", { class: "results", "aria-live": "polite" });
    this.printed = h("pre", { class: "printed", tabindex: "0", "aria-label": "What the code printed", hidden: true });
    const loader = h("input", { type: "file", multiple: "", accept: ".py", class: "sr", tabindex: "-1", "aria-hidden": "true", onchange: () => this.take(loader.files) });
    const work = h("section", { class: "work", "aria-label": "Your file", tabindex: "-1" });
    show(place, h("nav", { class: "labs-nav", "aria-label": "Labs" }, this.list),
      button("To your file ↓", () => { work.scrollIntoView(); work.focus({ preventScroll: true }); }, { class: "to-work" }),
      h("div", { class: "course" }, h("div", {}, this.text, this.hints), work));
    show(work,
      h("div", { class: "work-head" }, this.name, this.saved), this.frame,
      h("p", { class: "actions" }, this.runner, this.ender, h("span", { class: "quiet" }, "Ctrl-Enter runs; Escape, then Tab leaves the editor.")),
      this.results, this.printed,
      h("p", { class: "actions" }, button("Save as a folder", () => this.save(), { title: "A ZIP archive of the folder that 'lsmkv course' takes" }),
        button("Open files", () => loader.click(), { title: "Files of labs, such as lab4_bloom.py" }),
        button("Start this file over", () => this.startOver()), loader));
    this.editor = editor(this.frame, "The lab's file, in Python", (text) => this.keep(text));
    this.frame.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        event.stopPropagation();
        this.run();
      }
    }, { capture: true });
    addEventListener("hashchange", () => this.open());
    this.open();
  }

  open() {
    const wanted = Number(new URLSearchParams(location.hash.slice(1)).get("lab") ?? 1);
    const number = this.labs.some((lab) => lab.number === wanted) ? wanted : 1;
    this.turn++; // what runs is of another lab, or of another file
    if (this.running) {
      this.end();
      this.working(false);
    }
    const lab = this.labs.find((one) => one.number === number);
    this.lab = lab;
    document.title = `Lab ${lab.number}: ${lab.title} · lsmkv`;
    show(this.text, elements(lab.text, { linked, pictured }));
    this.shown = 0;
    this.drawHints();
    this.drawLabs();
    show(this.name, h("code", {}, lab.file));
    this.editor.text = this.files.get(lab.file) ?? lab.starter;
    show(this.saved);
    show(this.results, lab.checks.map((name) => h("li", {}, h("span", { class: "sign" }, "·"), h("span", {}, name))));
    this.printed.hidden = true;
    document.documentElement.dataset.lab = String(lab.number);
  }

  drawLabs() {
    show(this.list, this.labs.map((lab) => h("li", {}, h("a", { href: `#lab=${lab.number}`, title: lab.title, "aria-current": lab.number === this.lab?.number ? "page" : null },
      `${lab.number}`, h("span", { class: "lab-title" }, ` ${lab.title}`), this.passed[lab.number] ? h("span", { class: "good", "aria-label": ", done" }, " ✓") : null))));
  }

  drawHints() {
    const { hints } = this.lab;
    show(this.hints, hints.length ? h("h2", {}, "Hints") : null,
      hints.slice(0, this.shown).map((one) => h("div", { class: "card" }, elements(one, { linked, pictured }))),
      this.shown < hints.length ? button(`Show hint ${this.shown + 1} of ${hints.length}`, () => {
        this.shown += 1;
        this.drawHints();
      }) : null);
  }

  keep(text) {
    this.files.set(this.lab.file, text);
    show(this.saved, this.files.lasts ? "saved in this browser" : "kept until the page is closed");
  }

  async run() {
    if (this.running || !this.lab) return;
    const { lab } = this;
    const turn = ++this.turn;
    this.working(true);
    show(this.results);
    show(this.printed);
    this.printed.hidden = true;
    const files = { ...this.files.all(), [lab.file]: this.editor.text };
    try {
      const found = await engines.ask("course/check", { lab: String(lab.number), files }, (one) => { if (turn === this.turn) this.report(one); });
      if (turn !== this.turn) return;
      const all = found.passed === found.checks;
      this.passed = { ...this.passed, [lab.number]: all };
      this.files.set("passed", JSON.stringify(this.passed));
      this.drawLabs();
      const next = this.labs.find((one) => one.number === lab.number + 1);
      this.results.append(h("li", { class: "total" }, h("span", { class: "sign" }), h("span", {}, h("strong", {}, `${found.passed} of ${count(found.checks, "check")} passed. `),
        all ? next ? h("a", { href: `#lab=${next.number}` }, `Lab ${next.number}: ${next.title}`) : "That was the last lab." : null)));
    } catch (error) {
      if (turn !== this.turn) return;
      if (!error.ended) engines.end(); // the engine itself may have ended
      this.results.append(h("li", { class: "bad-result" }, h("span", { class: "sign" }, "✗"), h("span", {}, error.ended ? "Ended." : error.message)));
    } finally {
      if (turn === this.turn) this.working(false);
    }
  }

  report({ printed, check, outcome, message }) {
    if (printed !== undefined) {
      this.printed.hidden = false;
      this.printed.append(printed);
      return;
    }
    const [sign, word] = SIGNS[outcome];
    const line = /(?:^|\n) *line (\d+):/.exec(message)?.[1];
    this.results.append(h("li", { class: outcome === "passed" ? "good-result" : outcome === "not written" ? "" : "bad-result" },
      h("span", { class: "sign", "aria-label": word }, sign),
      h("span", {}, h("strong", {}, check), ": ", message.includes("\n") ? h("pre", {}, message) : message,
        line && outcome !== "passed" ? [" ", button(`Go to line ${line}`, () => this.editor.show(Number(line)), { class: "hint-key" })] : null)));
  }

  end() {
    engines.end();
  }

  working(running) {
    this.running = running;
    this.runner.disabled = running;
    this.runner.textContent = running ? "Running …" : "Run the checks";
    this.ender.disabled = !running;
    document.documentElement.dataset.checks = running ? "running" : "done";
  }

  async save() {
    let base64;
    try {
      ({ base64 } = await engines.ask("course/archive", { files: this.files.all() }));
    } catch (error) {
      show(this.saved, h("span", { class: "trouble" }, error.message));
      return;
    }
    const url = URL.createObjectURL(new Blob([Uint8Array.from(atob(base64), (one) => one.charCodeAt(0))], { type: "application/zip" }));
    h("a", { href: url, download: "lsmkv-course.zip" }).click();
    setTimeout(() => URL.revokeObjectURL(url), 60000);
  }

  async take(list) {
    const known = new Set(this.files.names);
    const taken = [...list].filter((file) => known.has(file.name));
    for (const file of taken) this.files.set(file.name, await file.text());
    this.open();
    show(this.saved, taken.length ? `${taken.map((file) => file.name).join(", ")} opened` : "none of these is the file of a lab");
  }

  startOver() {
    if (!confirm(`Remove what you wrote in ${this.lab.file}?`)) return;
    this.files.remove(this.lab.file);
    this.editor.text = this.lab.starter;
    show(this.saved, "started over");
  }
}

function linked(words, address) {
  const lab = /^(\d+)-[\w-]+\.md$/.exec(address)?.[1];
  return lab ? h("a", { href: `#lab=${Number(lab)}` }, words) : h("span", {}, words);
}

function pictured(words, address) {
  const name = address.split("/").at(-1);
  return h("img", { src: `pictures/${name}`, alt: words, loading: "lazy" });
}

// The texts are files, which are there before the engine; what is asked of it waits until it is loaded.
fetch(new URL("course.json", import.meta.url)).then((response) => response.json()).then(({ labs }) => new Course(labs), (error) => show(place, h("p", { class: "trouble" }, error.message)));
