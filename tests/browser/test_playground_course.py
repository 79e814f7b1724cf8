"""The course and the console in Chromium: code of the visitor's runs in a worker of the tab."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from driven import quiet_on

from lsmkv.course.labs.registry import LABS

REFERENCES = Path(__file__).parents[1] / "course" / "references"


@pytest.fixture(scope="module")
def course(shared: Any, playground_url: str) -> Iterator[Any]:
    with quiet_on(shared, playground_url) as page:
        page.set_default_timeout(120_000)
        page.goto(f"{playground_url}course.html#lab=1")
        page.wait_for_selector("html[data-lab='1']", state="attached")
        yield page


def go_to(page: Any, number: int) -> None:
    page.evaluate("number => { location.hash = `lab=${number}`; }", number)
    page.wait_for_selector(f"html[data-lab='{number}']", state="attached")


def write(page: Any, source: str) -> None:
    """Replace what is in the editor, as one that pastes does."""
    page.locator(".editor .cm-content").click()
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.insert_text(source)


def check(page: Any) -> str:
    """Run the checks; what they found."""
    page.get_by_role("button", name="Run the checks").click()
    page.locator(".results .total").wait_for()
    text: str = page.locator(".results").inner_text()
    return text


def test_a_lab_has_its_text_and_hints(course: Any) -> None:
    go_to(course, 4)
    assert course.locator(".lab-text h2").first.text_content() == "Lab 4: the Bloom filter"
    picture = course.locator(".lab-text img")
    picture.scroll_into_view_if_needed()
    assert picture.evaluate("async one => { await one.decode(); return one.naturalWidth; }") > 100
    assert course.locator(".hints-of-lab .card").count() == 0
    course.get_by_role("button", name="Show hint 1").click()
    assert course.locator(".hints-of-lab .card").count() == 1
    assert course.locator(".lab-text", has_text="](").count() == 0


@pytest.mark.parametrize("number", [1, 4])
def test_a_lab_is_solved(course: Any, number: int) -> None:
    go_to(course, number)
    lab = LABS[number - 1]
    assert "is not written yet" in check(course)
    write(course, (REFERENCES / lab.file_name).read_text(encoding="utf-8"))
    found = check(course)
    assert f"{len(lab.checks)} of {len(lab.checks)} checks passed" in found
    assert course.locator(f".labs a[href='#lab={number}']", has_text="✓").count() == 1


def test_a_mistake_names_its_line(course: Any) -> None:
    go_to(course, 2)
    write(course, "print('hello')\n\n\ndef write_log(\n")
    found = check(course)
    assert "the file cannot be run: SyntaxError" in found
    go_to(course, 1)
    source = (REFERENCES / "lab1_keys.py").read_text(encoding="utf-8")
    write(course, source + "\n\ndef encode_varint(value):\n    print('seen')\n    return 1 // 0\n")
    found = check(course)
    assert "ZeroDivisionError" in found
    assert "return 1 // 0" in found
    assert "seen" in course.locator(".printed").text_content()
    course.get_by_role("button", name="Go to line").first.click()
    assert "return 1 // 0" in course.locator(".editor .cm-activeLine").text_content()


def test_an_endless_loop_is_ended(course: Any) -> None:
    go_to(course, 1)
    source = (REFERENCES / "lab1_keys.py").read_text(encoding="utf-8")
    write(course, source + "\n\ndef encode_varint(value):\n    while True:\n        pass\n")
    course.get_by_role("button", name="Run the checks").click()
    course.wait_for_selector("html[data-checks=running]", state="attached")
    course.get_by_role("button", name="End", exact=True).click()
    course.locator(".results", has_text="Ended.").wait_for()
    write(course, source)
    assert "7 of 7 checks passed" in check(course)


def test_another_lab_ends_what_runs(course: Any) -> None:
    go_to(course, 1)
    source = (REFERENCES / "lab1_keys.py").read_text(encoding="utf-8")
    write(course, source + "\n\ndef encode_varint(value):\n    while True:\n        pass\n")
    course.get_by_role("button", name="Run the checks").click()
    course.wait_for_selector("html[data-checks=running]", state="attached")
    go_to(course, 4)
    runner = course.get_by_role("button", name="Run the checks")
    runner.wait_for()
    assert runner.is_enabled()
    assert course.locator(".results", has_text="Ended.").count() == 0
    write(course, (REFERENCES / "lab4_bloom.py").read_text(encoding="utf-8"))
    assert "checks passed" in check(course)
    go_to(course, 1)
    write(course, source)


def test_checks_are_ended_before_the_engine_is_loaded(browser: Any, playground_url: str) -> None:
    """And begin again once it is."""
    context = browser.new_context()
    with quiet_on(context, playground_url) as page:
        page.set_default_timeout(120_000)
        page.goto(f"{playground_url}course.html#lab=1")
        page.get_by_role("button", name="Run the checks").click()
        page.get_by_role("button", name="End", exact=True).click()
        page.locator(".results", has_text="Ended.").wait_for()
        page.locator("#engine", has_text="The engine is loaded").wait_for()
        assert "checks passed" in check(page)
    context.close()


def test_what_is_written_stays_and_is_saved_as_a_folder(course: Any, tmp_path: Path) -> None:
    go_to(course, 3)
    write(course, "# mine, é\n")
    course.reload()
    course.wait_for_selector("html[data-lab='3']", state="attached")
    assert course.locator(".editor .cm-content").inner_text().strip() == "# mine, é"
    with course.expect_download() as started:
        course.get_by_role("button", name="Save as a folder").click()
    with zipfile.ZipFile(started.value.path()) as archive:
        names = set(archive.namelist())
        written = archive.read("lsmkv-course/lab3_block.py").decode()
    assert names == {f"lsmkv-course/{lab.file_name}" for lab in LABS}
    assert written == "# mine, é\n"
    (tmp_path / "lab3_block.py").write_text("# from a file\n")
    course.set_input_files("input[type=file]", str(tmp_path / "lab3_block.py"))
    course.locator(".editor .cm-content", has_text="# from a file").wait_for()


def test_the_examples_of_the_console_run(shared: Any, playground_url: str) -> None:
    with quiet_on(shared, playground_url) as page:
        page.set_default_timeout(120_000)
        page.goto(f"{playground_url}console.html")
        page.get_by_role("button", name="Run all examples").click()
        output = page.locator(".transcript .output")
        output.nth(5).wait_for(state="attached")
        page.wait_for_selector("html[data-console=ready]", state="attached")
        found = [one.strip() for one in output.all_text_contents()]
        assert found == [
            "'Der Prozeß'",
            "None\n(b'unknown', True)",
            "book:1:title = Der Prozeß\nbook:1:year = 1925",
            "",
            "(False, 0, 0)",
            "(False, 0, 1)",
        ]
        field = page.get_by_label("Python", exact=True)
        field.fill("1 // 0")
        field.press("Enter")
        page.locator(".output.bad", has_text="ZeroDivisionError").wait_for()
        field.fill("while True: print('x')")
        field.press("Control+Enter")
        output.last.filter(has_text="x").wait_for()
        page.get_by_role("button", name="End", exact=True).click()
        page.locator(".output", has_text="Ended.").wait_for()
        field.fill("6 * 7")
        field.press("Enter")
        output.last.filter(has_text="42").wait_for()
