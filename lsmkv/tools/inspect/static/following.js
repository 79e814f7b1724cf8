// Whether what a view shows is still so: the server is asked how the store stands, once a second.

import { act, ask, isServed, onAnswer } from "./data.js";
import { button, h, show } from "./dom.js";

const PAUSE = 1000; // milliseconds
const SHARE = 10; // of the time may go into looking, where that takes long

/** Keeps a view up to date, or says above it what it is a picture of: an older state, or a store that is gone. */
export class Following {
  /** `shown()` is the view that is mounted. */
  constructor(shown) {
    this.shown = shown;
    this.asOf = null; // {change, time} of the last answer that the view got
    this.older = null; // what the view says of a change that it does not show
    this.followed = null; // the change that it was called for last
    this.isFollowing = false;
    this.opened = null; // when the server has opened the path
    this.seen = Date.now(); // when all was well
    this.timer = 0;
    this.words = "";
    this.note = h("section", { class: "moved", role: "status", hidden: true });
    if (!isServed) return;
    onAnswer((change) => {
      this.asOf = { change, time: Date.now() };
      if (!this.isFollowing) this.older = null; // the user has asked for something else
    });
    document.addEventListener("visibilitychange", () => this.look());
    this.wait(0);
  }

  /** Another view is shown: what it is as of is not known yet. */
  begin() {
    this.asOf = this.older = this.followed = null;
    this.tell("");
    if (isServed) this.wait(0);
  }

  /** Look now, and again after a pause. */
  async look() {
    clearTimeout(this.timer);
    const began = performance.now();
    if (!document.hidden) {
      const view = this.shown();
      try {
        const state = await ask("state", view.watches?.() ?? {});
        if (view === this.shown()) await this.take(state, view);
      } catch (error) {
        this.tell(`${error.message} The view shows the state of ${clock(this.seen)}.`, { bad: true });
      }
    }
    this.wait(Math.max(PAUSE, SHARE * (performance.now() - began)));
  }

  wait(pause) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.look(), pause);
  }

  async take(state, view) {
    this.opened ??= state.opened;
    if (state.opened !== this.opened) {
      location.reload(); // another window has gone over to another store, or this is another server
      return;
    }
    document.body.classList.toggle("gone", state.replaced !== "");
    if (state.replaced) {
      const words = `${state.replaced} The view shows the store that was there until ${clock(this.seen)}.`;
      this.tell(words, { bad: true, action: state.another ? ["Show the new store", () => this.reopen()] : null });
      return;
    }
    this.seen = Date.now();
    const { asOf } = this;
    if (asOf && state.change > asOf.change && state.change !== this.followed) {
      this.isFollowing = true;
      try {
        this.older = await view.follow(state, clock(asOf.time));
      } finally {
        this.isFollowing = false;
      }
      this.followed = state.change;
      if (view !== this.shown()) return;
    }
    this.tell(this.older ?? "", { action: [`${view.again ?? "Read again"} (r)`, () => this.reload()] });
  }

  /** Read again what the view shows. */
  reload() {
    this.older = null;
    this.tell("");
    this.shown().reload?.();
  }

  async reopen() {
    try {
      await act("reopen");
      location.reload();
    } catch (error) {
      this.tell(error.message, { bad: true });
    }
  }

  tell(words, { bad = false, action = null } = {}) {
    if (words === this.words) return;
    this.words = words;
    this.note.hidden = words === "";
    this.note.classList.toggle("bad", bad);
    show(this.note, h("span", {}, words), action ? button(action[0], action[1]) : null);
  }
}

/** A moment as the time of the day. */
export function clock(milliseconds) {
  return new Date(milliseconds).toTimeString().slice(0, 8);
}
