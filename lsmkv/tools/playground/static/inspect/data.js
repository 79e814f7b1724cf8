// The source of the inspector's data in the playground: the engine in this page's worker.  It stands for the inspector's own
// module of this name, which asks a server.

import { checking } from "../checking.js";
import { opened } from "../opened.js";

const KEPT = 40; // answers, for their JSON twins

export const isReport = false;
export const isServed = false;
export const brand = "playground";

const kept = new Map();

/** The queries of a view that are answered without an engine: none. */
export function answered() {
  return [];
}

/** Whether there is an answer to this. */
export function holds() {
  return true;
}

/** Nothing changes while the folder is shown. */
export function onAnswer() {}

/** The data of a view. */
export async function ask(view, query = {}, signal = undefined) {
  const found = view === "levels" ? await levels() : await opened.engine.ask(`inspect/${view}`, texts(query));
  signal?.throwIfAborted();
  const name = question(view, query);
  kept.delete(name);
  kept.set(name, found);
  if (kept.size > KEPT) kept.delete(kept.keys().next().value);
  return found;
}

/** The levels, with what the check has found; one that cannot be opened is checked at once. */
async function levels() {
  const found = checking.levels ?? await opened.engine.ask("inspect/levels");
  if (!found.readable && !checking.found) checking.begin();
  return { ...found, check: checking.found ?? found.check };
}

/** Let the engine do something that does not change the folder. */
export async function act(action, body = {}) {
  if (action === "check") return checking.begin();
  if (action === "check/end") return checking.end();
  return opened.engine.ask(`act/${action}`, texts(body));
}

/** The address of a copy of a view's data. */
export function twin(view, query = {}, data = null) {
  const answer = data ?? kept.get(question(view, query));
  if (!answer) return null;
  return URL.createObjectURL(new Blob([JSON.stringify(answer, null, 1)], { type: "application/json" }));
}

function texts(query) {
  return Object.fromEntries(Object.entries(query).map(([name, value]) => [name, String(value)]));
}

function question(view, query) {
  return JSON.stringify([view, Object.entries(texts(query)).sort()]);
}
