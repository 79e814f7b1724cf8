"""A submission's grades as other programs read them: Gradescope's results, and JUnit's XML."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree as ET

from lsmkv.course.grading import MISSING, LabGrade, Submission
from lsmkv.course.owned import FAULT_POINTS, OwnWork
from lsmkv.course.running import ERROR, NOT_WRITTEN, PASSED, Result
from lsmkv.tools.text import printable


def gradescope(one: Submission) -> dict[str, Any]:
    """The content of ``results.json``: a test for each check, and for the student's own data.

    The sentence about a fault and the column "look at" are for the teacher alone.
    """
    tests: list[dict[str, Any]] = []
    for lab in one.labs:
        for at, check in enumerate(lab.checks):
            most = 2 if at + 1 == len(lab.checks) else 1
            tests.append(
                {
                    "name": f"Lab {lab.lab}: {check.check}",
                    "number": f"{lab.lab}.{at + 1}",
                    "score": most if check.outcome == PASSED else 0,
                    "max_score": most,
                    "status": "passed" if check.outcome == PASSED else "failed",
                    "output": _in_words(check),
                    "visibility": "visible",
                }
            )
        if lab.own is not None:
            tests += _own_tests(lab, lab.own)
    if one.look_at:
        tests.append(
            {
                "name": "Look at",
                "score": 0,
                "max_score": 0,
                "status": "passed",
                "output": "\n".join(map(printable, one.look_at)),
                "visibility": "hidden",
            }
        )
    return {"score": sum(test["score"] for test in tests), "tests": tests}


def _own_tests(lab: LabGrade, own: OwnWork) -> list[dict[str, Any]]:
    tests: list[dict[str, Any]] = []
    predicted = {
        "name": f"Lab {lab.lab}: predictions",
        "score": own.right,
        "max_score": own.asked,
        "status": "passed" if own.right == own.asked else "failed",
        "output": f"{own.right} of {own.asked} are right",
        "visibility": "visible",
    }
    finding = own.finding
    found = {
        "name": f"Lab {lab.lab}: the fault",
        "score": FAULT_POINTS * own.is_found,
        "max_score": FAULT_POINTS,
        "status": "passed" if own.is_found else "failed",
        "output": "there is no finding" if finding is None else finding.message,
        "visibility": "visible",
    }
    tests += [predicted, found]
    if finding is not None and finding.sentence:
        tests.append(
            {
                "name": f"Lab {lab.lab}: what the student says of the fault",
                "score": 0,
                "max_score": 0,
                "status": "passed",
                "output": printable(finding.sentence),
                "visibility": "hidden",
            }
        )
    return tests


def _in_words(check: Result) -> str:
    return f"{check.outcome}: {check.message}"


def junit(one: Submission) -> str:
    """A test suite for each lab, as continuous integration shows it."""
    suites = ET.Element("testsuites", name=_xml(one.name))
    for lab in one.labs:
        suite = ET.SubElement(suites, "testsuite", name=f"Lab {lab.lab}: {lab.title}")
        for check in lab.checks:
            case = _case(suite, lab, check.check)
            if check.outcome in (NOT_WRITTEN, MISSING):
                ET.SubElement(case, "skipped", message=_xml(check.message))
            elif check.outcome != PASSED:
                kind = "error" if check.outcome == ERROR else "failure"
                first = check.message.splitlines()[0] if check.message else check.outcome
                ET.SubElement(case, kind, message=_xml(first)).text = _xml(check.message)
        if lab.own is not None:
            for at, prediction in enumerate(lab.own.predictions, 1):
                case = _case(suite, lab, f"prediction {at}")
                if not prediction.is_right:
                    ET.SubElement(case, "failure", message=_xml(prediction.question))
            case = _case(suite, lab, "the fault")
            if lab.own.finding is None:
                ET.SubElement(case, "skipped", message="there is no finding")
            elif not lab.own.is_found:
                ET.SubElement(case, "failure", message=_xml(lab.own.finding.message))
        for name, kind in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            suite.set(name, str(sum(case.find(kind) is not None for case in suite)))
        suite.set("tests", str(len(suite)))
    ET.indent(suites)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(suites, "unicode") + "\n"


def _case(suite: ET.Element, lab: LabGrade, name: str) -> ET.Element:
    return ET.SubElement(suite, "testcase", name=name, classname=lab.file.removesuffix(".py"))


def _xml(text: str) -> str:
    """Text without the characters that XML does not have."""
    return "".join(one if one >= " " or one in "\n\t" else "?" for one in text)
