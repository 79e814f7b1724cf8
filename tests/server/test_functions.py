"""Which libraries a store keeps, and what it has of their functions."""

from __future__ import annotations

import pytest
from ticks import engine_of, open_store

from lsmkv import MemoryEnv
from lsmkv.server.encoding import LIBRARY
from lsmkv.server.functions import Function, Functions, Library
from lsmkv.server.resp import CommandError

SOURCE = b"#!lua name=one\nredis.register_function(...)"


def library(name: bytes, *functions: bytes) -> Library:
    registered = b"".join(b"%b 0 - " % function for function in functions)
    return Library(b"#!lua name=%b\ncode" % name, registered)


def test_a_record_has_the_source_and_what_it_registers() -> None:
    text = b"f 1 - g 18 0 h 0 7 a b - 1i 31 - "
    one = Library(SOURCE, text)
    assert one.encode() == b"\0\0\0\x21" + text + SOURCE
    every = ("no-writes", "allow-oom", "allow-stale", "no-cluster", "allow-cross-slot-keys")
    assert one.functions == [
        Function(b"f", ("no-writes",), None),
        Function(b"g", ("allow-oom", "allow-cross-slot-keys"), b""),
        Function(b"h", (), b"a b - 1"),
        Function(b"i", every, None),
    ]
    again = Library.decode(one.encode())
    assert (again.name, again.source, again.functions) == (b"one", SOURCE, one.functions)
    assert again.body == b"\nredis.register_function(...)"


@pytest.mark.parametrize(
    "text",
    [
        *(b"f", b"f 0 ", b"f 0 -", b"f 32 - ", b"f 0 5 abc", b"a-b 0 - ", b"f 0 - x", b"f -1 - "),
        *(b"f 01 - ", b"f 0 03 abc"),
    ],
)
def test_text_that_no_interpreter_of_ours_has_sent_is_refused(text: bytes) -> None:
    with pytest.raises(CommandError, match="ERR Error registering functions: invalid text"):
        Library(SOURCE, text)


def test_a_record_that_is_cut_anywhere_is_refused_or_shorter() -> None:
    record = library(b"one", b"f", b"g").encode()
    for end in range(len(record)):
        try:
            assert Library.decode(record[:end]).name == b"one"
        except CommandError:
            pass


def test_names_that_differ_in_case_alone_are_the_same() -> None:
    """Redis 7.0 keeps both in one library, and calls either."""
    with pytest.raises(CommandError, match="Function already exists in the library"):
        library(b"one", b"f", b"F")


def test_what_is_undone_is_forgotten() -> None:
    with open_store(MemoryEnv()) as db:
        space = engine_of(db).space
        functions = Functions(space)
        functions.replace(set(), [library(b"one", b"f")])
        space.keep()
        functions.replace({b"one"}, [library(b"two", b"F", b"g")])
        assert functions.find(b"g") is not None
        space.undo()
        assert functions.find(b"g") is None
        found = functions.find(b"F")
        assert found is not None
        assert (found[0].name, found[1].name, len(functions)) == (b"one", b"f", 1)
        # the number of changes is the same again
        functions.replace({b"one"}, [library(b"three", b"h")])
        assert list(functions.libraries) == [b"three"]


def test_another_process_that_has_the_store_sees_changes() -> None:
    """As one with --read-only does."""
    with open_store(MemoryEnv()) as db:
        space = engine_of(db).space
        writer, reader = Functions(space), Functions(space)
        for functions in ([b"f"], [b"g", b"h"]):
            writer.replace(set(writer.libraries), [library(b"one", *functions)])
            assert [reader.find(name) is not None for name in functions] == [True] * len(functions)
            assert len(reader) == len(functions)
            assert reader.size == writer.size > 0
        writer.replace({b"one"}, [])
        assert (reader.find(b"g"), reader.libraries) == (None, {})


def test_all_or_nothing_is_replaced() -> None:
    with open_store(MemoryEnv()) as db:
        space = engine_of(db).space
        functions = Functions(space)
        functions.replace(set(), [library(b"one", b"f"), library(b"two", b"g")])
        with pytest.raises(CommandError, match="ERR Function G already exists"):
            functions.replace({b"one"}, [library(b"one", b"h"), library(b"three", b"G")])
        assert functions.find(b"f") is not None
        assert space.records.get(LIBRARY + b"three") is None
