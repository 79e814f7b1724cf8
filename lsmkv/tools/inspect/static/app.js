// The page: which view is shown, by the fragment of the URL; the keys that work everywhere.

import { brand, isReport, isServed, twin } from "./data.js";
import * as demoView from "./demo.js";
import { button, h, show } from "./dom.js";
import * as entriesView from "./entries.js";
import { Following } from "./following.js";
import * as filtersView from "./filters.js";
import * as getView from "./get.js";
import * as levelsView from "./levels.js";
import * as lifeView from "./life.js";
import * as liveView from "./live.js";
import * as tableView from "./table.js";
import * as writeView from "./write.js";

// A view is a module: `view` has its name, its title (`menu`: a shorter one), a line about its content, and
// `mount(root, page)`, which returns `{update(query), twin(), key(event), close()}`; `twin()` has the arguments of
// data.js's `twin`.  `follow(state, asOf)` is called once the store has changed since the answer that the view got at the
// time `asOf`: it reads on, and returns null, or words for what it shows instead, from which `reload()` leads on
// (`again`: what its button says).  `watches()` has what else is asked: `{table}`, whose level is in the state then.
// One that has `hidden` is reached from others, and is not in the menu; nor is one that is `served`, without a server, or
// one that is `whole`, in a report.
const VIEWS = [demoView, levelsView, getView, filtersView, lifeView, liveView, writeView, entriesView, tableView].map((module) => module.view);
const MENU = VIEWS.filter((view) => !view.hidden && (isServed || !view.served) && !(isReport && view.whole));

const SHORTCUTS = [
  ["1 … " + MENU.length, "the views, in the order of the menu"],
  ["/", "go to the key, or to the first field of the view"],
  ["← →", "a step back, a step forward; in a drawing the next bar"],
  ["Shift ← →", "ten steps"],
  ["Home, End", "the first step, the last one"],
  ["Space", "play, and stop"],
  ["Enter", "open the bar that is selected"],
  ["r", "reload this view's data"],
  ["j", "this view's data as JSON"],
  ["t", "light, dark, or the system's theme"],
  ["?", "this list"],
];

const main = h("main", { id: "view", tabindex: "-1" });
const links = new Map(MENU.map((view, at) => [
  view.name, h("a", { href: `#/${view.name}`, title: `${view.about} (${at + 1})` }, view.menu ?? view.title),
]));
const json = h("a", { class: "json", target: "_blank", rel: "noopener", title: "This view's data (j)" }, "JSON");
const help = h(
  "dialog", { "aria-labelledby": "help-title" },
  h("h2", { id: "help-title" }, "Keys"),
  h("dl", { class: "keys" }, SHORTCUTS.map(([keys, words]) => [
    h("dt", {}, h("kbd", {}, keys)), h("dd", {}, words),
  ])),
  button("Close", () => help.close(), { class: "main" }),
);

let shown = null; // {view, mounted}

const page = {
  /** Go to a view; with `replace`, Back skips the present one. */
  go(name, query = {}, { replace = false } = {}) {
    const given = Object.entries(query).filter(([, value]) => value !== null && value !== undefined);
    const text = new URLSearchParams(given.map(([key, value]) => [key, String(value)])).toString();
    const hash = `#/${name}${text ? `?${text}` : ""}`;
    if (hash === location.hash) return;
    history[replace ? "replaceState" : "pushState"](null, "", hash);
    route();
  },
  /** The address of a view, for a link. */
  link(name, query = {}) {
    return `#/${name}?${new URLSearchParams(query)}`;
  },
  /** Show an error at the top of the view. */
  fail(error) {
    if (error.name === "AbortError") return;
    if (error.gone || error.silent) { // which is said above every view
      following.look();
      return;
    }
    trouble.hidden = false;
    show(trouble, error.message);
  },
  /** Remove the error. */
  clear() {
    trouble.hidden = true;
  },
};
const trouble = h("p", { class: "trouble", role: "alert", hidden: true });

const following = new Following(() => shown.mounted);

function place() {
  const [path, text = ""] = location.hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  const view = [...MENU, ...VIEWS.filter((one) => one.parent)].find((one) => one.name === path) ?? MENU[0];
  return { view, query: Object.fromEntries(new URLSearchParams(text)) };
}

function route() {
  const { view, query } = place();
  page.clear();
  if (!shown || shown.view !== view) {
    if (shown) shown.mounted.close();
    const root = h("div", { class: `view ${view.name}` });
    show(main, h("h1", {}, view.title), h("p", { class: "about" }, view.about), following.note, trouble, root);
    following.begin();
    shown = { view, mounted: view.mount(root, page) };
    document.title = `${view.title} · lsmkv`;
    const current = view.parent ?? view.name;
    for (const [name, link] of links) link.toggleAttribute("aria-current", name === current);
  }
  shown.mounted.update(query);
  json.href = "#";
}

function openJson(event) {
  const href = twin(...shown.mounted.twin());
  if (event.type === "click" && href) json.href = href;
  else if (href) window.open(href, "_blank", "noopener");
  if (!href) {
    event.preventDefault();
    page.fail(new Error("There is no data yet."));
  }
}

const system = matchMedia("(prefers-color-scheme: dark)");
let chosen = document.documentElement.dataset.chosen ?? ""; // a theme, or empty for the system's

function applyTheme() {
  document.documentElement.dataset.theme = chosen || (system.matches ? "dark" : "light");
  document.dispatchEvent(new Event("lsmkv-theme"));
}

function changeTheme() {
  const order = ["", "light", "dark"];
  chosen = order[(order.indexOf(chosen) + 1) % 3];
  applyTheme();
}

function typing(event) {
  const { tagName, type } = event.target;
  return tagName === "TEXTAREA" || tagName === "SELECT" || (tagName === "INPUT" && !["range", "radio", "checkbox"].includes(type));
}

function onKey(event) {
  if (event.ctrlKey || event.altKey || event.metaKey || help.open) return;
  if (typing(event)) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const at = Number(event.key) - 1;
  if (MENU[at]) page.go(MENU[at].name);
  else if (event.key === "?") help.showModal();
  else if (event.key === "t") changeTheme();
  else if (event.key === "j") openJson(event);
  else if (event.key === "r") following.reload();
  else if (event.key === "/") main.querySelector("input[type=text], textarea, input[type=range]")?.focus();
  else if (!(event.key === " " && event.target.closest("button, a, summary, input")) && shown.mounted.key?.(event)) { /* done */ }
  else return;
  event.preventDefault();
}

function start() {
  applyTheme();
  system.addEventListener("change", applyTheme);
  json.addEventListener("click", openJson);
  document.body.append(
    h("a", { class: "skip", href: "#view", onclick: (event) => { event.preventDefault(); main.focus(); } }, "To the view"),
    h("header", {},
      h("span", { class: "brand" }, "lsmkv", h("small", {}, ` ${brand}`)),
      h("nav", { "aria-label": "Views" }, [...links.values()]),
      h("span", { class: "tools" }, json,
        button("◐", changeTheme, { title: "Light or dark (t)", "aria-label": "Light or dark" }),
        button("?", () => help.showModal(), { title: "Keys (?)", "aria-label": "Keys" }))),
    main,
    help,
  );
  document.addEventListener("keydown", onKey);
  window.addEventListener("hashchange", route);
  window.addEventListener("popstate", route);
  route();
}

start();
