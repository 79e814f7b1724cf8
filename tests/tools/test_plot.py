"""The curves show the figures that they are given, and the formulas beside them."""

from __future__ import annotations

import subprocess
import sys

import pytest
from documents import svg_texts
from matplotlib.figure import Figure
from processes import ENVIRON, run_python

from lsmkv.engine.filter.bloom import BloomFilterPolicy, predicted_rate
from lsmkv.engine.filter.rates import expected_fill, expected_rate
from lsmkv.plot import blocks_per_get, false_positive_rates, fill, to_svg


def points(figure: Figure, line: int) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in figure.axes[0].lines[line].get_xydata()]


def words(figure: Figure) -> set[str]:
    return set(svg_texts(to_svg(figure)))


def test_rates() -> None:
    figure = false_positive_rates([4, 10], {"one": {10: 0.011, 4: 0.2}, "two": {20: 0.0}})
    assert points(figure, 0) == [
        (bits, predicted_rate(bits, BloomFilterPolicy(bits).probes)) for bits in (4, 10)
    ]
    assert points(figure, 1) == [(4, 0.2), (10, 0.011)]
    assert points(figure, 2) == []  # 0 has no logarithm
    assert {"bits a key", "false-positive rate", "one", "two", "1%", "10%"} <= words(figure)


def test_rates_of_no_bits() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        false_positive_rates([0])


def test_blocks() -> None:
    figure = blocks_per_get({"none": (0.5, 1.75), "block:10": (0.5, 0.01)})
    widths = [bar.get_width() for bar in figure.axes[0].patches]
    assert widths == pytest.approx([0.5, 0.5, 1.75, 0.01])
    assert [bar.get_x() for bar in figure.axes[0].patches] == [0, 0, 0.5, 0.5]
    assert {"none", "block:10", "2.25", "0.51", "wasted: the key is not in it"} <= words(figure)
    bottom, top = figure.axes[0].get_ylim()
    assert bottom > top  # the first setting is the uppermost


def test_no_blocks() -> None:
    with pytest.raises(ValueError, match="no setting"):
        blocks_per_get({})


def test_fill() -> None:
    figure = fill([(50, 0.2), (100, 0.4)], bits=1000, probes=5)
    assert points(figure, 0)[-1] == (100, expected_fill(100, 1000, 5))
    assert points(figure, 1) == [(50, 0.2), (100, 0.4)]
    assert "keys in a filter of 1,000 bits with 5 probes" in words(figure)
    with pytest.raises(ValueError, match="not 0"):
        fill([], bits=0, probes=5)


def test_the_same_figures_give_the_same_bytes() -> None:
    first, again, other = (to_svg(blocks_per_get({"none": (1, one)})) for one in (2, 2, 3))
    assert first == again != other
    assert first.endswith(b"</svg>\n")


def test_lsmkv_does_without_matplotlib() -> None:
    code = "import sys, lsmkv, lsmkv.tools.app; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], env=ENVIRON, check=False).returncode == 0


def test_a_missing_matplotlib_names_the_extra() -> None:
    code = """if True:
        import sys
        sys.modules["matplotlib"] = None
        try:
            import lsmkv.plot
        except ImportError as error:
            print(error.name, "|", error)
    """
    ran = run_python("-c", code, check=True)
    assert ran.stdout.startswith("matplotlib | lsmkv.plot needs matplotlib, ")
    assert "pip install '.[plot]'" in ran.stdout


def test_rates_of_small_filters() -> None:
    figure = false_positive_rates([4, 10], keys=20)
    assert points(figure, 0) == [(4, expected_rate(20, 80, 2)), (10, expected_rate(20, 200, 6))]
    assert "expected of filters of 20 keys" in words(figure)
