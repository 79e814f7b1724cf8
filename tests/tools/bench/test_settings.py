"""lsmkv.tools.bench.settings: the settings of a benchmark, as JSON and back."""

from __future__ import annotations

import json

from lsmkv.tools.bench.settings import KEY_SIZE, Settings


def test_settings_survive_json() -> None:
    for settings in (Settings(), Settings(num=7, compression="none", own_defaults=True, seed=3)):
        assert Settings(**json.loads(json.dumps(settings.to_dict()))) == settings


def test_a_key_has_the_size_of_db_benchs() -> None:
    assert len(b"%016d" % 7) == KEY_SIZE
