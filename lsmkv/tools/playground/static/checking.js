// The check of every file of the folder, in a worker of its own: the pages are answered meanwhile, and a button can end it.

import { Engine } from "./engine.js";
import { h } from "./inspect/dom.js";
import { opened } from "./opened.js";

const NOTHING = { state: "none", done: 0, total: 0, error: "", time: 0, older: false, damaged: 0, files: [] };

class Checking {
  found = null; // as the levels have it
  levels = null; // the answer about them after the check: nothing changes while the folder is shown
  engine = null;

  /** Begin, unless it runs. */
  begin() {
    if (this.engine) return;
    this.engine = new Engine(h("p"), { spare: true });
    this.found = { ...NOTHING, state: "running" };
    this.levels = null;
    this.run(this.engine);
  }

  async run(engine) {
    try {
      await engine.open(opened.name, opened.files);
      const found = await engine.ask("act/check", {}, (some) => Object.assign(this.found, some));
      this.levels = await engine.ask("inspect/levels");
      this.found = found;
    } catch (error) {
      this.found = { ...NOTHING, error: error.ended ? "the check was ended" : error.message };
    }
    this.engine = null;
    engine.end();
  }

  end() {
    this.engine?.end();
  }
}

export const checking = new Checking();
