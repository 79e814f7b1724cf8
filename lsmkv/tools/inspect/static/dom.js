// Elements by function calls.  Text is always text: nothing from a store is ever parsed as HTML.

import { number } from "./format.js";

/** An element with attributes (`onclick` and the like are listeners) and children. */
export function h(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** The same for SVG. */
export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return element;
}

/** Put children in the place of those that an element has. */
export function show(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
}

/** A button. */
export function button(label, onclick, attributes = {}) {
  return h("button", { type: "button", onclick, ...attributes }, label);
}

/** A term and its figure, for a row of figures. */
export function figure(term, value, attributes = {}) {
  return h("div", { class: "figure", ...attributes }, h("dt", {}, term), h("dd", {}, value));
}

/** A table with a head; rows are lists of cells, a cell is text or an element. */
export function grid(caption, head, rows, attributes = {}) {
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h(
      "table",
      attributes,
      h("thead", {}, h("tr", {}, head.map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, rows.map((cells) =>
        cells instanceof Element ? cells : h("tr", {}, cells.map((cell) => h("td", {}, cell))))),
    ),
  );
}

/** A key as the server shows it, with its length where it is cut. */
export function keyText(key) {
  if (!key) return "";
  return h("code", { class: "key" }, plainKey(key));
}

/** The same as plain text. */
export function plainKey(key) {
  return key.cut ? `${key.text}… (${number(key.bytes)} bytes)` : key.text || "(empty)";
}
