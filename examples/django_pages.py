"""A site of Django whose pages, sessions and counters are in a cache on disk.

    python examples/django_pages.py [DIRECTORY]

It needs Django.  The whole site is in this file, without a server: the requests are made by
Django's own test client.  A page is made once and then comes from the cache, until its timeout, or
until the data behind it change and its tag is removed.  Any number of workers may use the
directory, and a worker that is restarted finds everything there.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from django import conf, setup
from django.core.cache import cache
from django.http import HttpRequest, HttpResponse
from django.test import Client
from django.urls import path
from django.views.decorators.cache import cache_page

made: list[str] = []


def page(request: HttpRequest, name: str) -> HttpResponse:
    """A page that takes long to make."""
    made.append(name)
    return HttpResponse(f"<h1>{name}</h1>")


def visit(request: HttpRequest) -> HttpResponse:
    """Counts in the session, which is in the cache, and for all visitors."""
    request.session["visits"] = request.session.get("visits", 0) + 1
    cache.add("visits", 0, timeout=None)
    return HttpResponse(f"{request.session['visits']} of {cache.incr('visits')} visits")


urlpatterns: list[Any] = [path("visit", visit)]


def main(directory: Path) -> None:
    conf.settings.configure(
        SECRET_KEY="an example",
        ROOT_URLCONF=__name__,
        ALLOWED_HOSTS=["*"],
        CACHES={
            "default": {
                "BACKEND": "lsmkv.django.LsmkvCache",
                "LOCATION": str(directory),
                "OPTIONS": {"size_limit": 64 << 20},
            }
        },
        MIDDLEWARE=["django.contrib.sessions.middleware.SessionMiddleware"],
        SESSION_ENGINE="django.contrib.sessions.backends.cache",
    )
    setup()
    urlpatterns.append(path("pages/<name>", cache_page(60)(page)))
    ann, bob = Client(), Client()
    for client, where in ((ann, "a"), (bob, "a"), (ann, "b"), (bob, "b")):
        client.get(f"/pages/{where}")
    print(f"4 requests: {len(made)} pages made, {made}")
    for client in (ann, ann, bob):
        print(client.get("/visit").content.decode())
    cache.set("menu", ["soup"], tag="kitchen")
    print(f"{cache.evict('kitchen')} entry removed by its tag; menu: {cache.get('menu')}")
    cache.cache.close()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as place:
            main(Path(place, "site"))
