// A console: Python with lsmkv imported, in a worker that a button can end, and examples to run.

import { button, h, show } from "./inspect/dom.js";
import { elements } from "./markdown.js";
import { begin } from "./page.js";
import { Workers } from "./workers.js";

begin();
const engines = new Workers(document.getElementById("engine"), "");
const place = document.getElementById("console");

class Console {
  constructor(examples) {
    this.past = []; // what was run, for the arrow keys
    this.at = 0;
    this.running = false;
    this.log = h("div", { class: "transcript", role: "log", tabindex: "0", "aria-label": "What was run, and what it printed" });
    this.field = h("textarea", { id: "source", rows: "3", autocomplete: "off", spellcheck: "false", autocapitalize: "off",
      placeholder: 'db = lsmkv.DB("library", create_if_missing=True)', onkeydown: (event) => this.key(event) });
    this.runner = button("Run", () => this.run(this.field.value, true), { class: "main" });
    this.ender = button("End", () => this.end(), { disabled: true, title: "Ends what runs; names and files are lost" });
    const all = button("Run all examples", async () => {
      for (const one of examples) if (!(await this.run(one.code))) break;
    });
    show(place, h("div", { class: "console" },
      h("section", { "aria-label": "Console" }, this.log,
        h("label", { for: "source" }, "Python"), this.field,
        h("p", { class: "actions" }, this.runner, this.ender, button("Clear", () => show(this.log)),
          h("span", { class: "quiet" }, "Enter runs one line, Ctrl-Enter all of it. ↑ brings back what was run."))),
      h("section", { class: "examples", "aria-label": "Examples" }, h("h2", {}, "Getting started"), h("p", { class: "actions" }, all),
        examples.map((one) => h("div", { class: "card" }, one.title ? h("h3", {}, one.title) : null, elements(one.words, { linked: (words) => words, pictured: () => "" }),
          h("pre", { tabindex: "0" }, h("code", {}, one.code)), button("Run", () => this.run(one.code)))))));
  }

  async run(source, isOwn = false) {
    if (this.running || source.trim() === "") return false;
    if (isOwn) {
      this.past.push(source);
      this.at = this.past.length;
      this.field.value = "";
    }
    this.working(true);
    const output = h("pre", { class: "output" });
    this.log.append(h("pre", { class: "input" }, source.trimEnd()), output);
    const follow = () => { this.log.scrollTop = this.log.scrollHeight; };
    let printed = ""; // what is not shown yet: a loop prints faster than a page can be laid out
    const flush = () => {
      if (printed) output.append(printed);
      printed = "";
      follow();
    };
    follow();
    try {
      const { done } = await engines.ask("console", { source }, (more) => {
        if (!printed) requestAnimationFrame(flush);
        printed += more.printed;
      });
      flush();
      output.classList.toggle("bad", !done);
      return done;
    } catch (error) {
      if (!error.ended) engines.end();
      flush();
      output.append(h("em", {}, error.ended ? "Ended. Names and files are lost." : `${error.message} Python starts again; names and files are lost.`));
      return false;
    } finally {
      follow();
      this.working(false);
    }
  }

  end() {
    engines.end();
  }

  working(running) {
    this.running = running;
    this.runner.disabled = running;
    this.ender.disabled = !running;
    document.documentElement.dataset.console = running ? "running" : "ready";
  }

  key(event) {
    const { field } = this;
    const isOneLine = !field.value.includes("\n");
    if (event.key === "Enter" && !event.shiftKey && (event.ctrlKey || event.metaKey || (isOneLine && !/[:\\(\[{,]\s*$/.test(field.value)))) {
      event.preventDefault();
      this.run(field.value, true);
    } else if ((event.key === "ArrowUp" || event.key === "ArrowDown") && isOneLine && this.past.length) {
      this.at = Math.min(Math.max(0, this.at + (event.key === "ArrowUp" ? -1 : 1)), this.past.length);
      field.value = this.past[this.at] ?? "";
      event.preventDefault();
    }
  }
}

fetch(new URL("start.json", import.meta.url)).then((response) => response.json()).then((examples) => new Console(examples), (error) => show(place, h("p", { class: "trouble" }, error.message)));
