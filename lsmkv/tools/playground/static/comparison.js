// The false positives of a Bloom filter, predicted beside measured, and other filters with the same keys.

import { bitsFor, expectedRate, probesFor, rateOfBits } from "./inspect/bloom.js";
import { h, show } from "./inspect/dom.js";
import { BitGrid, curve } from "./inspect/draw.js";
import { bytes, count, number } from "./inspect/format.js";
import { probedBits, xorSum } from "./inspect/probes.js";
import { percent, shown } from "./inspect/sentences.js";
import { SlotGrid } from "./inspect/slots.js";

const MOST = 20; // bits per key that the curve shows
const TRIED = [1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 18, 20];
const RATES = [1, 0.1, 0.01, 0.001, 0.0001];
const CALM = 250; // milliseconds without a change, after which the figures are measured

/** Two sections below the filter; `update` is called with each new state. */
export class Comparison {
  constructor(engine) {
    this.engine = engine;
    this.turn = 0;
    this.timer = 0;
    this.measured = new Map(); // bits per key -> the share that passed
    this.keys = ""; // what `measured` is about
    this.found = null; // what is shown: a state, and the engine's answers about it
    this.curve = h("div", { class: "rate-curve" });
    this.words = h("p", { role: "status" });
    this.cards = h("div", { class: "cards others" });
    this.bits = new BitGrid("The bits of the 64-bit Bloom filter.", () => {});
    this.slots = new SlotGrid("The slots of the fuse filter around those that are read.", () => {});
    this.bitStage = h("div", { class: "lab-stage" }, this.bits.root);
    this.slotStage = h("div", { class: "lab-stage" }, this.slots.root);
    this.element = h("div", { class: "lab below" },
      h("section", { class: "card", "aria-label": "False positives" },
        h("h2", {}, "False positives: predicted and measured"),
        h("div", { class: "rates" }, this.curve, this.words)),
      h("section", { "aria-label": "Other filters" },
        h("h2", {}, "The same keys in other filters"), this.cards));
    new ResizeObserver(() => this.drawOthers()).observe(this.cards);
  }

