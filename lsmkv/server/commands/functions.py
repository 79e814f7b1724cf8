"""FUNCTION, FCALL and FCALL_RO: libraries of functions in Lua.

A library runs in the loop's thread when it is loaded, for at most half a second, as in Redis.  Its
functions run as scripts do.
"""

from __future__ import annotations

import time
from functools import partial

from lsmkv.server.commands.dumping import sealed, verified
from lsmkv.server.commands.scripts import key_count
from lsmkv.server.functions import Library
from lsmkv.server.globs import matcher
from lsmkv.server.options import in_error
from lsmkv.server.rdb import RdbError, Reader, encoded_string
from lsmkv.server.registry import command, container
from lsmkv.server.resp import (
    OK,
    CommandError,
    Members,
    Reply,
    Simple,
    busy_error,
    wrong_subcommand,
)
from lsmkv.server.session import Evaluation, Session

_TYPE = b"\xf5"
"""A library in a payload, before its source as a string: 245 of the RDB format."""
_NO_COUNT = "ERR Bad number of keys provided"
_WRITES = "ERR Can not execute a script with write flag using *_ro command."


def _fcall(only_reads: bool, session: Session, args: list[bytes]) -> Reply:
    service = session.service
    if service.monitors:  # before the commands of the function
        service.show_request(session, args)
    found = service.functions.find(args[1])
    if found is None:
        raise CommandError("ERR Function not found")
    first = 3 + key_count(args, _NO_COUNT)
    library, function = found
    declared = "no-writes" in function.flags
    if only_reads and not declared:
        raise CommandError(_WRITES)
    keys, arguments = args[3:first], args[first:]
    return service.scripts.evaluate(
        Evaluation(session, args, library, keys, arguments, declared, function=function.name)
    )


command("FCALL", -3, group="scripting", summary="Call a function, with some keys and arguments.")(
    partial(_fcall, False)
)
command(
    "FCALL_RO", -3, "readonly", group="scripting", summary="Call a function that may not write."
)(partial(_fcall, True))

container("FUNCTION", group="scripting")


def _run(session: Session, args: list[bytes], library: Library) -> CommandError | None:
    """Run a library.  Returns the error that this has ended with, which is counted."""
    registered = session.service.scripts.evaluate(
        Evaluation(session, args, library, [], [], True, function=b"")
    )
    if isinstance(registered, CommandError):
        return registered
    library.register(registered if isinstance(registered, bytes) else b"")
    return None


@command("FUNCTION LOAD", -3, "write", group="scripting", usage="[REPLACE] <FUNCTION CODE>")
def function_load(session: Session, args: list[bytes]) -> Reply:
    """Run a library, keep it with the functions that it registers, and return its name."""
    for word in args[2:-1]:
        if word.upper() != b"REPLACE":
            raise CommandError(f"ERR Unknown option given: {in_error(word)}")
    functions, library = session.service.functions, Library(args[-1])
    functions.refresh()
    if len(args) == 3 and library.name in functions.libraries:
        raise CommandError(f"ERR Library '{library.name.decode()}' already exists")
    error = _run(session, args, library)
    if error is not None:
        return error
    functions.replace({library.name}, [library])
    return library.name


@command("FUNCTION DELETE", 3, "write", group="scripting", usage="<LIBRARY NAME>")
def function_delete(session: Session, args: list[bytes]) -> Reply:
    """Remove a library and its functions."""
    functions = session.service.functions
    functions.refresh()
    if args[2] not in functions.libraries:
        raise CommandError("ERR Library not found")
    functions.replace({args[2]}, [])
    return OK


@command("FUNCTION FLUSH", -2, "write", group="scripting", usage="[ASYNC|SYNC]")
def function_flush(session: Session, args: list[bytes]) -> Reply:
    """Remove all libraries."""
    if len(args) > 3:
        raise wrong_subcommand(args)
    if len(args) == 3 and args[2].upper() not in (b"ASYNC", b"SYNC"):
        raise CommandError("ERR FUNCTION FLUSH only supports SYNC|ASYNC option")
    functions = session.service.functions
    functions.refresh()
    functions.replace(set(functions.libraries), [])
    session.service.scripts.forget()
    return OK


