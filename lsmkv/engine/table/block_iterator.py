"""The block iterator: the entries of a block that are visible at a sequence.

The keys are internal keys (:mod:`lsmkv.engine.format.keys`): the newest version of a user key comes
first, and the first one at or before the reader's sequence is visible.  A block iterator belongs to
one scan and one thread.  It goes forward only; a reverse scan reads the entries of a block in
pieces, the last restart interval first.

Fast paths: a seek builds no key before its target.  Nor is a key built for a deletion that hides
nothing (``skip_deletions``: 7 ns an entry instead of 41) or for an entry that a newer source has
deleted (``skip_hidden``: 25 ns instead of 69).
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Any, Final

from librt.strings import read_i64_le

from lsmkv.engine.errors import CorruptionError
from lsmkv.engine.format.key_order import KeyOrder
from lsmkv.engine.format.keys import KIND_DELETION, KIND_VALUE, MAX_SEQUENCE, TAG_SIZE
from lsmkv.engine.table.block import Block
from lsmkv.engine.table.deletion_run import DeletionRun, add_deletion
from lsmkv.engine.util.search import common

if TYPE_CHECKING:
    from mypy_extensions import i64

ALL: Final = 1 << 40
"""A count: all remaining entries."""

PAIRS: Final = 0
"""A user key and its value, ``(key, value)``; no deletions."""
WITH_DELETIONS: Final = 1
"""As ``PAIRS``, and ``(key, None)`` for a deletion, or a run for many in a row
(:mod:`lsmkv.engine.table.deletion_run`)."""
WITH_SEQUENCES: Final = 2
"""As ``WITH_DELETIONS``, followed by the sequence: ``(key, value or None, sequence)``.  Runs have
the sequences of their deletions."""


class BlockIterator:
    """Returns the visible entries of a block, in order.

    Call order: ``seek_to_restart? (skip_deletions? skip_hidden? next_entries)*``.  All raise
    :class:`CorruptionError` for damage that the checksum does not show.
    """

    __slots__ = (
        "_at",
        "_block",
        "_bytewise",
        "_data",
        "_end",
        "_order",
        "_sequence",
        "_spent",
        "_tag",
        "settled",
        "user_key",
    )

    def __init__(
        self,
        block: Block,
        order: KeyOrder,
        sequence: i64,
        start: bytes | None = None,
        before: bytes = b"",
        settled: bool = False,
    ) -> None:
        """Begins at the first user key >= ``start``; versions after ``sequence`` are hidden.

        ``before`` is the last user key of the previous block, if its versions may continue here;
        ``settled`` says that a version of it was visible, so that older ones are skipped.
        """
        self._block = block
        self._order = order
        self._bytewise = order.is_bytewise
        self._data = block.data
        self._end: i64 = block.end
        self._sequence: i64 = sequence
        self._at: i64 = 0
        self._spent: i64 = 0
        self._tag = b""
        self.user_key = before
        """The last user key that was read."""
        self.settled = settled
        """True if a version of it was visible."""
        if start is not None:
            if self._bytewise:
                self._seek(start)
            else:
                self.user_key = start
                if self._end > 0:
                    self._seek_whole(start, block.restart_before(start, order))
        elif self._end > 0 and self._data[0] != 0:
            raise CorruptionError("the first key is incomplete", None, 0)

    @property
    def done(self) -> bool:
        """True if no entry is left."""
        return self._at >= self._end

    def from_start(self) -> BlockIterator:
        """An iterator over the same block, from its beginning."""
        return BlockIterator(self._block, self._order, self._sequence)

    def seek_to_restart(self, stop: bytes | None) -> bytes:
        """Go to the last restart point whose user key is below ``stop``, or to the last one if that
        is None, and then past the versions of that key.  Call it before :meth:`next_entries`.

        Returns that user key.  If it is empty, or the block's first, the iterator stays where it
        is, and this returns the empty key.
        """
        block = self._block
        at: i64 = block.last_restart if stop is None else block.restart_before(stop, self._order)
        if at == 0:
            return b""
        shared, unshared, _size, key_at = block.header(at)
        if shared != 0:
            raise CorruptionError("the key of a restart point is incomplete", None, at)
        if unshared < TAG_SIZE:
            raise CorruptionError("a key shorter than its tag", None, at)
        user_key = self._data[key_at : key_at + unshared - TAG_SIZE]
        if user_key:
            self._at = at
            self.user_key = user_key
            self.settled = True
        return user_key

    def skip_deletions(self, before: bytes | None) -> None:
        """Step over deletions of keys before ``before``, or of any keys if it is None, and over the
        older versions that they hide, up to the first other entry.

        Only in the bytewise order.  An entry that shares part of a tag also ends it.
        """
        data = self._data
        end = self._end
        bound = self._sequence
        bounded = bound < MAX_SEQUENCE
        spent = self._spent
        most: i64 = self._block.max_shared
        user_key = self.user_key
        known: i64 = len(user_key)
        matched: i64 = 0  # bytes that the last key has in common with ``before``
        wanted: i64 = 0
        if before is not None:
            if before <= user_key:
                return
            wanted = len(before)
            limit: i64 = min(known, wanted)
            matched = common(user_key, 0, before, 0, limit)
        at = self._at
        base = at  # where the last key can be built from
        last: i64 = -1  # the last entry that was stepped over
        while at < end:
            shared, unshared, size, begin = self._block.header(at)
            tag = begin + unshared - TAG_SIZE
            if (
                unshared < TAG_SIZE
                or shared > known
                or spent > most
                or data[tag] != 0
                or (bounded and _sequence_at(data, tag) > bound)
            ):
                break
            known = shared + unshared - TAG_SIZE
            # If it shares more than that, it compares as the entry before.
            if before is not None and shared <= matched:
                limit = min(known, wanted)
                begin -= shared
                matched = common(data, begin, before, shared, limit)
                if matched == wanted or (
                    matched < limit and data[begin + matched] > before[matched]
                ):
                    break
            if shared == 0:
                base = at
            spent += shared
            last = at
            at = tag + TAG_SIZE + size
        if last < 0:
            return
        self._at = at
        self._spent = spent
        self.settled = True
        at = base
        while at <= last:
            shared, unshared, size, begin = self._block.header(at)
            tag = begin + unshared - TAG_SIZE
            user_key = user_key[:shared] + data[begin:tag]
            at = tag + TAG_SIZE + size
        self.user_key = user_key
        self._tag = data[tag : tag + TAG_SIZE]

    def skip_hidden(self, run: DeletionRun, by_sequence: bool) -> None:
        """Step over entries of keys that a newer source has deleted, up to the first other one.

        Only in the bytewise order.  ``by_sequence``: the source of the run is not known to be
        newer, so the sequences decide.  An entry that shares part of a tag also ends it.
        """
        data = self._data
        end = self._end
        at = self._at
        keys = run.keys
        sequences = run.sequences if by_sequence else None
        count: i64 = len(keys)
        most: i64 = self._block.max_shared
        spent = self._spent
        key = self.user_key
        known: i64 = len(key)
        found: i64 = -1  # the deletion of the last key
        last: i64 = -1  # the tag of the last entry that was stepped over
        hidden_by: i64 = 0  # the deletion of that entry's key
        while at < end:
            shared, unshared, size, begin = self._block.header(at)
            tag = begin + unshared - TAG_SIZE
            if unshared < TAG_SIZE or shared > known or spent > most or data[tag] > 1:
                break
            length = shared + tag - begin
            if found < 0 or length != known or not _ends_in(key, shared, data, begin, tag):
                # Another key: usually the one that was deleted next.
                following = found + 1
                if (
                    found < 0
                    or following == count
                    or len(keys[following]) != length
                    or common(key, 0, keys[following], 0, shared) < shared
                    or not _ends_in(keys[following], shared, data, begin, tag)
                ):
                    sought = key[:shared] + data[begin:tag]
                    following = bisect_left(keys, sought, following)
                    if following == count or keys[following] != sought:
                        break
                found = following
                key = keys[found]
                known = length
            if sequences is not None and _sequence_at(data, tag) >= sequences[found]:
                break
            spent += shared
            last = tag
            hidden_by = found
            at = tag + TAG_SIZE + size
        if last < 0:
            return
        self._at = at
        self._spent = spent
        self.settled = True
        self.user_key = keys[hidden_by]
        self._tag = data[last : last + TAG_SIZE]

    def next_entries(self, count: i64, form: i64 = PAIRS) -> list[Any]:
        """The next ``count`` visible entries, in this form; fewer only at the end of the block."""
        data = self._data
        end = self._end
        bound = self._sequence
        with_sequences = form == WITH_SEQUENCES
        needs_sequences = with_sequences or bound < MAX_SEQUENCE
        spent = self._spent
        most: i64 = self._block.max_shared
        at = self._at
        user_key = self.user_key
        known: i64 = len(user_key)
        prefix = b""  # the last key begins with it, and so, usually, does the next one
        cut: i64 = 0  # the length of the prefix
        tag: i64 = -1  # offset of the last key's tag, if it is complete there
        settled = self.settled
        found: list[Any] = []
        in_a_row: i64 = 0  # deletions since the last value
        run: DeletionRun | None = None  # the last of these
        while at < end and count > 0:
            # The lengths, as Block.header reads them, which here takes no call.
            shared: i64 = data[at]
            unshared: i64 = data[at + 1]
            size: i64 = data[at + 2]
            begin = at + 3
            if (shared | unshared | size) >= 128 or begin + unshared + size > end:
                shared, unshared, size, begin = self._block.header(at)
            if spent > most and shared > 0:
                raise CorruptionError("keys share more bytes than a block may hold", None, begin)
            spent += shared
            value_at = begin + unshared
            at = value_at + size
            # The key and its tag.
            last = user_key
            sequence: i64 = 0
            if shared <= known and unshared >= TAG_SIZE:
                tag = value_at - TAG_SIZE
                known = shared + tag - begin
                if shared != cut:
                    prefix = user_key[:shared]
                    cut = shared
                user_key = prefix + data[begin:tag]
                kind: i64 = data[tag]
                if needs_sequences:
                    sequence = _sequence_at(data, tag)
            else:
                if tag >= 0:
                    self._tag = data[tag : tag + TAG_SIZE]
                user_key = self._key_with_shared_tag(user_key, shared, begin, value_at)
                known = len(user_key)
                prefix = b""
                cut = 0
                tag = -1
                kind = self._tag[0]
                sequence = _sequence_at(self._tag, 0)
            # The first version of a key that the reader may see is the visible one.
            if settled and (
                user_key == last or (not self._bytewise and self._order.is_same(user_key, last))
            ):
                continue
            settled = sequence <= bound
            if not settled:
                continue
            if kind == KIND_VALUE:
                count -= 1
                in_a_row = 0
                if with_sequences:
                    found.append((user_key, data[value_at:at], sequence))
                else:
                    found.append((user_key, data[value_at:at]))
            elif kind != KIND_DELETION:
                raise CorruptionError(f"an internal key of kind {kind}", None, value_at)
            elif form != PAIRS:
                count -= 1
                in_a_row += 1
                run = add_deletion(found, run, in_a_row, user_key, sequence, with_sequences)
        if tag >= 0:
            self._tag = data[tag : tag + TAG_SIZE]
        self._at = at
        self._spent = spent
        self.user_key = user_key
        self.settled = settled
        return found

    def _key_with_shared_tag(self, before: bytes, shared: i64, begin: i64, end: i64) -> bytes:
        """The user key of an entry that shares a part of the tag before, too, as an older version
        of a key may.

        ``before`` is the user key of the entry before, whose tag is in ``_tag``; the entry's own
        tag is there afterwards.  The suffix of its key is from ``begin`` to ``end``.
        """
        whole = before + self._tag
        if shared > len(whole):
            raise CorruptionError("an entry shares more than the previous key has", None, begin)
        whole = whole[:shared] + self._data[begin:end]
        size: i64 = len(whole) - TAG_SIZE
        if size < 0:
            raise CorruptionError("a key shorter than its tag", None, begin)
        self._tag = whole[size:]
        return whole[:size]

    def _seek(self, start: bytes) -> None:
        """Go to the first key >= ``start``, without building keys.

        The number of bytes that an entry shares with the one before mostly decides how it compares.
        """
        data = self._data
        end = self._end
        self.user_key = start
        if end == 0:
            return
        at: i64 = self._block.restart_before(start, self._order)
        if data[at] != 0:
            raise CorruptionError("the key of a restart point is incomplete", None, at)
        begun = at
        wanted: i64 = len(start)
        matched: i64 = 0  # bytes that the key before has in common with ``start``
        known: i64 = 0  # its length
        while at < end:
            here = at
            shared, unshared, size, at = self._block.header(at)
            length = shared + unshared - TAG_SIZE
            if shared > matched:
                if matched == known and length != matched:
                    self._seek_whole(start, begun)  # it shares a part of the tag before
                    return
                # Otherwise it compares as the entry before.
            elif length < shared:
                self._seek_whole(start, begun)
                return
            else:
                limit = length if length < wanted else wanted
                begin = at - shared
                matched = common(data, begin, start, shared, limit)
                if matched < limit:
                    if data[begin + matched] > start[matched]:
                        self._at = here
                        return
                elif length >= wanted:
                    self._at = here
                    return
            known = length
            at += unshared + size
        self._at = at

    def _seek_whole(self, start: bytes, at: i64) -> None:
        """Like :meth:`_seek`, from a restart point on, but builds every key.  It is used with other
        comparators, and for blocks whose shared lengths do not decide."""
        order = self._order
        whole = b""
        while at < self._end:
            here = at
            shared, unshared, size, at = self._block.header(at)
            if shared > len(whole):
                raise CorruptionError("an entry shares more than the previous key has", None, at)
            before = whole
            whole = whole[:shared] + self._data[at : at + unshared]
            known: i64 = len(whole) - TAG_SIZE
            if known < 0:
                raise CorruptionError("a key shorter than its tag", None, at)
            compared = order.compare(whole[:known], start)
            if compared > 0 or (compared == 0 and not self.settled):
                if before:
                    known = len(before) - TAG_SIZE
                    self.user_key = before[:known]
                    self._tag = before[known:]
                self._at = here
                return
            at += unshared + size
        self._at = at


def _ends_in(key: bytes, size: i64, data: bytes, begin: i64, end: i64) -> bool:
    """Return True if a key consists of its first ``size`` bytes and exactly these bytes."""
    while begin < end:
        here: i64 = key[size]
        there: i64 = data[begin]
        if here != there:
            return False
        size += 1
        begin += 1
    return True


def _sequence_at(data: bytes, tag: i64) -> i64:
    """The sequence in the tag at an offset."""
    return (read_i64_le(data, tag) >> 8) & MAX_SEQUENCE
