"""The checks of lab 10 that run a commit: with power cuts, and on a failing disk."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import NamedTuple

import lsmkv
from lsmkv.course.failure import require, require_bytes
from lsmkv.course.given import BLOCK_SIZE, Directory
from lsmkv.course.labs.edits import (
    COMPARATOR,
    LAST_SEQUENCE,
    LOG_NUMBER,
    NEW_FILE,
    NEXT_FILE_NUMBER,
    PREV_LOG_NUMBER,
    Field,
    encoded,
    levels_of,
)
from lsmkv.course.labs.flushing import CURRENT, work
from lsmkv.course.labs.formats import frame, table_of, version_key, version_of_store, write
from lsmkv.course.labs.power_cuts import (
    CONTENT,
    NAME,
    PATH,
    Rule,
    Run,
    content_differs,
)
from lsmkv.files import Version, make_name, parse_name
from lsmkv.testing import FaultyEnv, RecordingEnv

LEFT_BEHIND = "000099.ldb", "000100.dbtmp"
"""A table that no version names, and a temporary file, both left by a killed process."""


class Plan(NamedTuple):
    """The files that a recovery has to write: new files by name, and the number of its MANIFEST."""

    files: Mapping[str, bytes]
    manifest_number: int
    tables: frozenset[int]
    """The tables of the new version."""
    log_number: int


def plan_for(
    directory: Directory, entries: Mapping[bytes, bytes | None], last_sequence: int
) -> Plan:
    """A table of the replayed writes, a log for later writes, and a MANIFEST that names both."""
    names = directory.names()
    state = version_of_store(directory)
    first = 1 + max(parsed.number for parsed in map(parse_name, names) if parsed is not None)
    table, log, manifest = first, first + 1, first + 2
    files: dict[str, bytes] = {}
    edit: list[Field] = [
        (LOG_NUMBER, log),
        (PREV_LOG_NUMBER, 0),
        (NEXT_FILE_NUMBER, first + 3),
        (LAST_SEQUENCE, last_sequence),
    ]
    tables = {file.number for level in state.levels for file in level}
    if entries:
        made, files[make_name("table", table)] = newest_table(entries, 0, table, last_sequence)
        edit.append(made)
        tables.add(table)
    files[make_name("log", log)] = b""
    content = frame(encoded(snapshot_of(state)), 0)
    files[make_name("manifest", manifest)] = content + frame(
        encoded(edit), len(content) % BLOCK_SIZE
    )
    return Plan(files, manifest, frozenset(tables), log)


def newest_table(
    entries: Mapping[bytes, bytes | None], level: int, number: int, sequence: int
) -> tuple[Field, bytes]:
    """A table of the newest versions, all with the last sequence: the field that adds it to a
    level, and its bytes."""
    versions = [
        (version_key(key, sequence, entries[key]), entries[key] or b"") for key in sorted(entries)
    ]
    table = table_of(versions)
    return (NEW_FILE, level, number, len(table), versions[0][0], versions[-1][0]), table


def snapshot_of(state: Version) -> list[Field]:
    """One edit with all tables of a state."""
    fields: list[Field] = [(COMPARATOR, (state.comparator or "").encode())]
    for level, files in enumerate(levels_of(state)):
        fields += [(NEW_FILE, level, *file) for file in files]
    return fields


def obsolete_after(names: list[str], plan: Plan) -> list[str]:
    """The files that a store no longer needs once the plan is carried out, by the engine's
    rules."""
    found: list[str] = []
    for name in names:
        parsed = parse_name(name)
        if parsed is None:
            continue
        kind, number = parsed
        if (
            (kind == "table" and number not in plan.tables)
            or (kind == "log" and number < plan.log_number)
            or (kind == "manifest" and number < plan.manifest_number)
            or kind == "temporary"
        ):
            found.append(name)
    return found


class Crashed(NamedTuple):
    """A directory that a killed process has left, and what its recovery has to do."""

    env: lsmkv.MemoryEnv
    plan: Plan
    obsolete: list[str]
    content: Mapping[bytes, bytes]


@functools.cache
def crashed() -> Crashed:
    """A store with a table, two logs, a table that does not belong to it, and a temporary file."""
    job = work()
    env = RecordingEnv(job.env)
    with env.open_directory(PATH) as directory:
        for name in LEFT_BEHIND:
            write(directory, name, b"half done")
        # All keys that the tables and logs ever held: what was deleted is deleted again.
        keys = {b"key%02d" % number for number in range(40)} | job.content.keys()
        plan = plan_for(directory, {key: job.content.get(key) for key in keys}, 99)
        obsolete = obsolete_after(directory.names(), plan)
    return Crashed(env, plan, obsolete, job.content)


def commit_plan(code: ModuleType, directory: Directory, plan: Plan, obsolete: list[str]) -> None:
    """Have the student carry out a plan."""
    code.commit(directory, dict(plan.files), plan.manifest_number, list(obsolete))


def commit_with(code: ModuleType, directory: Directory) -> None:
    """Have the student commit the recovery of the crashed store."""
    commit_plan(code, directory, crashed().plan, crashed().obsolete)


def committing(code: ModuleType) -> str:
    """Check that nothing is lost, whenever the power is cut during a commit."""
    env, plan, obsolete, content = crashed()
    run = Run(env, functools.partial(commit_with, code))
    with run.env.open_directory(PATH) as directory:
        names = directory.names()
        for name, data in plan.files.items():
            require(name in names, f"commit has not made {name}.\n{run.listing()}")
            got = directory.read_file(name, 1 << 20)
            require_bytes(got, data, name, lambda at: "a byte that commit was given")
        got = directory.read_file(CURRENT, 1000) if CURRENT in names else b""
    expected = make_name("manifest", plan.manifest_number).encode() + b"\n"
    require_bytes(got, expected, CURRENT, lambda at: f"character {at} of it", run.listing())
    left = sorted(set(obsolete) & set(names))
    require(not left, f"commit has not removed {', '.join(left)}.\n{run.listing()}")
    states = run.survives(
        lambda env: content_differs(env, PATH, content),
        "Your commit",
        rules(plan, obsolete),
        "New files must be durable before CURRENT names them, and old files are removed last.",
    )
    return f"{states} states that a power cut or a kill can leave"


def rules(plan: Plan, obsolete: list[str]) -> list[Rule]:
    """Return the rules for the order in which files become durable."""
    change = ("rename", CURRENT)
    found: list[Rule] = []
    for name, data in plan.files.items():
        kind = "MANIFEST" if name.startswith("MANIFEST") else name
        if data:
            sentence = (
                f"{name} is not synced before CURRENT names the new MANIFEST: a power cut may"
            )
            found.append(
                Rule(
                    name,
                    CONTENT,
                    change,
                    f"{sentence} leave a store whose {kind} is empty or torn.",
                )
            )
        sentence = f"The directory is not synced between the making of {name} and the change of"
        found.append(
            Rule(name, NAME, change, f"{sentence} CURRENT: the file may be gone after a power cut.")
        )
    for name in obsolete:
        sentence = (
            f"{name} is removed before the new MANIFEST takes effect: until CURRENT durably names"
            " that MANIFEST, all files are needed."
        )
        found.append(Rule(CURRENT, NAME, ("remove", name), sentence))
    return found


def failing(code: ModuleType) -> str:
    """Fail each call on the disk in turn.  Before the change of CURRENT, commit must raise, and
    remove nothing; afterwards it may continue with all other files."""
    env, directory = on_a_faulty_disk()
    before = env.calls
    commit_with(code, directory)
    number = env.calls - before
    for n in range(1, number + 1):
        env, directory = on_a_faulty_disk()
        made = env.calls
        env.fail_at(n)
        try:
            commit_with(code, directory)
            raised = False
        except OSError:
            raised = True
        env.heal()
        judge_failure(env, raised, n, is_in_force(env.history[made : made + n - 1]))
    return f"{number} calls, each of which failed once"


def is_in_force(calls: Sequence[str]) -> bool:
    """True if the change of CURRENT is durable after these calls on the disk."""
    return "rename" in calls and "dir_sync" in calls[calls.index("rename") :]


def judge_failure(env: FaultyEnv, raised: bool, n: int, in_force: bool) -> None:
    """Fail unless the student's commit acted correctly when its n-th call on the disk failed.

    ``in_force``: the change of CURRENT was durable by then.  If lsmkv cannot remove a file, it
    continues with the others, and so may the student.
    """
    if not env.struck:
        return
    call, path = env.struck[0]
    name = path.rpartition("/")[2]
    what = "the sync of the directory" if call == "dir_sync" else f"the {call} of {name}"
    _, _, obsolete, content = crashed()
    with env.open_directory(PATH) as directory:
        names = set(directory.names())
    if in_force:
        left = sorted(set(obsolete) & names - {name})
        require(
            raised or not left,
            f"When {what} fails (call {n} on the disk), your commit returns, and leaves"
            f" {', '.join(left)}.\nThe new MANIFEST is in effect by then, so you may continue, but"
            " with all the other files. Or let the OSError through.",
        )
    elif call != "remove":
        gone = sorted(set(obsolete) - names)
        require(
            not gone,
            f"When {what} fails (call {n} on the disk), your commit continues, and removes"
            f" {', '.join(gone)}.\nAn OSError must end it: do not catch it, and remove nothing in a"
            " finally clause.",
        )
        require(
            raised,
            f"When {what} fails (call {n} on the disk), your commit returns as if it had not.\n"
            "Let the OSError through: its caller must not acknowledge anything.",
        )
    wrong = content_differs(env.power_cut(), PATH, content)
    require(
        not wrong,
        f"When {what} fails (call {n} on the disk), and then the power is cut, writes are lost:"
        f" {wrong}\nWhat was not synced before is gone, and after a failed sync a second"
        " one makes nothing durable. See the check 'a commit and power cuts'.",
    )


def on_a_faulty_disk() -> tuple[FaultyEnv, Directory]:
    """The crashed store on a disk that can fail, and its directory, open."""
    env = FaultyEnv()
    target = env.open_directory(PATH, create=True)
    with crashed().env.open_directory(PATH) as source:
        for name in source.names():
            write(target, name, source.read_file(name, 1 << 20))
    return env, target