@command("FUNCTION LIST", -2, group="scripting", usage="[LIBRARYNAME PATTERN] [WITHCODE]")
def function_list(session: Session, args: list[bytes]) -> Reply:
    """Return the libraries, each with its functions."""
    pattern: bytes | None = None
    with_code = False
    words = iter(args[2:])
    for word in words:
        if word.upper() == b"WITHCODE" and not with_code:
            with_code = True
        elif word.upper() == b"LIBRARYNAME" and pattern is None:
            pattern = next(words, None)
            if pattern is None:
                raise CommandError("ERR library name argument was not given")
        else:
            raise CommandError(f"ERR Unknown argument {in_error(word)}")
    matches = matcher(b"*" if pattern is None else pattern.lower())
    functions = session.service.functions
    functions.refresh()
    return [
        _described(one, with_code)
        for name, one in sorted(functions.libraries.items())
        if matches(name.lower())
    ]


def _described(library: Library, with_code: bool) -> Reply:
    functions: list[Reply] = [
        {
            b"name": one.name,
            b"description": one.description,
            b"flags": Members(map(Simple, one.flags)),
        }
        for one in library.functions
    ]
    found: dict[bytes, Reply] = {
        b"library_name": library.name,
        b"engine": b"LUA",
        b"functions": functions,
    }
    if with_code:
        found[b"library_code"] = library.source
    return found


@command("FUNCTION STATS", 2, group="scripting")
def function_stats(session: Session, args: list[bytes]) -> Reply:
    """Return which script or function runs, and how many libraries and functions there are."""
    functions, busy = session.service.functions, session.service.busy
    running: Reply = None
    if busy is None:
        functions.refresh()
    elif not busy.script.is_library:
        raise busy_error(False)
    else:  # it has the keyspace to itself
        milliseconds = int(1000 * (time.perf_counter() - busy.started))
        running = {b"name": busy.name.encode(), b"command": busy.request}
        running[b"duration_ms"] = milliseconds
    counts = {b"libraries_count": len(functions.libraries), b"functions_count": len(functions)}
    return {b"running_script": running, b"engines": {b"LUA": counts}}


@command("FUNCTION KILL", 2, group="scripting")
def function_kill(session: Session, args: list[bytes]) -> Reply:
    """End the function that runs, unless it has written."""
    session.service.scripts.kill(function=True)
    return OK


@command("FUNCTION DUMP", 2, group="scripting")
def function_dump(session: Session, args: list[bytes]) -> Reply:
    """Return all libraries in the form that FUNCTION RESTORE reads, here and in Redis."""
    functions = session.service.functions
    functions.refresh()
    libraries = functions.libraries.values()
    return sealed(b"".join(_TYPE + encoded_string(one.source) for one in libraries))


@command(
    "FUNCTION RESTORE",
    -3,
    "write",
    group="scripting",
    usage="<PAYLOAD> [FLUSH|APPEND|REPLACE]",
)
def function_restore(session: Session, args: list[bytes]) -> Reply:
    """Load the libraries that FUNCTION DUMP has returned, here or in Redis: all, or none."""
    if len(args) > 4:
        raise wrong_subcommand(args)
    policy = args[3].upper() if len(args) == 4 else b"APPEND"
    if policy not in (b"FLUSH", b"APPEND", b"REPLACE"):
        raise CommandError(
            "ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE."
        )
    reader, added = Reader(verified(args[2])), dict[bytes, Library]()
    while reader.left:
        if reader.take(1) != _TYPE:
            raise CommandError("ERR given type is not a function")
        try:
            library = Library(reader.string())
        except (RdbError, ValueError):
            raise CommandError("ERR Failed loading library payload") from None
        error = _run(session, args, library)
        if error is not None:
            return error
        if library.name in added:
            raise CommandError(f"ERR Library '{library.name.decode()}' already exists")
        added[library.name] = library
    functions = session.service.functions
    functions.refresh()
    removed = set(functions.libraries if policy == b"FLUSH" else added)
    if policy == b"APPEND":
        for name in added:
            if name in functions.libraries:
                raise CommandError(f"ERR Library {name.decode()} already exists")
    functions.replace(removed, list(added.values()))
    return OK
