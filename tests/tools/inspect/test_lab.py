"""The page's filter lab: its Bloom filter has BloomFilterPolicy's bits, and docs/lab.html is it.

``bloom.js`` is run by node, where there is one; ``tests/browser`` runs it, and the whole lab, in
Chromium.
"""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from documents import load_script

import lsmkv
from lsmkv.engine.filter.bloom import BloomFilterPolicy, leveldb_hash
from lsmkv.engine.filter.rates import expected_fill, expected_rate

STATIC = Path(lsmkv.__file__).parent / "tools" / "inspect" / "static"
DOCS = Path(__file__).parents[3] / "docs"
LAB = load_script(DOCS / "pictures" / "lab.py")
NODE = shutil.which("node")
SIZES = [
    *((keys, 64, 6) for keys in (0, 1, 5, 100)),
    *((8, 320, 6), (20, 200, 13), (33, 336, 6), (2, 96, 20), (500, 2048, 2), (7, 80, 1)),
]
"""Keys, bits and probes."""

SCRIPT = """
const bloom = await import(process.argv[1]);
const { createFilter, leveldbHash, positionsOf, probesFor, expectedRate, expectedFill } = bloom;
const chunks = [];
for await (const chunk of process.stdin) chunks.push(chunk);
const { keys, asked, bits, rates, sizes } = JSON.parse(Buffer.concat(chunks).toString());
const decode = (text) => Uint8Array.from(Buffer.from(text, "hex"));
const members = keys.map(decode);
const filters = bits.map((one) => createFilter(members, one));
console.log(JSON.stringify({
  hashes: asked.map((key) => leveldbHash(decode(key))),
  filters: filters.map((data) => Buffer.from(data).toString("hex")),
  probed: asked.map((key) => positionsOf(leveldbHash(decode(key)), 6, 640)),
  answers: bits.map((one) => {
    const filter = new bloom.BloomFilter(bloom.bitsFor(keys.length, one), probesFor(one));
    for (const key of members) filter.add(key);
    return asked.map((key) => filter.mayMatch(leveldbHash(decode(key))));
  }),
  expected: sizes.map((one) => [expectedRate(...one), expectedFill(...one)]),
  predicted: filters.map((data) => bloom.rateOfBits(data, 8 * (data.length - 1), data.at(-1))),
  wanted: rates.map((rate) => bloom.bitsPerKeyFor(rate, 100, 64)),
}));
"""


@pytest.mark.skipif(NODE is None, reason="there is no node")
@pytest.mark.parametrize("number", [0, 1, 5, 400])
def test_bits_are_those_of_the_policy(number: int, tmp_path: Path) -> None:
    rng = random.Random(number)
    keys = [rng.randbytes(rng.randrange(40)) for _ in range(number)]
    asked = keys[:20] + [rng.randbytes(size) for size in range(60)] + [b"\xff" * 9, bytes(7)]
    bits = [1, 2, 7, 10, 13, 44, 60]
    rates = [0.5, 0.1, 0.01, 0.001, 1e-6]
    module = tmp_path / "bloom.mjs"  # a name by which every node knows a module
    module.write_bytes((STATIC / "bloom.js").read_bytes())
    question = {
        "keys": [key.hex() for key in keys],
        "asked": [key.hex() for key in asked],
        "bits": bits,
        "rates": rates,
        "sizes": SIZES,
    }
    assert NODE is not None
    done = subprocess.run(
        [NODE, "--input-type=module", "-e", SCRIPT, module.as_uri()],
        input=json.dumps(question).encode(),
        capture_output=True,
        check=True,
    )
    report = json.loads(done.stdout)
    policies = [BloomFilterPolicy(one) for one in bits]
    filters = [policy.create_filter(keys) for policy in policies]
    assert report["hashes"] == [leveldb_hash(key) for key in asked]
    assert report["filters"] == [data.hex() for data in filters]
    everything = b"\xff" * 80 + bytes([6])
    assert report["probed"] == [
        policies[0].probed_positions(leveldb_hash(key), everything) for key in asked
    ]
    if keys:  # a filter of no keys holds a no for all
        assert report["answers"] == [
            [policy.key_may_match(key, data) for key in asked]
            for policy, data in zip(policies, filters, strict=True)
        ]
    hashes = [rng.getrandbits(32) for _ in range(20_000)]
    for predicted, policy, data in zip(report["predicted"], policies, filters, strict=True):
        passed = sum(policy.hash_may_match(one, data) for one in hashes) / len(hashes)
        doubt = 5 * (max(passed, 2e-4) / len(hashes)) ** 0.5  # five standard deviations
        assert abs(predicted - passed) <= doubt
    for (expected, fill), size in zip(report["expected"], SIZES, strict=True):
        assert expected == pytest.approx(expected_rate(*size))
        assert fill == pytest.approx(expected_fill(*size))
    for rate, wanted in zip(rates, report["wanted"], strict=True):
        fewest = BloomFilterPolicy.for_false_positive_rate(rate).bits_per_key
        assert wanted >= fewest
        assert _expected(wanted) <= rate or wanted == 64
        assert wanted == fewest or _expected(wanted - 1) > rate


def _expected(bits_per_key: int) -> float:
    """Of a filter of 100 keys."""
    bits = -(-100 * bits_per_key // 8) * 8
    return expected_rate(100, bits, BloomFilterPolicy(bits_per_key).probes)


def test_links_of_the_page_lead_to_pages() -> None:
    """It is read in a browser, which does not render Markdown."""
    for link in re.findall(r'(?:href|src)="([^"]*)"', LAB.page()):
        assert not link.endswith(".md")
        assert link.startswith("data:") or (DOCS / link).is_file()


def test_the_page_of_the_documentation_is_up_to_date() -> None:
    assert (DOCS / "lab.html").read_text(encoding="utf-8") == LAB.page(), (
        "run python docs/pictures/lab.py"
    )


def test_the_page_asks_for_nothing_else() -> None:
    page = (DOCS / "lab.html").read_text(encoding="utf-8")
    assert "default-src 'none'" in page
    outside = set(re.findall(r"https?://[\w./-]+", page))
    assert outside == {"http://www.w3.org/2000/svg"}  # a name, which nothing fetches
    assert not re.search(r"^import\b", page, re.MULTILINE)


@pytest.mark.parametrize("name", LAB.MODULES)
def test_a_strict_policy_allows_it(name: str) -> None:
    """No markup made of text, no handler or style in an attribute."""
    source = (STATIC / name).read_text(encoding="utf-8")
    for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert word not in source
    assert not re.search(r"""\b(?:style|on[a-z]+)["']?\s*:\s""", source)


def test_modules_that_cannot_be_joined(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(LAB, "STATIC", tmp_path)
    monkeypatch.setattr(LAB, "MODULES", ("a.js", "b.js"))
    (tmp_path / "a.js").write_text('import { x } from "./b.js";\n', encoding="utf-8")
    (tmp_path / "b.js").write_text("export const x = 1;\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"b\.js, which does not stand before"):
        LAB.joined()
    (tmp_path / "a.js").write_text("export function x() {}\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"b\.js cannot be joined: \['x'\]"):
        LAB.joined()
