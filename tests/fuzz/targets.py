"""What is fuzzed: readers of bytes from disk or from clients, each with a judge of its answers.

A target takes any bytes.  One of lsmkv's own errors is an answer like any other; whatever else is
raised is a finding.  Where bytes can be read, writing and reading them again must give the same,
and all ways of reading them must agree.

A checksum keeps mutated bytes from the code behind it, so targets whose format has them read the
bytes twice: as they are, and with every checksum made right.
"""

from __future__ import annotations

import hashlib
import itertools
import warnings
from collections.abc import Callable, Iterable

from judge import expect
from talk import fuzz_answers, fuzz_members

from lsmkv import DB, CorruptionError, Error, MemoryEnv, RecoveryWarning, TraceReader
from lsmkv.engine.counters import ReadCounters
from lsmkv.engine.db.observe.published import decode, encode, read_owner
from lsmkv.engine.db.observe.trace import OPERATIONS
from lsmkv.engine.env.base import RandomAccessFile
from lsmkv.engine.filter.bloom import BloomFilterPolicy
from lsmkv.engine.filter.fuse import (
    filter64_may_match,
    filter64_positions,
    look_at_fuse,
)
from lsmkv.engine.filter.key_hashes import KeyHashes
from lsmkv.engine.format.batch import decode_batch, encode_batch
from lsmkv.engine.format.key_order import KeyOrder
from lsmkv.engine.format.keys import MAX_SEQUENCE, Entry, InternalKeyComparator, sequence_in, unpack
from lsmkv.engine.format.log import BLOCK_SIZE, FIRST, FULL, HEADER_SIZE, LAST, LogReader, LogWriter
from lsmkv.engine.format.version_edit import VersionEdit
from lsmkv.engine.options import Options
from lsmkv.engine.table.block import Block
from lsmkv.engine.table.block_builder import BlockBuilder
from lsmkv.engine.table.block_iterator import ALL, BlockIterator
from lsmkv.engine.table.filter_block import FilterBlockReader
from lsmkv.engine.table.format import FOOTER_SIZE, BlockHandle, Footer
from lsmkv.engine.table.inspection import check
from lsmkv.engine.table.reader import Table
from lsmkv.engine.util.checksum import crc32c, masked_crc32c
from lsmkv.engine.util.coding import decode_varint32, encode_fixed32
from lsmkv.engine.util.comparator import BYTEWISE, CallableComparator
from lsmkv.engine.util.compression import NO_COMPRESSION, decompress
from lsmkv.server.requests import ProtocolError, RequestReader
from lsmkv.shards.building.blob import pack_columns, unpack_pairs
from lsmkv.shards.building.runs import Run, RunReader
from lsmkv.shards.remote.disk_page import decode_page, encode_page, page_key
from lsmkv.shards.remote.meta import decode_meta, encode_meta
from lsmkv.shards.remote.objects.local import LocalObjects
from lsmkv.shards.version import VersionDocument
from lsmkv.shared.system.local import SHARES

TAG = 8
MOST = 1 << 16
"""The bound on a block, and on what its keys may share."""
BYTES = KeyOrder(BYTEWISE)
COMPARED = KeyOrder(CallableComparator(BYTEWISE.compare, "fuzz.Compared"))
"""The same order, by the ways of a user's comparator."""


def file_of(data: bytes) -> RandomAccessFile:
    """The bytes as an open file."""
    with MemoryEnv().open_directory("/") as directory:
        with directory.create("file") as file:
            file.append(data)
        return directory.open("file")


# Records


def fuzz_log(data: bytes) -> None:
    """The log reader: what it finds can be written, and is found again."""
    for content in (data, with_log_checksums(data)):
        payloads = [record.payload for record in LogReader(file_of(content))]
        with MemoryEnv().open_directory("/") as directory:
            with directory.create("log") as out:
                writer = LogWriter(out)
                for payload in payloads:
                    writer.add_record(payload)
            reader = LogReader(directory.open("log"))
            again = list(reader)
        expect([record.payload for record in again] == payloads, "other records")
        expect(all(record.damage is None for record in again), "damage in a new log")
        expect(reader.tail is None, "a tail behind a new log")


