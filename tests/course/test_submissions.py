"""Students' files are found wherever a download has put them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lsmkv.course.labs.registry import find
from lsmkv.course.submissions import find_files, lab_file_of, labs_beside, loose_files, students

BLOOM, KEYS = find("bloom"), find("keys")


def lay_out(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def found(folder: Path) -> tuple[dict[str, str], list[str]]:
    files, warnings = find_files(str(folder))
    return {
        name: Path(path).relative_to(folder).as_posix() for name, path in files.items()
    }, warnings


def test_files_in_the_folder_need_no_word(tmp_path: Path) -> None:
    lay_out(tmp_path, BLOOM.file_name, KEYS.file_name, "helper.py", "notes.txt")
    assert found(tmp_path) == ({n: n for n in (KEYS.file_name, BLOOM.file_name)}, [])


def test_files_in_folders_below_are_found_and_named(tmp_path: Path) -> None:
    lay_out(tmp_path, f"storage/week 2/{BLOOM.file_name}", f".git/{KEYS.file_name}")
    path = f"storage/week 2/{BLOOM.file_name}"
    assert found(tmp_path) == ({BLOOM.file_name: path}, [f"lab 4 was found as {path}"])


@pytest.mark.parametrize(
    "name",
    [
        *("lab4_bloom (1).py", "lab4_bloom(2).py", "lab4_bloom - Copy.py", "Lab4_Bloom.py"),
        *("lab4_bloom copy 2.py", "lab4_bloom-1.py", "lab4_bloom_2.py"),
    ],
)
def test_copies_of_a_file_are_found_and_named(tmp_path: Path, name: str) -> None:
    lay_out(tmp_path, name)
    assert found(tmp_path) == ({BLOOM.file_name: name}, [f"lab 4 was found as {name}"])


def test_of_several_the_one_with_the_right_name_is_graded(tmp_path: Path) -> None:
    lay_out(tmp_path, "lab4_bloom (1).py", f"a/b/{BLOOM.file_name}", f"a/{BLOOM.file_name}")
    path = f"a/{BLOOM.file_name}"
    assert found(tmp_path) == ({BLOOM.file_name: path}, [f"lab 4 has 3 files; graded: {path}"])


def test_other_names_are_warned_of(tmp_path: Path) -> None:
    lay_out(tmp_path, "lab4.py", "lab4_bloom_old.py", "labour.py")
    assert found(tmp_path)[1] == [
        "lab4.py is not the name of a lab's file",
        "lab4_bloom_old.py is not the name of a lab's file",
    ]
    assert lab_file_of("lab4_bloomer.py") is None


def test_files_in_no_folder_are_listed(tmp_path: Path) -> None:
    lay_out(tmp_path, "lab4_bloom (1).py", "ann/x.py", "other.py")
    assert loose_files(str(tmp_path)) == ["lab4_bloom (1).py"]


def test_students_are_folders(tmp_path: Path) -> None:
    lay_out(tmp_path, "bob/x", "ann/x", ".git/x", "__MACOSX/x", "notes.txt")
    assert students(str(tmp_path)) == ["ann", "bob"]


def test_a_folder_without_students_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no folders of students"):
        students(str(tmp_path))


def test_labs_beside_a_file_are_modules(tmp_path: Path) -> None:
    lay_out(tmp_path, BLOOM.file_name, "lab1_keys (1).py")
    path = tmp_path / BLOOM.file_name
    assert labs_beside(str(path)) == {"lab4_bloom": str(path)}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs FIFOs and links")
def test_what_is_no_regular_file_is_not_graded_but_named(tmp_path: Path) -> None:
    folder = tmp_path / "ann"
    lay_out(tmp_path, "secret.py")
    lay_out(folder, "inner/" + KEYS.file_name)
    (folder / KEYS.file_name).symlink_to(tmp_path / "secret.py")
    os.mkfifo(folder / BLOOM.file_name)
    files, warnings = found(folder)
    assert files == {KEYS.file_name: f"inner/{KEYS.file_name}"}
    assert warnings[:2] == [
        f"{KEYS.file_name} is not a regular file",
        f"{BLOOM.file_name} is not a regular file",
    ]
