// The story: a store of Unicode names is made, one Get is followed, and many are counted.

import { Engine } from "./engine.js";
import { Hashes } from "./hashes-scene.js";
import { Lookup } from "./lookup-scene.js";
import { Lookups } from "./lookups-scene.js";
import { begin } from "./page.js";
import { Making } from "./making-scene.js";

const state = new URLSearchParams(location.hash.slice(1));

/** Keep a part of the state in the URL. */
function keep(change) {
  for (const [name, value] of Object.entries(change)) state.set(name, value);
  history.replaceState(null, "", `#${state}`);
}

begin();
const engine = new Engine(document.getElementById("engine"));
const lookup = new Lookup(document.getElementById("lookup"), engine, state, keep);
const lookups = new Lookups(document.getElementById("lookups"), engine, state, keep);
const hashes = new Hashes(document.getElementById("hashes"), engine);
const made = (levels) => {
  lookup.begin(levels);
  lookups.begin();
  hashes.begin();
};
new Making(document.getElementById("making"), engine, made).run();
