// Engines that a button can end: one works, and a spare one is loaded.

import { Engine } from "./engine.js";
import { h } from "./inspect/dom.js";

/** The engines of a page, of one `kind`; `place` shows how the first one loads. */
export class Workers {
  constructor(place, kind) {
    this.kind = kind;
    this.use(new Engine(place, { kind }));
  }

  /** Go on with an engine; a spare one loads once it is ready. */
  use(engine) {
    this.current = engine;
    this.next = null;
    engine.ready.then(() => { this.spare(); }, () => {});
  }

  spare() {
    this.next ??= new Engine(h("p"), { kind: this.kind, spare: true });
  }

  ask(view, query, report) {
    return this.current.ask(view, query, report);
  }

  /** End what works, and go on with the spare one. */
  end() {
    this.current.end();
    this.spare();
    this.use(this.next);
  }
}
