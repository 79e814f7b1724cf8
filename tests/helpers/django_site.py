"""Django's settings in the process of the tests."""

from __future__ import annotations


def configure() -> None:
    """Have some, unless another test has made them."""
    from django.conf import settings  # at the top, it would be searched for doctests

    if not settings.configured:
        settings.configure(SECRET_KEY="a secret of the tests", USE_TZ=True, ALLOWED_HOSTS=["*"])
