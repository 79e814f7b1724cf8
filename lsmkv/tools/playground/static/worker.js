// The worker of a page: Python, lsmkv, and the answers to the page's questions.

import { install } from "./crc32c.js";
import { loadPyodide } from "./pyodide/pyodide.mjs";

const PACKAGES = "/lib/python3.14/site-packages";
const PLAIN = "from lsmkv.tools.playground.engine import Engine\nEngine()";
const COURSE = "from lsmkv.course.tab import VIEWS\nfrom lsmkv.tools.playground.engine import Engine\nEngine(VIEWS)";
const base = new URL(".", import.meta.url);
const send = (kind, message) => postMessage({ kind, ...message });

let done = 0;
let total = 1;
let words = "Loading Python, in WebAssembly";

/** Tell the page how much has arrived; at most ten times a second, but each new `words`. */
let last = 0;
function report(next = words) {
  const now = performance.now();
  if (next === words && now - last < 100 && done < total) return;
  last = now;
  words = next;
  send("progress", { words, done: Math.min(done, total), total });
}

// Pyodide fetches its files by itself, so that what arrives is counted on the way.
const direct = globalThis.fetch;
globalThis.fetch = async (...given) => {
  const response = await direct(...given);
  if (!response.body || !response.ok) return response;
  const counted = response.body.pipeThrough(new TransformStream({
    transform(piece, controller) {
      done += piece.byteLength;
      report();
      controller.enqueue(piece);
    },
  }));
  return new Response(counted, { status: response.status, headers: response.headers });
};

async function fetched(path) {
  const response = await fetch(new URL(path, base));
  if (!response.ok) throw new Error(`${path}: status ${response.status}`);
  return response.arrayBuffer();
}

async function start() {
  const { files } = await (await direct(new URL("files.json", base))).json();
  const wheels = Object.keys(files).filter((path) => path.startsWith("wheels/"));
  const counted = Object.keys(files).filter((path) => /\.(wasm|zip|whl)$/.test(path));
  total = counted.reduce((sum, path) => sum + files[path], 0);
  report();
  const archives = wheels.map(fetched); // while Python is loading
  const python = await loadPyodide({ indexURL: new URL("pyodide/", base).href });
  done = total;
  report("Starting lsmkv");
  install(python);
  for (const archive of archives) python.unpackArchive(await archive, "wheel", { extractDir: PACKAGES });
  const engine = python.runPython("import importlib; importlib.invalidate_caches()\n" + (self.name === "course" ? COURSE : PLAIN));
  return engine;
}

const engine = start();
engine.then((found) => {
  const about = JSON.parse(found.answer("about", "{}"));
  if (about.refused) throw new Error(about.refused);
  send("ready", about);
}).catch((error) => send("failed", { reason: error.message.trim().split("\n").at(-1) }));

/** A file of the visitor's, which is read where it is. */
function dropped({ name, file }) {
  const reader = new FileReaderSync();
  return {
    name,
    size: file.size,
    modified: file.lastModified / 1000,
    read(offset, length) {
      try {
        return new Uint8Array(reader.readAsArrayBuffer(file.slice(offset, offset + length)));
      } catch {
        return undefined;
      }
    },
  };
}

async function answered(id, { view, query, files }) {
  const found = await engine;
  if (files) return found.open_folder(view, files.map(dropped));
  return found.answer(view, query, (text) => { send("report", { id, found: JSON.parse(text) }); });
}

addEventListener("message", async ({ data: { id, ...question } }) => {
  let answer;
  try {
    answer = JSON.parse(await answered(id, question));
  } catch (error) {
    answer = { refused: error.message.trim().split("\n").at(-1) };
  }
  send("answer", { id, answer });
});
