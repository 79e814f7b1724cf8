// What the filter lab says: figures and keys as text, and the sentences about a trial.

import { expectedFill, expectedRate, rateOfBits, textbookRate } from "./bloom.js";
import { number } from "./format.js";
import { ASKED } from "./trial.js";

const LONGEST = 32;

/** A share as percent, with its significant digits. */
export function percent(share) {
  if (share === 0 || share === 1) return `${100 * share}%`;
  return `${(100 * share).toLocaleString("en", { maximumSignificantDigits: share < 0.1 ? 2 : 3 })}%`;
}

/** A key on one line: invisible characters are escaped, and so are spaces at its ends.
 *
 * A truncated key states its `length`; it is truncated only if that makes it shorter.
 */
export function shown(text, length = undefined) {
  const characters = Array.from(text);
  const note = `… (${length ?? `${number(characters.length)} characters`})`;
  const cut = characters.length > LONGEST + note.length;
  const kept = (cut ? characters.slice(0, LONGEST) : characters).join("").replace(/[\p{C}\p{Zl}\p{Zp}]|[^\P{Zs} ]/gu, escaped);
  const begin = kept.trimStart();
  const ahead = escaped(" ").repeat(kept.length - begin.length);
  if (cut) return ahead + begin + note;
  const inner = begin.trimEnd();
  return ahead + inner + escaped(" ").repeat(begin.length - inner.length) || "(empty)";
}

function escaped(character) {
  return `\\u${character.codePointAt(0).toString(16).padStart(4, "0")}`;
}

/** Keys in a sentence, as `shown` has them: the first three, and how many more. */
export function listed(texts) {
  const first = texts.slice(0, 3).map((text) => `“${text}”`).join(", ");
  return texts.length > 3 ? `${first} and ${number(texts.length - 3)} more` : first;
}

/** The size of a filter, and its expected rate for a number of keys. */
export function aboutSize({ bits, probes }, expected) {
  const rate = percent(expectedRate(expected, bits, probes));
  return (
    `m = ${number(bits)} bits, ${number(bits / 8)} bytes; k = ${probes}. With ${number(expected)} keys in it,` +
    ` ${rate} of absent keys should pass.`
  );
}

/** The answer to a query, `{text, data}` or null: its kind, and a sentence. */
export function aboutQuery(trial, query) {
  if (query === null) return { kind: "", words: "Type a key: the bits that a lookup probes are marked." };
  const probed = trial.probed(query.data);
  const clear = probed.find((position) => !trial.filter.isSet(position));
  const name = `“${shown(query.text)}”`;
  const different = new Set(probed).size;
  const shared = different < probed.length ? ` Its ${probed.length} probes hit only ${different} different bits.` : "";
  if (clear !== undefined) {
    const words = `No: ${name} was never added, because bit ${number(clear)} is 0. The block is not read.`;
    return { kind: "no", words: words + shared };
  }
  const bits = probed.length === 1 ? "its bit is 1" : `all its ${probed.length} bits are 1`;
  if (trial.has(query.data)) return { kind: "maybe", words: `Maybe: ${bits}. ${name} was added.${shared}` };
  return { kind: "wrong", words: `Maybe: ${bits}. ${name} was not: a false positive, and a wasted read.${shared}` };
}

/** A bit, and the keys that set it; -1 means none. */
export function aboutBit(trial, position) {
  if (position < 0) return "Click a bit, or move to it with the arrow keys, to see which keys set it.";
  const setters = trial.settersOf(position);
  const what = setters.length ? `is 1, set by ${listed(setters.map((text) => shown(text)))}.` : "is 0: no key set it.";
  return `Bit ${number(position)}, in byte ${number(position >> 3)}, ${what}`;
}

/** The figures of a trial: terms and values. */
export function figuresOf({ filter, keys, passed }) {
  const { bits, probes, ones, fill } = filter;
  return [
    ["keys added", number(keys.length)],
    ["bits set", `${number(ones)} of ${number(bits)}`],
    ["fill", percent(fill)],
    ["fill expected", percent(expectedFill(keys.length, bits, probes))],
    ["absent keys that pass", `${number(passed)} of ${number(ASKED)}`],
    ["rate measured", percent(passed / ASKED)],
    ["rate that these bits predict", percent(rateOfBits(filter.array, bits, probes))],
    ["average of such filters", percent(expectedRate(keys.length, bits, probes))],
    ["textbook, large filters", percent(textbookRate(keys.length, bits, probes))],
  ];
}
