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

/** The textbook false-positive rate (1 - e^(-kn/m))^k, which is that of a large filter. */
export function textbookRate(keys, bits, probes) {
  return (1 - Math.exp((-probes * keys) / bits)) ** probes;
}

/** The false-positive rate to expect, in a small filter too: lsmkv/engine/filter/rates.py says how. */
export function expectedRate(keys, bits, probes) {
  const law = lawOf(bits, probes);
  const fill = expectedFill(keys, bits, probes);
  const top = law.distinct.length - 1;
  let rate = 0;
  law.distinct.forEach((shares, power) => {
    const both = bothSet(probes, top, power, Math.floor(bits / 2 ** power));
    const bothClear = Math.max(0, 1 - (2 * law.mean) / bits + both) ** keys;
    for (const [distinct, share] of shares) rate += share * allSet(distinct, fill, bothClear);
  });
  for (const [shared, offsets] of law.overlaps) {
    rate += ((2 * keys) / bits / bits) * offsets * (fill ** (probes - shared) - fill ** probes);
  }
  return Math.min(1, rate);
}

/** The share of ones to expect: 1 - (1 - r/m)^n, where a key meets r different bits on average. */
export function expectedFill(keys, bits, probes) {
  return 1 - (1 - lawOf(bits, probes).mean / bits) ** keys;
}

const SPAN = 2 ** 32;
const LONGEST_LAG = 8;
const FEW_BITS = 8;
const WRAPS = 64;
const PAIRED_WRAPS = 24;
const GOLDEN = 0.6180339887498949;
const laws = new Map();
const pathsKnown = new Map();
const overlapsKnown = new Map();

/** What `make` returns, made once for each key. */
function kept(known, key, make) {
  if (!known.has(key)) known.set(key, make());
  return known.get(key);
}

function lawOf(bits, probes) {
  return kept(laws, `${bits} ${probes}`, () => makeLaw(bits, probes));
}

function powerIn(number, most) {
  let power = 0;
  while (power < most && number % 2 ** (power + 1) === 0) power++;
  return power;
}

function makeLaw(bits, probes) {
  const top = powerIn(bits, 31);
  const wrap = SPAN % bits;
  const most = Array.from({ length: top + 1 }, (_, power) => Math.min(probes, bits / 2 ** power));
  const distinct = most.map((one, power) => new Map([[one, 2 ** -Math.min(power + 1, top)]]));
  const paths = wrap ? pathsOf(probes, WRAPS) : [[new Array(probes).fill(0), 1]];
  for (const step of repeatingSteps(bits, probes, wrap)) {
    const power = powerIn(step, top);
    const at = distinct[power];
    for (const [wraps, share] of paths) {
      const met = new Set(wraps.map((times, n) => (((n * step - times * wrap) % bits) + bits) % bits)).size;
      at.set(met, (at.get(met) ?? 0) + share / bits);
      at.set(most[power], at.get(most[power]) - share / bits);
    }
  }
  let mean = 0;
  for (const at of distinct) for (const [met, share] of at) mean += met * share;
  return { distinct, mean, overlaps: overlapsOf(probes, wrap > 0) };
}

function gcd(a, b) {
  return b ? gcd(b, a % b) : a;
}

/** The steps modulo m for which probes close to each other meet: lag * step = wraps * 2^32. */
function repeatingSteps(bits, probes, wrap) {
  if (bits < FEW_BITS * probes) return Array.from({ length: bits }, (_, step) => step);
  const steps = new Set();
  for (let lag = 1; lag < Math.min(probes, LONGEST_LAG + 1); lag++) {
    const common = gcd(lag, bits);
    const whole = bits / common;
    for (let wraps = 0; wraps <= (wrap ? lag : 0); wraps++) {
      if ((wraps * wrap) % common) continue;
      let first = 0; // the lag is small, so that its inverse is found by trying
      const target = ((wraps * wrap) / common) % whole;
      const factor = lag / common;
      for (let n = 0; n < factor; n++) if ((target + n * whole) % factor === 0) first = ((target + n * whole) / factor) % whole;
      for (let n = 0; n < common; n++) steps.add(first + n * whole);
    }
  }
  return steps;
}

