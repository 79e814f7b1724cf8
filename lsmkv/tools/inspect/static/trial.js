// The filter lab's filter with the keys in it, and what it is like after each of them.

import { BloomFilter, leveldbHash, positionsOf } from "./bloom.js";

/** So many absent keys are asked for after each key that is added. */
export const ASKED = 5000;

const encoder = new TextEncoder();

/** A Bloom filter whose size may change: it keeps its keys, and is made of them again. */
export class Trial {
  constructor(mostKeys) {
    this.mostKeys = mostKeys;
    this.absent = absentHashes();
    this.filter = new BloomFilter(64, 1);
    this.clear();
  }

  /** Remove all keys. */
  clear() {
    this.keys = []; // {text, data, positions}
    this.known = new Set(); // their bytes in hexadecimal
    this.resize(this.filter.bits, this.filter.probes);
  }

  /** Make the filter again, with the same keys. */
  resize(bits, probes) {
    this.filter = new BloomFilter(bits, probes);
    this.history = []; // {keys, fill, passed}, one for each key
    for (const key of this.keys) {
      key.positions = this.filter.add(key.data);
      this.measure();
    }
  }

  /** Add a key, a text or bytes.  A key that was added before, or that is one too many, changes nothing. */
  include(key) {
    const { text, data } = keyOf(key);
    if (this.has(data) || this.keys.length >= this.mostKeys) return;
    this.known.add(hex(data));
    this.keys.push({ text, data, positions: this.filter.add(data) });
    this.measure();
  }

  /** Whether a key was added. */
  has(data) {
    return this.known.has(hex(data));
  }

  /** The positions that a lookup of a key probes. */
  probed(data) {
    return positionsOf(leveldbHash(data), this.filter.probes, this.filter.bits);
  }

  /** The texts of the keys that set a bit. */
  settersOf(position) {
    return this.keys.filter((key) => key.positions.includes(position)).map((key) => key.text);
  }

  /** How many of the absent keys pass now. */
  get passed() {
    return this.history.at(-1)?.passed ?? 0;
  }

  measure() {
    let passed = 0;
    for (const hash of this.absent) if (this.filter.mayMatch(hash)) passed++;
    this.history.push({ keys: this.history.length + 1, fill: this.filter.fill, passed });
  }
}

/** A key as text and as bytes, from either. */
export function keyOf(key) {
  if (typeof key === "string") return { text: key, data: encoder.encode(key) };
  return { text: asText(key), data: key };
}

/** Bytes in hexadecimal. */
export function hex(data) {
  return Array.from(data, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Bytes as text: UTF-8 if they are, or else with the bytes that are not ASCII as \xNN. */
function asText(data) {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(data);
  } catch {
    const isPrintable = (byte) => byte >= 0x20 && byte < 0x7f;
    return Array.from(data, (byte) => (isPrintable(byte) ? String.fromCharCode(byte) : `\\x${hex([byte])}`)).join("");
  }
}

/** The hashes of random keys of 16 bytes, the same each time: nobody adds one of them. */
function absentHashes() {
  let state = 1;
  const key = new Uint8Array(16);
  return Array.from({ length: ASKED }, () => {
    for (let at = 0; at < key.length; at++) {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      key[at] = state >>> 24;
    }
    return leveldbHash(key);
  });
}
