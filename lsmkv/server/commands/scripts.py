"""EVAL, EVALSHA, EVAL_RO, EVALSHA_RO and SCRIPT."""

from __future__ import annotations

from functools import partial

from lsmkv.server.numbers import NOT_AN_INTEGER, to_int
from lsmkv.server.registry import command, container
from lsmkv.server.resp import OK, CommandError, Reply
from lsmkv.server.session import Evaluation, Session
from lsmkv.server.sources import Script

_NO_SCRIPT = "NOSCRIPT No matching script. Please use EVAL."


def key_count(args: list[bytes], not_integer: str = NOT_AN_INTEGER) -> int:
    """The number of keys in a request.  Raises :class:`CommandError` if the request has fewer."""
    count = to_int(args[2], not_integer)
    if count > len(args) - 3:
        raise CommandError("ERR Number of keys can't be greater than number of args")
    if count < 0:
        raise CommandError("ERR Number of keys can't be negative")
    return count


def _evaluate(session: Session, args: list[bytes], script: Script, only_reads: bool) -> Reply:
    first = 3 + key_count(args)
    only_reads = only_reads or script.only_reads
    evaluation = Evaluation(session, args, script, args[3:first], args[first:], only_reads)
    return session.service.scripts.evaluate(evaluation)


def _eval(only_reads: bool, session: Session, args: list[bytes]) -> Reply:
    service = session.service
    if service.monitors:  # before the commands of the script
        service.show_request(session, args)
    key_count(args)
    return _evaluate(session, args, service.sources.of_source(args[1]), only_reads)


def _evalsha(only_reads: bool, session: Session, args: list[bytes]) -> Reply:
    if session.service.monitors:
        session.service.show_request(session, args)
    script = session.service.sources.find(args[1])
    if script is None:
        raise CommandError(_NO_SCRIPT)
    return _evaluate(session, args, script, only_reads)


for _name, _run, _only_reads, _summary in (
    ("EVAL", _eval, False, "Run a Lua script, with some keys and arguments."),
    ("EVALSHA", _evalsha, False, "Run a script that is known, by its SHA-1."),
    ("EVAL_RO", _eval, True, "Run a Lua script that may not write."),
    ("EVALSHA_RO", _evalsha, True, "Run a script that is known and may not write, by its SHA-1."),
):
    _flags = "readonly" if _only_reads else ""
    command(_name, -3, _flags, group="scripting", summary=_summary)(partial(_run, _only_reads))


container("SCRIPT", group="scripting")


@command("SCRIPT LOAD", 3, group="scripting", usage="<script>")
def script_load(session: Session, args: list[bytes]) -> Reply:
    """Compile and keep a script, and return its SHA-1."""
    service = session.service
    script = service.sources.of_source(args[2])
    return service.scripts.evaluate(
        Evaluation(session, args, script, [], [], True, only_loads=True)
    )


@command("SCRIPT EXISTS", -3, group="scripting", usage="<sha1> [<sha1> ...]")
def script_exists(session: Session, args: list[bytes]) -> Reply:
    """Return whether each of some scripts is known."""
    return [int(session.service.sources.find(sha) is not None) for sha in args[2:]]


@command("SCRIPT FLUSH", -2, group="scripting", usage="[ASYNC|SYNC]")
def script_flush(session: Session, args: list[bytes]) -> Reply:
    """Forget all scripts."""
    if len(args) > 3 or (len(args) == 3 and args[2].upper() not in (b"ASYNC", b"SYNC")):
        raise CommandError("ERR SCRIPT FLUSH only support SYNC|ASYNC option")
    session.service.sources.clear()
    session.service.scripts.forget()
    return OK


@command("SCRIPT KILL", 2, group="scripting")
def script_kill(session: Session, args: list[bytes]) -> Reply:
    """End the script that runs, unless it has written."""
    session.service.scripts.kill()
    return OK
