// LevelDB's Bloom filter, bit for bit as lsmkv's BloomFilterPolicy makes it (docs/filters.md).
//
// Keys are Uint8Arrays.  Hashes are unsigned 32-bit numbers: products are taken by Math.imul, and
// ">>> 0" makes a result unsigned again.

const SEED = 0xbc9f1d34;
const MULTIPLIER = 0xc6a4a793;

export const MOST_PROBES = 30;
export const LEAST_BITS = 64;

/** LevelDB's hash of a key. */
export function leveldbHash(data, seed = SEED) {
  const size = data.length;
  let hash = seed ^ Math.imul(size, MULTIPLIER);
  let at = 0;
  for (; at + 4 <= size; at += 4) {
    const word = data[at] | (data[at + 1] << 8) | (data[at + 2] << 16) | (data[at + 3] << 24);
    hash = Math.imul((hash + word) | 0, MULTIPLIER);
    hash ^= hash >>> 16;
  }
  const rest = size - at;
  if (rest > 0) {
    if (rest === 3) hash += data[at + 2] << 16;
    if (rest >= 2) hash += data[at + 1] << 8;
    hash = Math.imul((hash + data[at]) | 0, MULTIPLIER);
    hash ^= hash >>> 24;
  }
  return hash >>> 0;
}

/** The k that LevelDB takes for so many bits a key: 0.69 of them, rounded down, 1 to 30. */
export function probesFor(bitsPerKey) {
  return Math.max(1, Math.min(MOST_PROBES, Math.trunc(bitsPerKey * 0.69)));
}

/** The bits of a filter for so many keys: at least 64, and whole bytes. */
export function bitsFor(keys, bitsPerKey) {
  return 8 * Math.ceil(Math.max(LEAST_BITS, keys * bitsPerKey) / 8);
}

/** The k positions of a hash in a filter of `bits` bits, by double hashing. */
export function positionsOf(hash, probes, bits) {
  const delta = ((hash >>> 17) | (hash << 15)) >>> 0;
  const positions = [];
  for (let left = probes; left > 0; left--) {
    positions.push(hash % bits);
    hash = (hash + delta) >>> 0;
  }
  return positions;
}

/** The textbook false-positive rate (1 - e^(-kn/m))^k. */
export function predictedRate(keys, bits, probes) {
  return (1 - Math.exp((-probes * keys) / bits)) ** probes;
}

/** The share of ones to expect: 1 - e^(-kn/m). */
export function predictedFill(keys, bits, probes) {
  return 1 - Math.exp((-probes * keys) / bits);
}

/** The least bits a key, a whole number, whose predicted rate is at most `rate`. */
export function bitsPerKeyFor(rate) {
  let bits = Math.ceil(-Math.log(rate) / Math.LN2 ** 2);
  while (predictedRate(1, bits, probesFor(bits)) > rate) bits++;
  return bits;
}

/** The bytes that BloomFilterPolicy(bitsPerKey).create_filter(keys) returns. */
export function createFilter(keys, bitsPerKey) {
  const filter = new BloomFilter(bitsFor(keys.length, bitsPerKey), probesFor(bitsPerKey));
  for (const key of keys) filter.add(key);
  return filter.toBytes();
}

/** A filter of a fixed size, which keys are added to. */
export class BloomFilter {
  constructor(bits, probes) {
    this.bits = bits;
    this.probes = probes;
    this.array = new Uint8Array(Math.ceil(bits / 8));
    this.ones = 0;
  }

  isSet(position) {
    return ((this.array[position >> 3] >> (position & 7)) & 1) === 1;
  }

  /** Set the bits of a key; returns their positions. */
  add(key) {
    const positions = positionsOf(leveldbHash(key), this.probes, this.bits);
    for (const position of positions) {
      if (!this.isSet(position)) this.ones++;
      this.array[position >> 3] |= 1 << (position & 7);
    }
    return positions;
  }

  /** Whether a key with this hash may have been added: false is certain. */
  mayMatch(hash) {
    const delta = ((hash >>> 17) | (hash << 15)) >>> 0;
    for (let left = this.probes; left > 0; left--) {
      if (!this.isSet(hash % this.bits)) return false;
      hash = (hash + delta) >>> 0;
    }
    return true;
  }

  /** The share of bits that are 1. */
  get fill() {
    return this.ones / this.bits;
  }

  /** The bits, the lowest of each byte first, and a byte that holds k. */
  toBytes() {
    const bytes = new Uint8Array(this.array.length + 1);
    bytes.set(this.array);
    bytes[this.array.length] = this.probes;
    return bytes;
  }
}
