"""Draws ``course/*.svg``, the pictures of the course's texts, from bytes that the engine makes."""

from __future__ import annotations

from collections.abc import Callable

from drawing import BOXES, HEAD, HERE, MARGIN, arrow, bar, box, card, text

from lsmkv.filter.bloom import BloomFilterPolicy, leveldb_hash
from lsmkv.format.keys import pack
from lsmkv.format.log import BLOCK_SIZE, frame
from lsmkv.table.block import Block
from lsmkv.tools.course.labs.block import SAMPLE, built
from lsmkv.tools.course.labs.log import parts
from lsmkv.util.coding import encode_varint

CELL = 22
LEFT, TOP = 92, 100
KEYS = (b"hello", b"world")


def bloom() -> str:
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
        told: list[str] = []
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
            told += [f"{8 * row + column} {names}"] if by else []
        parts.append(text(LEFT + 8 * CELL + 8, y + 15, "small", f"{data[row]:02x}"))
        parts.append(text(LEFT + 8 * CELL + 34, y + 15, "small muted", ", ".join(told)))
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


def keys() -> str:
    """300 as a varint, and an internal key."""
    data = encode_varint(300)
    low, high = 300 & 127, 300 >> 7
    left, wide = 66, 150
    parts = [
        HEAD,
        text(MARGIN, 58, "head", "a varint: 300"),
        text(MARGIN, 88, "small muted", "bits"),
        box(left, 70, wide, 30, f"{high:07b}"),
        box(left + wide + 40, 70, wide, 30, f"{low:07b}", kind="mark"),
        arrow(left + wide / 2, 100, left + wide + 40 + wide / 2 - 8, 128),
        arrow(left + wide + 40 + wide / 2, 100, left + wide / 2 + 8, 128),
        text(MARGIN, 150, "small muted", "bytes"),
        box(left, 132, wide, 48, f"{data[0]:02x}", f"1 {low:07b}", kind="mark"),
        box(left + wide + 40, 132, wide, 48, f"{data[1]:02x}", f"0 {high:07b}"),
        text(left, 200, "small muted", "the top bit 1: another byte"),
        text(left + wide + 40, 200, "small muted", "the top bit 0: the last one"),
        bar(MARGIN, 216, 480 - 2 * MARGIN, 1, "weak"),
        text(MARGIN, 244, "head", "internal keys, in their order"),
    ]
    rows = [(b"ant", 7, 1), (b"ant", 4, 0), (b"ant", 2, 1), (b"bee", 5, 1)]
    for at, (user_key, sequence, kind) in enumerate(rows):
        y = 258 + 36 * at
        tag = pack(user_key, sequence, kind)[-8:]
        parts += [
            box(MARGIN, y, 60, 28, user_key.decode()),
            box(MARGIN + 64, y, 218, 28, tag.hex(" "), kind="mark"),
            text(
                MARGIN + 294,
                y + 18,
                "small muted",
                f"sequence {sequence}, {'a value' if kind else 'a deletion'}",
            ),
        ]
    parts.append(
        text(
            MARGIN,
            424,
            "small muted",
            "As of sequence 5, the first ant is the deletion: there is no ant.",
        )
    )
    return card(
        "Varints and internal keys",
        "The lower seven bits of 300 become the first byte, with its top bit set, and the upper"
        " ones the second. Internal keys sort by user key, and the newest version comes first.",
        442,
        parts,
        style=BOXES,
    )


def block() -> str:
    """Four entries of a block, and what their keys share."""
    entries = SAMPLE
    data = built(entries, 2)
    made = Block(data)
    parts = [
        text(MARGIN, 58, "small muted", "at"),
        text(58, 58, "small muted", "lengths"),
        text(152, 58, "small muted", "key"),
        text(368, 58, "small muted", "value"),
    ]
    at, letter = 0, 28
    for number, (key, value) in enumerate(entries):
        shared, unshared, size, key_at = made.header(at)
        y = 70 + 38 * number
        parts.append(text(MARGIN, y + 20, "small muted", str(at)))
        parts.append(box(50, y, 84, 30, data[at:key_at].hex(" ")))
        for place, byte in enumerate(key):
            kind = "gone" if place < shared else "mark"
            parts.append(box(148 + letter * place, y, letter - 2, 30, chr(byte), kind=kind))
        parts.append(box(364, y, 50, 30, value.decode()))
        if at in made.restart_points():
            parts.append(text(422, y + 20, "small", "restart"))
        at = key_at + unshared + size
    y = 70 + 38 * len(entries) + 12
    words = [data[at : at + 4] for at in range(at, len(data), 4)]
    names = [*(f"restart {point}" for point in made.restart_points()), "their number"]
    for place, (word, name) in enumerate(zip(words, names, strict=True)):
        parts.append(box(50 + 128 * place, y, 120, 48, word.hex(" "), name))
    parts.append(text(MARGIN, y + 28, "small muted", str(made.end)))
    parts.append(
        text(
            MARGIN,
            y + 76,
            "small muted",
            "Dashed letters are shared with the key before, not stored.",
        )
    )
    return card(
        "A block: keys that share their beginnings",
        "Four entries. The key antler shares ant with the one before it. The first and the third"
        " are restart points, whose keys are whole; their offsets stand at the end.",
        y + 94,
        parts,
        style=BOXES,
    )


def log() -> str:
    """Two records around the border of two blocks."""
    begin = BLOCK_SIZE - 30
    data = frame(b"ant", begin)
    data += frame(b"antelope and bee", begin + len(data))
    found: list[list[tuple[int, int, str]]] = []
    for part in parts(data, begin):
        if part[2].startswith("masked"):
            found.append([])
        found[-1].append(part)
    y = 66
    shapes = []
    for fragment in found:
        at = begin + fragment[0][0]
        if at == BLOCK_SIZE:
            shapes.append(bar(MARGIN, y + 6, 480 - 2 * MARGIN, 2, "strong"))
            shapes.append(text(MARGIN, y + 28, "small muted", f"the next block, from {at:,} on"))
            y += 40
        shapes.append(text(MARGIN, y + 28, "small muted", f"{at:,}"))
        x = 76
        for (start, size, told), wide in zip(fragment, (104, 64, 64, 142), strict=True):
            piece = data[start : start + size]
            name, _, value = told.partition(", ")
            words = {"masked checksum of type and data": "checksum", "data": repr(piece)[2:-1]}
            shown = value or words[name]
            kind = "mark" if name == "data" else "box"
            below = f"{size} bytes" if name == "data" else piece.hex(" ")
            shapes.append(box(x, y, wide, 48, shown, below, kind=kind))
            x += wide + 4
        y += 58
    shapes.append(
        text(MARGIN, y + 16, "small muted", "Third column: the type, after checksum and length.")
    )
    return card(
        "Two records at the end of a block",
        "The record ant is one FULL fragment. The record antelope and bee does not fit into the"
        " rest of its block: its FIRST fragment ends with the block, its LAST begins the next.",
        y + 34,
        shapes,
        style=BOXES,
    )


PICTURES: dict[str, Callable[[], str]] = {
    "keys": keys,
    "log": log,
    "block": block,
    "bloom": bloom,
}

if __name__ == "__main__":
    (HERE / "course").mkdir(exist_ok=True)
    for name, draw in PICTURES.items():
        (HERE / "course" / f"{name}.svg").write_text(draw(), encoding="utf-8")
