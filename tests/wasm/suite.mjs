// Runs pytest with Pyodide in node: suite.mjs FOLDER WHEELS ROOT ARGUMENT...
//
// FOLDER holds node_modules/pyodide, WHEELS what lsmkv and its tests need, ROOT the project.
import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [folder, wheels, root, ...words] = process.argv.slice(2);
const found = createRequire(`${folder}/package.json`).resolve("pyodide/pyodide.mjs");
const { loadPyodide } = await import(pathToFileURL(found).href);

// The polynomial of CRC-32C, bits reversed.
const POLYNOMIAL = 0x82f63b78;
const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  for (let bit = 0; bit < 8; bit++) byte = byte & 1 ? (byte >>> 1) ^ POLYNOMIAL : byte >>> 1;
  return byte;
});

// What Python's module crc32c has: this platform has no wheel of it, and a table in Python is slow.
function crc32c(data, crc = 0) {
  const view = data.getBuffer("u8");
  let running = ~crc;
  for (const byte of view.data) running = TABLE[(running ^ byte) & 255] ^ (running >>> 8);
  view.release();
  data.destroy();
  return ~running >>> 0;
}

try {
  const python = await loadPyodide();
  python.registerJsModule("crc32c", { crc32c, hardware_based: true });
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
