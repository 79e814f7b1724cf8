"""lsmkv.engine.util.copying: why an object can be neither copied nor pickled."""

from __future__ import annotations

import copy
import pickle
from typing import Never

import pytest

from lsmkv.engine.util.copying import refuse_copy


class Cursor:
    def __reduce__(self) -> Never:
        refuse_copy("a cursor", "it holds an open store")


@pytest.mark.parametrize("call", [copy.copy, copy.deepcopy, pickle.dumps])
def test_copy_and_pickle_fail_with_a_reason(call: object) -> None:
    assert callable(call)
    expected = "^a cursor can be neither copied nor pickled: it holds an open store$"
    with pytest.raises(TypeError, match=expected):
        call(Cursor())
