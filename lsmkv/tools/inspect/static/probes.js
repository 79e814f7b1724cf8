// What a lookup reads in a filter, in words: the bits of a Bloom filter, the slots of a fuse filter.

import { h } from "./dom.js";
import { number } from "./format.js";

/** A byte as two hexadecimal digits. */
export function hexByte(byte) {
  return byte.toString(16).padStart(2, "0");
}

/** The bits that a lookup probes, up to the first that is 0: the last of them if it answers no. */
export function probedBits(positions, maybe) {
  const one = positions.length === 1;
  return [one ? "bit " : "bits ", positions.map((bit, at) => [
    h("code", { class: !maybe && at === positions.length - 1 ? "bit clear" : "bit set" }, number(bit)),
    at < positions.length - 1 ? " " : "",
  ]), maybe ? `; ${one ? "it is set" : "all of them are set"}` : `; ${one ? "it" : "the last one"} is clear, so the key is absent`];
}

/** What a lookup reads in a fuse filter, as a sum: the key's slots, xored, and its fingerprint. */
export function xorSum({ slots, values, fingerprint, xored, may_match: maybe }) {
  const parts = slots.map((slot, at) => [
    at ? " ⊕ " : "", `slot ${number(slot)}: `, h("code", { class: "bit set" }, hexByte(values[at])),
  ]);
  return [parts, " = ", h("code", { class: `bit ${maybe ? "set" : "clear"}` }, hexByte(xored)),
    maybe ? ", the key’s fingerprint: the key may be present"
      : [", but the key’s fingerprint is ", h("code", { class: "bit set" }, hexByte(fingerprint)), ": the key is absent"]];
}
