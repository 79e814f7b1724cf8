"""The store whose recovery lab 10 commits: it is sound before and after, by the engine's rules."""

from __future__ import annotations

from lsmkv.course.labs.committing import LEFT_BEHIND, crashed, on_a_faulty_disk, rules
from lsmkv.course.labs.formats import write
from lsmkv.course.labs.power_cuts import PATH, content_differs
from lsmkv.engine.format.filenames import set_current
from lsmkv.testing.recording import RecordingEnv


def test_the_store_is_sound_before_and_after() -> None:
    start, plan, obsolete, content = crashed()
    assert content_differs(RecordingEnv(start), PATH, content) == ""
    env = RecordingEnv(start)
    with env.open_directory(PATH) as directory:
        for name, data in plan.files.items():
            write(directory, name, data)
        set_current(directory, plan.manifest_number)
        for name in obsolete:
            directory.remove(name)
        names = set(directory.names())
    assert set(plan.files) <= names
    assert not set(LEFT_BEHIND) & names
    assert content_differs(env, PATH, content) == ""


def test_each_file_that_is_obsolete_is_one_that_was_there() -> None:
    start, plan, obsolete, _ = crashed()
    with start.open_directory(PATH) as directory:
        names = directory.names()
    assert set(LEFT_BEHIND) <= set(obsolete) <= set(names)
    assert not set(obsolete) & set(plan.files)
    assert sum(name.endswith(".log") for name in obsolete) == 2
    assert sum(name.startswith("MANIFEST") for name in obsolete) == 1


def test_each_file_has_a_rule() -> None:
    _, plan, obsolete, _ = crashed()
    named = {rule.name for rule in rules(plan, obsolete)}
    assert set(plan.files) <= named
    removed = {rule.before[1] for rule in rules(plan, obsolete) if rule.before is not None}
    assert set(obsolete) <= removed


def test_the_faulty_disk_holds_the_store() -> None:
    env, directory = on_a_faulty_disk()
    with crashed().env.open_directory(PATH) as source:
        assert sorted(directory.names()) == sorted(source.names())
    assert content_differs(env.power_cut(), PATH, crashed().content) == ""
