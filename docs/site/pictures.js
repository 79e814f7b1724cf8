// Pictures, drawings and the filter lab follow the page's colors, which a reader may set apart from
// the system's.
(() => {
  const frames = [...document.querySelectorAll("iframe.lab")];
  const follow = () => {
    const dark = document.body.getAttribute("data-md-color-scheme") === "slate";
    const scheme = dark ? "dark" : "light";
    for (const source of document.querySelectorAll("picture > source[media]")) {
      source.media = dark ? "all" : "not all";
    }
    for (const frame of frames) {
      frame.style.colorScheme = scheme;
      frame.contentWindow.postMessage({ scheme }, "*");
    }
  };
  for (const frame of frames) frame.addEventListener("load", follow);
  addEventListener("message", (event) => {
    const frame = frames.find((one) => one.contentWindow === event.source);
    if (frame && event.data.labHeight) frame.style.height = `${event.data.labHeight + 24}px`;
  });
  new MutationObserver(follow).observe(document.body, {
    attributes: true, attributeFilter: ["data-md-color-scheme"],
  });
  follow();
})();
