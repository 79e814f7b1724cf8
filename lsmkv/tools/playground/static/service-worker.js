// Keeps the files of one version of these pages, so that they are there without a network.
//
// What is fetched is kept; once a page says that it is complete, the rest is fetched.  A newer version
// begins with an empty cache when no page uses the older one, or when a page asks it to take over.
// The build puts BUILD before this: the version, and the paths of its files.

const CACHE = `lsmkv-playground ${BUILD.version}`;
const BASE = new URL("./", location.href);
const KEPT = new Set(BUILD.paths.map((path) => new URL(path, BASE).href));

addEventListener("install", (event) => {
  if (!registration.active) event.waitUntil(skipWaiting());
});

addEventListener("activate", (event) => {
  event.waitUntil((async () => {
    for (const name of await caches.keys()) {
      if (name.startsWith("lsmkv-playground ") && name !== CACHE) await caches.delete(name);
    }
    await clients.claim();
  })());
});

addEventListener("fetch", (event) => {
  const url = new URL(event.request.url);
  url.search = "";
  url.hash = "";
  if (url.href === BASE.href) url.pathname += "index.html";
  if (event.request.method === "GET" && KEPT.has(url.href)) event.respondWith(answer(url.href));
});

async function answer(href) {
  const cache = await caches.open(CACHE);
  const known = await cache.match(href, { ignoreVary: true });
  if (known) return known;
  const response = await fetch(href);
  if (response.ok && !response.redirected) cache.put(href, response.clone()).catch(() => {}); // the disk may be full
  return response;
}

addEventListener("message", (event) => {
  if (event.data === "take over") event.waitUntil(skipWaiting());
  else if (event.data === "complete") event.waitUntil(complete(event.source));
});

async function complete(page) {
  const cache = await caches.open(CACHE);
  for (const href of KEPT) {
    if (!(await cache.match(href, { ignoreVary: true }))) await cache.add(href).catch(() => {});
  }
  page.postMessage({ kept: (await cache.keys()).length, all: KEPT.size });
}
