"""The process of a student's store runs the engine's sources, whatever is compiled."""

from __future__ import annotations

from pathlib import Path

from course_stores import folder_of_references, plant, running


def test_the_engine_is_interpreted_and_what_a_student_prints_is_no_answer(tmp_path: Path) -> None:
    folder = folder_of_references(tmp_path / "labs")
    source = (
        "import sys, lsmkv\nprint('printed')\nprint(sys.stdin.read())\n"
        "def frame(payload, block_offset):\n    raise ValueError(lsmkv.COMPILED)\n"
    )
    plant(folder, 2, source)
    with running(folder, ["records"]) as session:
        session.ask("put", key="ant", value="1")
        (failure,) = session.failures
        assert failure.what.endswith("raised ValueError: False")
        assert session.ask("get", key="ant") == "1"
