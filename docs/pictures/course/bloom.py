"""Draws ``bloom.svg``: the filter of two keys: a row for each byte, a cell for each bit."""

from __future__ import annotations

from drawing import BOXES, MARGIN, bar, card, text

from lsmkv.engine.filter.bloom import BloomFilterPolicy, leveldb_hash

CELL = 22
LEFT, TOP = 92, 100
KEYS = (b"hello", b"world")


def draw() -> str:
    """The filter of two keys: a row for each byte, a cell for each bit."""
    policy = BloomFilterPolicy(10)
    data = policy.create_filter(KEYS)
    setters: dict[int, list[bytes]] = {}
    for key in KEYS:
        for position in policy.probed_positions(leveldb_hash(key), data):
            setters.setdefault(position, []).append(key)
    # In an array of ones, all probes of a key are looked at.
    asked = policy.probed_positions(leveldb_hash(b"x"), b"\xff" * 8 + data[-1:])
    zero = policy.probed_positions(leveldb_hash(b"x"), data)[-1]
    parts = [
        text(MARGIN, 56, "small muted", "hello and world, 10 bits a key: k = 6, 64 bits, 9 bytes"),
        text(MARGIN, TOP - 12, "small muted", "bit"),
    ]
    for column in range(8):
        x = LEFT + column * CELL + CELL / 2
        parts.append(text(x, TOP - 12, "small muted middle", str(column)))
    for row in range(8):
        y = TOP + row * CELL
        parts.append(text(MARGIN, y + 16, "small muted", f"{8 * row} to {8 * row + 7}"))
        labels: list[str] = []
        for column in range(8):
            by = setters.get(8 * row + column, [])
            x = LEFT + column * CELL
            kind = "mark" if by else "box"
            parts.append(
                f'<rect x="{x}" y="{y}" width="{CELL - 2}" height="{CELL - 2}" rx="3"'
                f' class="{kind}"/>'
            )
            parts.append(text(x + CELL / 2 - 1, y + 15, "small middle", "1" if by else "0"))
            names = " ".join(key.decode() for key in dict.fromkeys(by))
            labels += [f"{8 * row + column} {names}"] if by else []
        parts.append(text(LEFT + 8 * CELL + 8, y + 15, "small", f"{data[row]:02x}"))
        parts.append(text(LEFT + 8 * CELL + 34, y + 15, "small muted", ", ".join(labels)))
    end = TOP + 8 * CELL + 18
    parts += [
        text(MARGIN, end, "small muted", "k"),
        text(LEFT + 8 * CELL + 8, end, "small", f"{data[8]:02x}"),
        bar(MARGIN, end + 14, 480 - 2 * MARGIN, 1, "weak"),
        text(MARGIN, end + 38, "", f"Asked for x: bits {', '.join(map(str, asked))}."),
        text(
            MARGIN,
            end + 58,
            "small muted",
            f"Bit {zero} is 0: x was never added. No block is read.",
        ),
    ]
    return card(
        "A Bloom filter of two keys",
        "An array of 64 bits, eight in a row. The keys hello and world have set ten of them, six"
        " probes each, some of them the same.",
        end + 76,
        parts,
        style=BOXES,
    )