/** How often the sum has wrapped around before each probe, and how likely that is. */
function pathsOf(probes, number) {
  return kept(pathsKnown, `${probes} ${number}`, () => {
    const found = new Map();
    for (let n = 0; n < number; n++) {
      const begin = (n * GOLDEN) % 1;
      const step = (n + 0.5) / number;
      const wraps = Array.from({ length: probes }, (_, at) => Math.floor(begin + at * step));
      const name = wraps.join();
      found.set(name, [wraps, (found.get(name)?.[1] ?? 0) + 1 / number]);
    }
    return [...found.values()];
  });
}

/** Of two probe sequences with one step: the offsets between them, by the bits that they share. */
function overlapsOf(probes, wraps) {
  return kept(overlapsKnown, `${probes} ${wraps}`, () => {
    const found = new Map();
    const paths = wraps ? pathsOf(probes, PAIRED_WRAPS) : [[new Array(probes).fill(0), 1]];
    const width = 2 * probes;
    for (const [one, share] of paths) {
      for (const [other, also] of paths) {
        const offsets = new Uint8Array(width * width);
        for (let n = 0; n < probes; n++) {
          for (let at = 0; at < probes; at++) offsets[(n - at + probes) * width + one[n] - other[at] + probes]++;
        }
        for (const shared of offsets) {
          if (shared > 1) found.set(shared, (found.get(shared) ?? 0) + share * also);
        }
      }
    }
    return found;
  });
}

/** How likely a key sets two given bits of the `size` ones that are equal modulo 2^power. */
function bothSet(probes, top, power, size) {
  if (size < 2) return 0;
  let pairs = 0;
  for (let own = 0; own <= top; own++) {
    const share = 2 ** -Math.min(own + 1, top);
    if (own > power) {
      const met = size === 2 ** (top - power) ? Math.min(probes, 2 ** (top - own)) : probes;
      pairs += share * 2 ** -power * met * (met - 1);
      continue;
    }
    const parts = 2 ** (power - own);
    const few = Math.floor(probes / parts);
    const more = probes % parts;
    const [least, greatest] = [Math.min(few, size), Math.min(few + 1, size)];
    const both = more * greatest * (greatest - 1) + (parts - more) * least * (least - 1);
    pairs += (share * 2 ** -own * both) / parts;
  }
  return pairs / (size * (size - 1));
}

/** How likely that many bits are all set, if one is with `fill` and two are both clear this often. */
function allSet(distinct, fill, bothClear) {
  const clear = 1 - fill;
  if (clear <= 0 || fill <= 0) return fill ** distinct;
  const alike = (bothClear - clear * clear) / (fill * clear);
  let product = 1;
  for (let n = 0; n < distinct; n++) {
    const chance = (fill * (1 - alike) + n * alike) / Math.max(1e-9, 1 - alike + n * alike);
    product *= Math.min(1, Math.max(0, chance));
  }
  return product;
}

const HASHES = 2 ** 18; // that stand for all 2^32; of rates above 0.1% two digits are right
const lastRate = { name: "", passed: 0 };

/** The share of all hashes that pass these very bits: the filter's own rate, where `expectedRate` is an average. */
export function rateOfBits(array, bits, probes) {
  const name = `${bits} ${probes} ${array.join()}`;
  if (lastRate.name === name) return lastRate.passed / HASHES;
  let passed = 0;
  let hash = 1;
  for (let n = 0; n < HASHES; n++) {
    hash ^= hash << 13; // Marsaglia's xorshift
    hash ^= hash >>> 17;
    hash ^= hash << 5;
    let sum = hash >>> 0;
    const delta = ((sum >>> 17) | (sum << 15)) >>> 0;
    let probe = 0;
    for (; probe < probes; probe++) {
      const position = sum % bits;
      if (!((array[position >> 3] >> (position & 7)) & 1)) break;
      sum = (sum + delta) >>> 0;
    }
    if (probe === probes) passed++;
  }
  Object.assign(lastRate, { name, passed });
  return passed / HASHES;
}

/** The least bits a key, a whole number of at most `most`, whose expected rate is at most `rate`. */
export function bitsPerKeyFor(rate, keys, most) {
  let bits = Math.max(1, Math.ceil(-Math.log(rate) / Math.LN2 ** 2));
  const passes = () => expectedRate(keys, bitsFor(keys, bits), probesFor(bits));
  while (bits < most && passes() > rate) bits++;
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
