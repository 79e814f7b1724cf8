"""What a student's store answers: marks in explanations, tables, counters."""

from __future__ import annotations

from pathlib import Path

from course_stores import folder_of_references, plant, running


def test_an_explanation_marks_the_students_parts_alone(tmp_path: Path) -> None:
    folder = folder_of_references(tmp_path / "labs")
    with running(folder, ["asking filters", "Get"]) as session:
        session.ask("put", key="ant", value="1")
        session.ask("flush")
        lines = session.ask("explain", key="ant")
    marked = [line for line in lines if line.endswith("]")]
    assert [line.rpartition("  ")[2] for line in marked] == ["[yours, lab 8]", "[yours, lab 4]"]
    assert "level 2, 000006.ldb: found" in marked[0] or "found" in marked[0]


def test_a_part_that_was_set_aside_is_not_marked(tmp_path: Path) -> None:
    folder = folder_of_references(tmp_path / "labs")
    plant(folder, 4, "def key_may_match(key, filter_data):\n    return 1 / 0\n")
    with running(folder, ["asking filters"]) as session:
        session.ask("put", key="ant", value="1")
        session.ask("flush")
        assert session.ask("get", key="ant") == "1"
        assert not any("yours" in line for line in session.ask("explain", key="ant"))


def test_counters_and_tables(tmp_path: Path) -> None:
    folder = folder_of_references(tmp_path / "labs")
    with running(folder, ["Get"]) as session:
        session.ask("load", pairs=[["ant", "1"], ["\udcff", "2"]])
        session.ask("flush")
        (table,) = session.ask("tables")
        assert (table["smallest"], table["largest"]) == ("ant", "\udcff")
        assert session.ask("get_all", keys=["ant", "\udcff", "bee"]) == ["1", "2", None]
        stats = session.ask("stats")
        assert (stats["gets"], stats["blocks_read"], stats["filter_negatives"]) == (3, 1, 1)
        without = session.ask("without", keys=["bee", "zoo"])
        assert without == {"tables": [1, 1], "without_filters": 2}
        assert session.ask("amplification") > 1
