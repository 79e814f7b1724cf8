// Pictures, drawings and the filter lab follow the page's colours, which a reader may set apart from
// the system's.
(() => {
  const follow = () => {
    const dark = document.body.getAttribute("data-md-color-scheme") === "slate";
    for (const source of document.querySelectorAll("picture > source[media]")) {
      source.media = dark ? "all" : "not all";
    }
    for (const frame of document.querySelectorAll("iframe.lab")) {
      frame.style.colorScheme = dark ? "dark" : "light";
      const root = frame.contentDocument?.documentElement;
      if (root) root.style.colorScheme = dark ? "dark" : "light";
    }
  };
  for (const frame of document.querySelectorAll("iframe.lab")) frame.addEventListener("load", follow);
  new MutationObserver(follow).observe(document.body, {
    attributes: true, attributeFilter: ["data-md-color-scheme"],
  });
  follow();
})();
