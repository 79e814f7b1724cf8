// Engines that a button can end: one works, and a spare one is loaded.

import { Engine } from "./engine.js";
import { h } from "./inspect/dom.js";

/** The engines of a page, of one `kind`; `place` shows how the first one loads. */
export class Workers {
  constructor(place, kind) {
    this.place = place;
    this.kind = kind;
    this.isLoaded = false; // the first one
    this.use(new Engine(place, { kind }));
  }

  /** Go on with an engine; a spare one loads once it is ready. */
  use(engine) {
    this.current = engine;
    this.next = null;
    engine.ready.then(() => {
      this.isLoaded = true;
      this.spare();
    }, () => {});
  }

  spare() {
    this.next ??= new Engine(h("p"), { kind: this.kind, spare: true });
  }

  ask(view, query, report) {
    return this.current.ask(view, query, report);
  }

  /** End what works, and go on with the spare one; before the first is loaded, load it again. */
  end() {
    this.current.end();
    if (this.isLoaded) this.spare();
    else this.next = new Engine(this.place, { kind: this.kind });
    this.use(this.next);
  }
}
