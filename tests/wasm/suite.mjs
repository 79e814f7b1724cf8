// Runs pytest with Pyodide in node: suite.mjs FOLDER WHEELS ROOT ARGUMENT...
//
// FOLDER holds node_modules/pyodide, WHEELS what lsmkv and its tests need, ROOT the project.
import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [folder, wheels, root, ...words] = process.argv.slice(2);
const found = createRequire(`${folder}/package.json`).resolve("pyodide/pyodide.mjs");
const { loadPyodide } = await import(pathToFileURL(found).href);

const checksum = pathToFileURL(`${root}/lsmkv/tools/playground/static/crc32c.js`);
const { install } = await import(checksum.href);

try {
  const python = await loadPyodide();
  install(python);
  for (const name of readdirSync(wheels)) {
    const content = new Uint8Array(readFileSync(`${wheels}/${name}`));
    python.unpackArchive(content.buffer, "wheel", { extractDir: "/lib/python3.14/site-packages" });
  }
  python.FS.mkdirTree("/project");
  python.FS.mount(python.FS.filesystems.NODEFS, { root }, "/project");
  python.globals.set("words", python.toPy(words));
  process.exitCode = python.runPython(`
import importlib, os, sys
sys.dont_write_bytecode = True
sys.path.insert(0, "/project")
os.chdir("/project")
os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = "/tmp/hypothesis"
importlib.invalidate_caches()
import pytest
int(pytest.main(["-q", "-p", "no:cacheprovider", *words]))
`);
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
