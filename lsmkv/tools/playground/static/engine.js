// The engine, which runs in a worker: questions to it, and how far its loading is.

import { h, show } from "./inspect/dom.js";
import { number } from "./inspect/format.js";

const PATIENCE = 1500; // milliseconds for a service worker to start

/** The engine of this page.  `ask` waits until it is loaded.
 *
 * `kind` is "course" for one that also knows the labs; a `spare` one says nothing, and leaves the cache alone.
 */
export class Engine {
  constructor(place, { kind = "", spare = false } = {}) {
    this.place = place;
    this.kind = kind;
    this.spare = spare;
    this.waiting = new Map(); // the number of a question -> what settles its answer
    this.asked = 0;
    this.bar = h("progress", { max: "1", value: "0", "aria-label": "Loading the engine" });
    this.words = h("span", { role: "status" }, "Loading the engine: Python and lsmkv, in WebAssembly.");
    this.amount = h("span", { class: "quiet" });
    show(place, this.words, this.bar, this.amount);
    this.ready = new Promise((resolve, reject) => {
      this.whenReady = resolve;
      this.whenFailed = reject;
    });
    this.ready.catch(() => {}); // it is shown, and each question has it too
    this.begin();
  }

  async begin() {
    const offline = this.spare ? null : new Offline(this.place);
    await offline?.started;
    if (this.ended) return;
    this.worker = new Worker(new URL("worker.js", import.meta.url), { type: "module", name: this.kind });
    this.worker.addEventListener("message", ({ data }) => this.hear(data));
    this.worker.addEventListener("error", (event) => this.fail(event.message || "its script cannot be loaded"));
    this.ready.then(() => offline?.complete(), () => {});
  }

  hear({ kind, ...message }) {
    if (this.ended) return;
    if (kind === "progress") this.showProgress(message);
    else if (kind === "ready") {
      document.documentElement.dataset.engine = "ready";
      show(this.place, h("span", { role: "status" }, `The engine is loaded: lsmkv ${message.lsmkv} on Python ${message.python}, in this tab.`));
      this.whenReady(message);
    } else if (kind === "failed") this.fail(message.reason);
    else if (kind === "report") this.waiting.get(message.id).report(message.found);
    else {
      const { resolve, reject } = this.waiting.get(message.id);
      this.waiting.delete(message.id);
      if (message.answer.refused === undefined) resolve(message.answer);
      else reject(new Error(message.answer.refused));
    }
  }

  showProgress({ words, done, total }) {
    this.words.textContent = words;
    this.bar.value = done / total;
    const megabytes = (size) => (size / 2 ** 20).toFixed(1);
    this.amount.textContent = done < total ? `${megabytes(done)} of ${megabytes(total)} MiB` : "";
  }

  fail(reason) {
    document.documentElement.dataset.engine = "failed";
    const error = new Error(`The engine cannot be loaded: ${reason}`);
    this.place.classList.add("trouble");
    show(this.place, h("span", { role: "alert" }, `${error.message}. WebAssembly and module workers are needed; reload the page to try again.`));
    for (const { reject } of this.waiting.values()) reject(error);
    this.waiting.clear();
    this.whenFailed(error);
  }

  /** The answer to a question; `report(found)` is called with what is known before. */
  ask(view, query = {}, report = () => {}) {
    return this.post({ view, query: JSON.stringify(query) }, report);
  }

  /** Let the engine read these files, `{name, file}` each, as one directory. */
  open(name, files) {
    return this.post({ view: name, files });
  }

  /** End it, whatever it does; questions that wait are refused. */
  end() {
    this.ended = true;
    this.worker?.terminate();
    const error = Object.assign(new Error("It was ended."), { ended: true });
    for (const { reject } of this.waiting.values()) reject(error);
    this.waiting.clear();
    this.whenFailed(error); // for questions that wait until it is loaded
  }

  async post(question, report = () => {}) {
    await this.ready;
    const id = ++this.asked;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject, report });
      this.worker.postMessage({ id, ...question });
    });
  }
}

/** The service worker, where there may be one: the page comes from its cache the next time. */
class Offline {
  constructor(place) {
    this.place = place;
    this.registration = null;
    this.started = this.start().catch(() => {}); // the page works without one
  }

  async start() {
    if (!navigator.serviceWorker) return;
    this.registration = await navigator.serviceWorker.register(new URL("service-worker.js", import.meta.url));
    this.offer(this.registration.waiting);
    this.registration.addEventListener("updatefound", () => {
      const found = this.registration.installing;
      found.addEventListener("statechange", () => {
        if (found.state === "installed" && navigator.serviceWorker.controller) this.offer(found);
      });
    });
    if (navigator.serviceWorker.controller) return;
    const controlled = new Promise((resolve) => {
      navigator.serviceWorker.addEventListener("controllerchange", resolve, { once: true });
    });
    await Promise.race([controlled, new Promise((resolve) => { setTimeout(resolve, PATIENCE); })]);
  }

  /** All is loaded: let the service worker fetch what it has not kept yet. */
  complete() {
    const controller = navigator.serviceWorker?.controller;
    if (!controller) return;
    navigator.serviceWorker.addEventListener("message", ({ data }) => {
      document.documentElement.dataset.offline = data.kept === data.all ? "ready" : "incomplete";
      if (data.kept === data.all) this.place.append(" ", h("span", { class: "quiet" }, `${number(data.all)} files are kept, so the page works offline.`));
    });
    controller.postMessage("complete");
  }

  /** A newer version waits until no page uses this one. */
  offer(waiting) {
    if (!waiting) return;
    const take = h("button", { type: "button", onclick: () => {
      navigator.serviceWorker.addEventListener("controllerchange", () => location.reload(), { once: true });
      waiting.postMessage("take over");
    } }, "Reload with it");
    this.place.after(h("p", { class: "moved", role: "status" }, "There is a newer version of these pages. ", take));
  }
}
