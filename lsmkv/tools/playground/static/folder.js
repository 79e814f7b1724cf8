// Your folder: files that are dropped or chosen, and then the inspector's pages about them.

import { Engine } from "./engine.js";
import { button, h, show } from "./inspect/dom.js";
import { bytes, count } from "./inspect/format.js";
import { begin } from "./page.js";
import { opened } from "./opened.js";

const STORE_FILE = /^(CURRENT|MANIFEST-\d+|\d+\.(ldb|sst|log)|[^/]+\.(ldb|sst|log))$/;
const LOOSE = /^(.*?)(\d+)?\.(ldb|sst|log)$/;

begin();
const engine = new Engine(document.getElementById("engine"));
const zone = document.getElementById("zone");
const choices = h("div", { role: "status" });
const folder = h("input", { type: "file", id: "folder", webkitdirectory: "", class: "sr", tabindex: "-1", "aria-hidden": "true", onchange: () => taken(folder.files) });
const files = h("input", { type: "file", id: "files", multiple: "", class: "sr", tabindex: "-1", "aria-hidden": "true", onchange: () => taken(files.files) });

show(zone,
  h("p", { class: "zone-words" }, "Drop a folder here, or a ", h("code", {}, ".ldb"), ", ", h("code", {}, ".log"), " or ", h("code", {}, "MANIFEST"), " file."),
  h("p", { class: "actions" }, button("Choose a folder", () => folder.click(), { class: "main" }), button("Choose files", () => files.click()),
    button("Show an example", () => example())),
  folder, files, choices);

for (const name of ["dragenter", "dragover"]) {
  addEventListener(name, (event) => {
    event.preventDefault();
    zone.classList.add("over");
  });
}
addEventListener("dragleave", (event) => {
  if (!event.relatedTarget) zone.classList.remove("over");
});
addEventListener("drop", async (event) => {
  event.preventDefault();
  zone.classList.remove("over");
  try {
    const entries = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
    const found = [];
    for (const entry of entries) await walk(entry, "", found);
    offer(found);
  } catch (error) {
    fail(error);
  }
});

/** The files below an entry of a drop: `{path, file}` each. */
async function walk(entry, above, found) {
  const path = above ? `${above}/${entry.name}` : entry.name;
  if (entry.isFile) {
    found.push({ path, file: await new Promise((resolve, reject) => { entry.file(resolve, reject); }) });
    return;
  }
  const reader = entry.createReader();
  for (;;) {
    const some = await new Promise((resolve, reject) => { reader.readEntries(resolve, reject); });
    if (!some.length) return;
    for (const one of some) await walk(one, path, found);
  }
}

function taken(list) {
  offer([...list].map((file) => ({ path: file.webkitRelativePath || file.name, file })));
}

/** Open the directory with a store among these files; where there are several, the visitor chooses. */
function offer(found) {
  const directories = new Map();
  for (const { path, file } of found) {
    const at = path.lastIndexOf("/");
    const [where, name] = [path.slice(0, Math.max(0, at)), path.slice(at + 1)];
    directories.set(where, [...(directories.get(where) ?? []), { name, file }]);
  }
  const stores = [...directories].filter(([, inside]) => inside.some(({ name }) => STORE_FILE.test(name)));
  const whole = stores.filter(([, inside]) => inside.some(({ name }) => name === "CURRENT"));
  const best = whole.length ? whole : stores;
  if (!best.length) {
    fail(new Error(`None of ${count(found.length, "file")} has the name of a store’s file: CURRENT, MANIFEST-…, *.ldb, *.sst or *.log.`));
  } else if (best.length === 1) open(...best[0]);
  else {
    show(choices, h("p", {}, `There are ${count(best.length, "store")} in it:`), h("ul", {}, best.map(([where, inside]) => {
      const size = inside.reduce((sum, { file }) => sum + file.size, 0);
      return h("li", {}, button(where, () => open(where, inside)), ` ${count(inside.length, "file")}, ${bytes(size)}`);
    })));
  }
}

/** Names that the engine knows: a loose file with another name is shown as number 1, and so on. */
function renamed(inside) {
  const known = new Set(inside.map(({ name }) => name));
  let next = 1;
  return inside.map(({ name, file }) => {
    const parts = LOOSE.exec(name);
    if (!parts || parts[1] === "") return { name, file };
    let made;
    do made = `${String(next++).padStart(6, "0")}.${parts[3]}`; while (known.has(made));
    return { name: made, file };
  });
}

async function open(where, inside) {
  const name = where || (inside.length === 1 ? inside[0].name : "files");
  show(choices, h("p", {}, `${name} is being opened …`));
  try {
    const named = renamed(inside);
    await engine.open(name, named);
    Object.assign(opened, { engine, name, files: named });
    await showInspector(name, inside);
  } catch (error) {
    fail(error);
  }
}

async function showInspector(name, inside) {
  const only = inside.length === 1 ? renamed(inside)[0].name : "";
  const view = /\.(ldb|sst)$/.test(only) ? `#/table?name=${only}` : only.endsWith(".log") ? "#/entries" : only.startsWith("MANIFEST") ? "#/life" : "#/levels";
  history.pushState(null, "", view);
  addEventListener("popstate", () => {
    if (!location.hash) location.reload(); // back to where a folder is chosen
  });
  for (const part of document.querySelectorAll(".skip, header, main")) part.remove();
  await import("./inspect/app.js");
  const size = inside.reduce((sum, { file }) => sum + file.size, 0);
  document.querySelector("main").before(h("p", { class: "folder-note", role: "note" },
    h("span", {}, h("strong", {}, name), `: ${count(inside.length, "file")}, ${bytes(size)}, read where they are. Nothing leaves this tab, and nothing is written.`),
    h("a", { href: "folder.html" }, "Another folder")));
  document.documentElement.dataset.folder = "open";
}

/** A store that the engine makes in this tab, for visitors who have none. */
async function example() {
  show(choices, h("p", {}, "An example is being made …"));
  try {
    const { files: made } = await engine.ask("example");
    open("example", made.map(({ name, base64 }) => ({ name, file: new File([Uint8Array.from(atob(base64), (one) => one.charCodeAt(0))], name) })));
  } catch (error) {
    fail(error);
  }
}

function fail(error) {
  show(choices, h("p", { class: "trouble" }, error.message));
}