  update(state) {
    this.state = state;
    const turn = ++this.turn;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.measure(turn).catch(() => {}), CALM); // the page shows that the engine failed
  }

  async measure(turn) {
    const { keys, bits, probes, perKey, asked, array } = this.state;
    const others = await this.engine.ask("others", { keys, per_key: perKey, asked });
    const live = await this.engine.ask("passed", { keys, bits, probes });
    if (turn !== this.turn) return;
    const [rate, average] = [rateOfBits(array, bits, probes), expectedRate(keys.length, bits, probes)];
    this.found = { ...this.state, others, live, rate, average };
    this.drawOthers();
    if (JSON.stringify(keys) !== this.keys) this.measured = new Map();
    this.keys = JSON.stringify(keys);
    this.drawCurve();
    for (const tried of keys.length ? TRIED : []) {
      if (this.measured.has(tried)) continue;
      const { passed, asked: of } = await this.engine.ask("passed", { keys, per_key: tried });
      if (turn !== this.turn) return;
      this.measured.set(tried, passed / of);
      this.drawCurve();
    }
  }

  drawCurve() {
    const { keys, bits, rate: predicted, average } = this.found;
    const { passed, asked } = this.found.live;
    const now = keys.length ? Math.min(bits / keys.length, MOST) : 0;
    const rate = passed / asked;
    const points = [...this.measured].filter(([tried]) => tried !== now);
    show(this.curve, keys.length ? curve({
      title: "False-positive rate by bits per key",
      description: `${percent(rate)} of absent keys pass at ${now.toFixed(1)} bits per key`,
      most: MOST,
      now,
      across: "bits per key",
      ticks: RATES.map((one) => [one, percent(one)]),
      place: (one) => 1 + Math.log10(one) / (RATES.length - 1),
      expected: (perKey) => (perKey < 1 ? 0 : expectedRate(keys.length, bitsFor(keys.length, perKey), probesFor(perKey))),
      measured: [...points, [now, rate]],
    }) : h("p", {}, "Without keys nothing passes."));
    show(this.words,
      `${number(passed)} of ${number(asked)} random absent keys pass this filter: `, h("strong", {}, percent(rate)),
      `. Its very bits predict ${percent(predicted)}. Other filters of this size, with other ${number(keys.length)} keys, are better or worse: ${percent(average)} pass on average. `,
      `The line is that average for filters with ${count(keys.length, "key")}. Each dot is measured with ${number(asked)} absent keys; `
      + "the large dot is this filter. The formula (1 − e^(−kn/m))^k is for large filters. The line allows for small ones, whose probes sometimes coincide.");
  }

  drawOthers() {
    if (!this.found) return;
    const { keys, asked, bits, probes, rate, live, others: { bloom64, fuse, added } } = this.found;
    const own = { bytes: bits / 8 + 1, keys: keys.length, ...live, rate };
    const madeUp = added ? ` A fuse filter is made for at least 1,000 keys, so ${number(added)} made-up keys are in it as well.` : "";
    const cards = [
      ["LevelDB’s Bloom filter", own, `${probes} probes by one hash of 32 bits: the filter above.`, []],
      ["A 64-bit Bloom filter", bloom64, `${bloom64.probes} probes by a hash of 64 bits, so that similar keys do not share bits.`,
        [bloom64.lookup && this.told(asked, bloom64.lookup.may_match, probedBits(bloom64.lookup.positions, bloom64.lookup.may_match)), this.bitStage]],
      ["A fuse filter", fuse, `${fuse.arity} slots of one byte per key; their XOR is the key’s fingerprint.${madeUp}`,
        [fuse.lookup && this.told(asked, fuse.lookup.may_match, xorSum(fuse.lookup)), fuse.lookup && this.slotStage]],
    ];
    show(this.cards, cards.map(([title, filter, words, more]) => h("section", { class: "card", "aria-label": title },
      h("h3", {}, title), h("p", {}, words),
      h("dl", { class: "pairs" }, [
        ["size", `${bytes(filter.bytes)}, ${filter.keys ? ((8 * filter.bytes) / filter.keys).toFixed(1) : "–"} bits per key`],
        ["absent keys that pass", `${number(filter.passed)} of ${number(filter.asked)}`],
        ["measured, predicted by its bits", `${percent(filter.passed / filter.asked)}, ${percent(filter.rate)}`],
      ].map(([term, value]) => h("div", {}, h("dt", {}, term), h("dd", {}, value)))),
      more)));
    this.drawGrids();
  }

  told(asked, maybe, read) {
    return h("p", { class: "lab-sum" }, h("code", { class: "key" }, shown(asked)), ": ", h("strong", {}, maybe ? "maybe" : "no"), "; ", read);
  }

  drawGrids() {
    const { bloom64, fuse } = this.found.others;
    const widthOf = (stage) => Math.max(200, Math.floor(stage.clientWidth) - 6);
    const array = pairs(bloom64.hex);
    this.bits.layOut(Math.min(bloom64.bits, 2048), widthOf(this.bitStage));
    this.bits.color((position) => ((array[position >> 3] >> (position & 7)) & 1) === 1, bloom64.lookup?.positions ?? []);
    if (!fuse.lookup) return;
    const near = new Map(fuse.lookup.near.flatMap(({ first, hex }) => pairs(hex).map((value, at) => [first + at, value])));
    const bands = fuse.lookup.near.map(({ first, hex }) => ({ first, end: first + hex.length / 2 }));
    this.slots.layOut(bands, (slot) => near.get(slot), fuse.segment_slots, widthOf(this.slotStage));
    this.slots.color(fuse.lookup.slots);
  }
}

function pairs(hex) {
  return (hex.match(/../g) ?? []).map((pair) => Number.parseInt(pair, 16));
}
