// A lookup in a Bloom filter as steps: the hash, each probe, and the answer; in words and numbers.

import { h } from "./inspect/dom.js";
import { number } from "./inspect/format.js";
import { listed, shown } from "./inspect/sentences.js";

const ROTATED = 17;

/** The steps of a lookup of `asked`, or of adding it; `bits` is the size of the filter.
 *
 * Each is `{probes, words}`: how many probes are done by then, and what is said of it.
 */
export function stepsOf({ text, hash, positions, may_match: maybe, present }, bits, isSet, adding) {
  const delta = ((hash >>> ROTATED) | (hash << (32 - ROTATED))) >>> 0;
  const steps = [{ probes: 0, words: hashWords(text, hash, delta) }];
  let sum = hash;
  positions.forEach((position, at) => {
    steps.push({ probes: at + 1, words: probeWords(at, sum, position, bits, isSet(position), adding) });
    sum = (sum + delta) >>> 0;
  });
  steps.push({ probes: positions.length, words: answerWords(text, positions, maybe, present, adding) });
  return steps;
}

function hashWords(text, hash, delta) {
  return [
    h("p", {}, "LevelDB’s hash of ", h("code", { class: "key" }, shown(text)), " is one number of 32 bits. Rotated right by 17 bits it gives ",
      h("i", {}, "d"), ", the distance from each probe to the next."),
    bitsRow("h", hash, (at) => at >= 32 - ROTATED),
    bitsRow("d", delta, (at) => at < ROTATED),
  ];
}

/** 32 bits, the highest first; those that `moves(at)` holds for are marked: they move to the other end. */
function bitsRow(name, value, moves) {
  const bits = value.toString(2).padStart(32, "0");
  return h("p", { class: "word32" }, h("i", {}, name), " ", h("code", {}, hex32(value)),
    h("span", { class: "bits32", "aria-hidden": "true" }, [...bits].map((bit, at) =>
      h("b", { class: moves(at) ? "moves" : null, "data-edge": at % 8 === 0 && at > 0 }, bit))));
}

function probeWords(at, sum, position, bits, set, adding) {
  const begin = at === 0 ? "h" : at === 1 ? "h + d" : `h + ${at}d`;
  const becomes = set ? "it is 1 already" : "it becomes 1";
  const is = set ? "it is 1, so the key may be there" : "it is 0, so the key was never added";
  return [
    h("p", {}, h("strong", {}, `Probe ${at + 1}. `), adding ? becomes : is, "."),
    h("p", { class: "sum" }, h("i", {}, begin), " mod 2³² = ", h("code", {}, hex32(sum)), " = ", number(sum), ";  ",
      number(sum), " mod ", number(bits), " = ", h("code", { class: `bit ${set || adding ? "set" : "clear"}` }, number(position))),
  ];
}

function answerWords(text, positions, maybe, present, adding) {
  const name = h("code", { class: "key" }, shown(text));
  const different = new Set(positions).size;
  const all = different === 1 ? "its bit is 1" : `its ${different} bits are 1`;
  if (adding) return [h("p", {}, name, " is in the filter: ", all, ". The key itself is not kept.")];
  if (!maybe) {
    const spared = positions.length === 1 ? "the first probe" : `probe ${positions.length}`;
    return [h("p", {}, h("strong", { class: "good" }, "No. "), name, ` was never added; ${spared} decides. The block is not read.`)];
  }
  if (present) return [h("p", {}, h("strong", { class: "good" }, "Maybe. "), `${sentence(all)}, and `, name, " was added.")];
  return [h("p", {}, h("strong", { class: "bad" }, "Maybe, and wrong. "), `${sentence(all)}, but `, name, " was never added: a false positive. A block would be read for nothing.")];
}

function sentence(words) {
  return words[0].toUpperCase() + words.slice(1);
}

function hex32(value) {
  return `0x${value.toString(16).padStart(8, "0")}`;
}

/** Who set the bits of a false positive: a line for each probe. */
export function culprits(positions, settersOf) {
  return positions.map((position, at) => h("li", {}, `probe ${at + 1}: bit ${number(position)}, set by ${listed(settersOf(position).map((text) => shown(text)))}`));
}
