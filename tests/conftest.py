"""What all tests share: no example of a property test is held against a clock."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("lsmkv", deadline=None)
settings.load_profile("lsmkv")