def fuzz_fragments(data: bytes) -> None:
    """The log reader on sound fragments in any order, which no checksum hides from the fuzzer.

    Two bytes for each: its type, and how long it is.
    """
    content = b""
    expected: list[bytes] = []
    parts: list[bytes] | None = None
    for number in range(len(data) // 2):
        kind = data[2 * number] % 4 + 1
        payload = bytes([number % 256]) * (data[2 * number + 1] % 64)
        typed = bytes([kind]) + payload
        if len(content) % BLOCK_SIZE + HEADER_SIZE + len(payload) > BLOCK_SIZE:
            break
        content += masked_crc32c(typed).to_bytes(4, "little")
        content += len(payload).to_bytes(2, "little") + typed
        if kind == FULL:
            expected.append(payload)
            parts = None
        elif kind == FIRST:
            parts = [payload]
        elif parts is not None:
            parts.append(payload)
            if kind == LAST:
                expected.append(b"".join(parts))
                parts = None
    found = [record.payload for record in LogReader(file_of(content))]
    expect(found == expected, "records that were not written")


def with_log_checksums(data: bytes) -> bytes:
    """The log with right checksums wherever a fragment may be meant."""
    content = bytearray(data)
    for base in range(0, len(data), BLOCK_SIZE):
        stop = min(len(data), base + BLOCK_SIZE)
        at = base
        while at + HEADER_SIZE <= stop:
            end = at + HEADER_SIZE + int.from_bytes(content[at + 4 : at + 6], "little")
            if end > stop:
                break
            content[at : at + 4] = masked_crc32c(bytes(content[at + 6 : end])).to_bytes(4, "little")
            at = end
    return bytes(content)


def fuzz_batch(data: bytes) -> None:
    """A batch: it is written as it was read."""
    try:
        sequence, operations = decode_batch(data)
    except Error:
        return
    again = decode_batch(encode_batch(sequence, operations))
    expect(again == (sequence, operations), "another batch")


def fuzz_version_edit(data: bytes) -> None:
    """A MANIFEST's record."""
    try:
        edit = VersionEdit.decode(data)
    except Error:
        return
    encoded = edit.encode()
    expect(VersionEdit.decode(encoded).encode() == encoded, "another edit")


# Tables


def fuzz_block(data: bytes) -> None:
    """A block: all ways of reading it agree."""
    try:
        block = Block(data, MOST)
        keys, values = block.entries()
    except Error:
        read_anyhow(data)
        return
    entries = list(zip(keys, values, strict=True))
    tagged_entries_agree(data, entries)
    compare = InternalKeyComparator(BYTEWISE).compare
    tagged = all(len(key) >= TAG and key[-TAG] <= 1 for key in keys)
    rising = tagged and all(compare(a, b) < 0 for a, b in itertools.pairwise(keys))
    if not rising or not restarts_are_sound(data, block):
        read_anyhow(data)
        return
    gets_agree(data, entries)
    if not shares_much(data):
        iterators_agree(data, entries)
    for interval in (1, 3, 16):
        builder = BlockBuilder(interval, MOST)
        for key, value in entries:
            builder.add(key, value)
        again = Block(builder.finish(), 2 * MOST).entries()
        expect(again == (keys, values), "other entries once written again")


def tagged_entries_agree(data: bytes, entries: list[tuple[bytes, bytes]]) -> None:
    """Tagged entries are the entries, cut before the tag."""
    try:
        found = Block(data, MOST).tagged_entries()
    except Error:
        short = any(len(key) < TAG for key, _ in entries)
        expect(short or shares_much(data), "entries that cannot be cut")
    else:
        expected = [(key[:-TAG], key[-TAG:] + value) for key, value in entries]
        expect(found == expected, "tagged entries are other entries")


def shares_much(data: bytes) -> bool:
    """Whether the bound on shared bytes is near: readers count in slightly different ways."""
    return len(data) > 512


def restarts_are_sound(data: bytes, block: Block) -> bool:
    """Whether the restart points are whole entries, in order, from the first one on."""
    try:
        points = block.restart_points()
    except Error:
        return False
    starts = set()
    at = 0
    end = len(data) - 4 - 4 * len(points)
    while at < end:
        shared, position = decode_varint32(data, at)
        unshared, position = decode_varint32(data, position)
        size, position = decode_varint32(data, position)
        if shared == 0:
            starts.add(at)
        at = position + unshared + size
    return points[:1] == [0] and points == sorted(set(points)) and starts.issuperset(points)


def gets_agree(data: bytes, entries: list[tuple[bytes, bytes]]) -> None:
    """Whatever is looked for, and at any sequence, every search finds what going through all
    entries finds."""
    often = Block(data, MOST)
    targets = {key[:-TAG] for key, _ in entries[:40]}
    targets |= {key + b"\0" for key in targets}
    targets |= {key[: len(key) // 2] for key in targets}
    sequences = {MAX_SEQUENCE, *(unpack(key)[1] for key, _ in entries[:5])}
    for target in sorted(targets):
        for sequence in sequences:
            expected: tuple[int, bytes | None] = 0, None
            for key, value in entries:
                if key[:-TAG] == target and unpack(key)[1] <= sequence:
                    expected = int.from_bytes(key[-TAG:], "little", signed=True), value
                    break
            for order in (BYTES, COMPARED):
                found = Block(data, MOST).get(target, sequence, order)
                expect(found == expected, "a Get finds another version")
            found = often.get(target, sequence, BYTES)
            expect(found == expected, "a Get in a block that is searched often")


def iterators_agree(data: bytes, entries: list[tuple[bytes, bytes]]) -> None:
    """A block iterator returns the visible entries, from any key on and at any sequence.

    So does one that begins at a restart point, and one that begins again."""
    tags = [unpack(key) for key, _ in entries]
    for sequence in {MAX_SEQUENCE, *(tag[1] for tag in tags[:5])}:
        seen: list[tuple[bytes, bytes]] = []
        last: bytes | None = None
        for (user_key, number, kind), (_, value) in zip(tags, entries, strict=True):
            if user_key != last and number <= sequence:
                last = user_key
                if kind == 1:
                    seen.append((user_key, value))
        for start in {b"", *(tag[0] for tag in tags[:10]), b"k1\0"}:
            for order in (BYTES, COMPARED):
                found = pairs_of(BlockIterator(Block(data, MOST), order, sequence, start))
                expect(found == [pair for pair in seen if pair[0] >= start], "other pairs")
                block = BlockIterator(Block(data, MOST), order, sequence)
                split = block.seek_to_restart(start or None)
                expect(
                    split == b"" or not start or split < start,
                    "a restart point beyond where it should end",
                )
                left = [pair for pair in seen if not split or pair[0] > split]
                expect(pairs_of(block) == left, "other pairs behind a restart point")
                expect(pairs_of(block.from_start()) == seen, "other pairs from the start")


def pairs_of(block: BlockIterator) -> list[tuple[bytes, bytes]]:
    """The pairs that are left, a few at a time."""
    found: list[tuple[bytes, bytes]] = []
    while not block.done:
        found += block.next_entries(3)
    return found


def seek_to_restart(block: Block, stop: bytes | None) -> None:
    """What is read of the first block on the way back."""
    iterator = BlockIterator(block, BYTES, MAX_SEQUENCE)
    iterator.seek_to_restart(stop)
    pairs_of(iterator)


def read_anyhow(data: bytes) -> None:
    """Every way of reading a block that may be none; answers are worth nothing."""
    readings: list[Callable[[Block], object]] = [
        Block.restart_points,
        Block.first_key,
        Block.check,
        Block.tagged_entries,
        lambda block: BlockIterator(block, BYTES, MAX_SEQUENCE, data[:3]).next_entries(ALL),
        lambda block: BlockIterator(block, COMPARED, MAX_SEQUENCE, data[:3]).next_entries(ALL),
        lambda block: BlockIterator(block, BYTES, 5).next_entries(ALL),
        lambda block: seek_to_restart(block, None),
        lambda block: seek_to_restart(block, data[:3]),
        lambda block: block.get(data[:3], MAX_SEQUENCE, BYTES),
        lambda block: block.get(data[:3], 5, COMPARED),
        lambda block: [block.get(name, 5, BYTES) for name in (b"", b"k") * 3],
    ]
    for reading in readings:
        try:
            reading(Block(data, MOST))
        except Error:
            pass


def fuzz_table(data: bytes) -> None:
    """A table: every way of reading it agrees, and what ``check`` passes can be found."""
    for content in (data, with_table_checksums(data)):
        for filters in (False, True):
            try:
                read_table(content, filters)
            except Error:
                pass


def read_table(data: bytes, filters: bool) -> None:
    """Open it, and read it in every way; raises what reading raises."""
    options = Options(
        max_block_bytes=MOST, filter_policy=BloomFilterPolicy(10) if filters else None
    )
    counters = ReadCounters()
    table = Table(options, file_of(data))
    try:
        first, last = check(table)
        sound = True
    except Error:
        sound = False
    entries = joined(table.entries(counters, 1, 1))
    expect(sum(len(key) + len(tagged) for key, tagged in entries) < 1 << 26, "too much")
    ahead = joined(table.entries(counters, 4096, 1 << 20))
    expect(ahead == entries, "with readahead it is another table")
    if not sound:
        return
    if entries:
        ends = [key + tagged[:TAG] for key, tagged in (entries[0], entries[-1])]
        expect([first, last] == ends, "check sees other keys")
    for key, tagged in entries[:50]:
        sequence = sequence_in(tagged)
        newest = next(t for k, t in entries if k == key and sequence_in(t) <= sequence)
        _, tag, content = table.get(key, key, sequence, KeyHashes(key), counters, True)
        expected = int.from_bytes(newest[:TAG], "little", signed=True), newest[TAG:]
        expect((tag, content) == expected, "a version is not found")


def joined(chunks: Iterable[list[Entry]]) -> list[Entry]:
    """The entries of all chunks."""
    return [entry for entries in chunks for entry in entries]


def with_table_checksums(data: bytes) -> bytes:
    """The table with a right checksum behind each block that a handle leads to."""
    content = bytearray(data)
    try:
        footer = Footer.decode(bytes(data[-FOOTER_SIZE:]))
    except Error:
        return data
    todo = [footer.index, footer.metaindex]
    for depth in range(2):
        found: list[BlockHandle] = []
        for handle in todo:
            end = handle.offset + handle.size
            if end + 5 > len(data):
                continue
            if depth == 0:
                content[end] = NO_COMPRESSION
            body = bytes(content[handle.offset : end + 1])
            content[end + 1 : end + 5] = masked_crc32c(body).to_bytes(4, "little")
            try:
                for value in Block(body[:-1], MOST).entries()[1]:
                    found.append(BlockHandle.decode(value)[0])
            except Error:
                pass
        todo = found[:100]
    return bytes(content)


def fuzz_filter(data: bytes) -> None:
    """A filter block: any answer, no other error."""
    try:
        reader = FilterBlockReader(BloomFilterPolicy(10), data)
    except Error:
        return
    for offset in (0, 2047, 2048, 10_000, 1 << 40, (1 << 63) - 1):
        reader.may_match(offset, KeyHashes(b"key"))
        reader.filter_for(offset)


def fuzz_filter64(data: bytes) -> None:
    """A filter of 64-bit hashes, fuse or Bloom: any answer, the same wherever it lies."""
    for key_hash in (0, 1, (1 << 31) - 1, 1 << 31, (1 << 62) - 1, len(data) * 0x1234567):
        answer = filter64_may_match(key_hash, b"." + data + b".", 1, 1 + len(data))
        expect(filter64_may_match(key_hash, data, 0, len(data)) == answer, "its place matters")
        look = look_at_fuse(key_hash, data)
        if look is not None:
            value = 0
            for one in look.values:
                value ^= one
            expect((value == look.fingerprint) == answer, "explain reads another filter")
        filter64_positions(key_hash, data)


def fuzz_compression(data: bytes) -> None:
    """A compressed block: never more than the bound."""
    if not data:
        return
    try:
        plain = decompress(data[1:], data[0] % 8, MOST)
    except Error:
        return
    expect(len(plain) <= MOST or data[0] % 8 == NO_COMPRESSION, "beyond the bound")


# What a live owner writes beside its store


def fuzz_trace(data: bytes) -> None:
    """A trace, as it is and with right checksums: operations, or damage with its place."""
    for content in (data, with_log_checksums(data)):
        try:
            for record in TraceReader(file_of(content)):
                expect(record.operation in OPERATIONS, "an operation that there is not")
                expect(min(record.start, record.duration, record.operations) >= 0, "a past time")
        except CorruptionError as error:
            expect(error.path is not None and error.offset is not None, "damage without a place")


def fuzz_published(data: bytes) -> None:
    """What an owner publishes: read, it is written as it was."""
    with MemoryEnv().open_directory("/") as directory:
        with directory.create("STATS.json") as file:
            file.append(data)
        try:
            published = read_owner(directory).published
        except CorruptionError:
            return
    if published is not None:
        again = encode(published)
        expect(encode(decode(again)) == again, "other counters once they are written again")


# Stores


def fuzz_store(data: bytes) -> None:
    """MANIFEST and log of a store, with right checksums: it opens or does not, and stays so."""
    cut = int.from_bytes(data[:2], "little")
    manifest, log = with_log_checksums(data[2 : 2 + cut]), with_log_checksums(data[2 + cut :])
    env = MemoryEnv()
    with env.open_directory("/db", create=True) as directory:
        for name, content in (
            ("CURRENT", b"MANIFEST-000002\n"), ("MANIFEST-000002", manifest), ("000003.log", log),
        ):  # fmt: skip
            with directory.create(name) as file:
                file.append(content)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RecoveryWarning)  # damaged logs are the rule here
        open_three_times(env)


def open_three_times(env: MemoryEnv) -> None:
    """Read-only, to write, and read-only again: the last two find the same."""
    answers = []
    for read_only in (True, False, True):
        try:
            with DB("/db", env=env, read_only=read_only, background="thread") as db:
                db.check()
                answers.append(list(db))
        except Error:
            answers.append([])
            if read_only and len(answers) == 1:
                continue
            return
    expect(answers[1] == answers[2], "another store once it is opened again")


# Requests to the server


def fuzz_requests(data: bytes) -> None:
    """Requests: the same, or the same refusal, as a whole, byte by byte, and in other chunks."""
    cuts = [at for at in range(1, len(data)) if data[at] * 7 % 5 == 0]
    expected = requests_in([data])
    expect(requests_in([data[at : at + 1] for at in range(len(data))]) == expected, "byte by byte")
    bounds = [0, *cuts, len(data)]
    chunks = [data[start:stop] for start, stop in itertools.pairwise(bounds)]
    expect(requests_in(chunks) == expected, "in chunks there are other requests")


def requests_in(chunks: list[bytes]) -> tuple[list[list[bytes]], str, int]:
    """The requests of a stream, why it is none any more, and how many bytes are left over."""
    reader = RequestReader()
    found: list[list[bytes]] = []
    try:
        for chunk in chunks:
            reader.feed(chunk)
            while (request := reader.next_request()) is not None:
                expect(request != [], "an empty request")
                found.append(request)
    except ProtocolError as error:
        return found, str(error), 0
    return found, "", reader.buffered


# What a shard set is made of


def fuzz_meta(data: bytes) -> None:
    """META, as it is and with a right checksum: read, it is written as it was."""
    for content in (data, data[:-4] + encode_fixed32(masked_crc32c(data[:-4]))):
        try:
            files = decode_meta(content)
        except CorruptionError as error:
            expect(error.offset is not None, "damage without a place")
            continue
        expect(decode_meta(encode_meta(files)) == files, "other files once they are written again")
        for file in files:
            ends = [piece.offset + len(piece.data) for piece in file.pieces]
            starts = [piece.offset for piece in file.pieces]
            expect(all(end <= file.size for end in ends), "a piece beyond its file")
            expect(all(a <= b for a, b in zip(ends, starts[1:], strict=False)), "pieces overlap")


def fuzz_version(data: bytes) -> None:
    """A version of a set, as it is and with a right seal: read, it is written and read again."""
    cut = data.rfind(b',\n "sha256": ')
    head = data[:cut] if cut > 0 else data
    sealed = head + f',\n "sha256": "{hashlib.sha256(head).hexdigest()}"\n}}\n'.encode()
    for content in (data, sealed):
        try:
            document = VersionDocument.decode(content, "url")
        except CorruptionError as error:
            expect(error.path == "url", "damage without a name")
            continue
        again = VersionDocument.decode(document.encode(), "url")
        expect(again == document, "another version once it is written again")
        for name, _ in document.objects():
            expect(name.startswith("shards/") and ".." not in name.split("/"), "a name outside")


def fuzz_pairs(data: bytes) -> None:
    """A blob of pairs, as it is and with a right checksum: read, it is written as it was."""
    for content in (data, encode_fixed32(crc32c(data[4:])) + data[4:]):
        try:
            keys, values = unpack_pairs(content)
        except CorruptionError:
            continue
        expect(pack_columns(keys, values) == content, "another blob once it is written again")


def fuzz_run(data: bytes) -> None:
    """A run: pairs, or damage with its name."""
    with LocalObjects(MemoryEnv(), "/set", True) as objects:
        objects.put("run", data)
        run = Run("run", len(data), b"", b"", 0, ())
        try:
            for keys, values in RunReader(objects, run, b"b", b"y", 100).chunks():
                expect(len(keys) == len(values), "keys without values")
        except CorruptionError as error:
            expect("run" in str(error), "damage without a name")


def fuzz_page(data: bytes) -> None:
    """A page of the cache on disk: that page, or damage."""
    key = page_key("an object", 7)
    for content in (data, data[:4] + encode_fixed32(masked_crc32c(data[8:])) + data[8:]):
        try:
            expect(encode_page(key, decode_page(content, key)) == content, "another page")
        except CorruptionError:
            continue


TARGETS: dict[str, Callable[[bytes], None]] = {
    "batch": fuzz_batch,
    "block": fuzz_block,
    "compression": fuzz_compression,
    "filter": fuzz_filter,
    "filter64": fuzz_filter64,
    "fragments": fuzz_fragments,
    "log": fuzz_log,
    "meta": fuzz_meta,
    "page": fuzz_page,
    "pairs": fuzz_pairs,
    "published": fuzz_published,
    "requests": fuzz_requests,
    "run": fuzz_run,
    "store": fuzz_store,
    "table": fuzz_table,
    "trace": fuzz_trace,
    "version": fuzz_version,
    "version-edit": fuzz_version_edit,
}
if SHARES:  # stores are shared
    TARGETS |= {"answers": fuzz_answers, "members": fuzz_members}
