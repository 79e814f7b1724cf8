// Elements by function calls.  Text is always text: nothing from a store is ever parsed as HTML.

import { number } from "./format.js";
import { shown } from "./sentences.js";

/** An element with attributes (`onclick` and similar ones are listeners) and children. */
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

/** Replace the children of an element. */
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

/** The name of a column of figures, for the head of a table: they stand to the right. */
export function numeric(name) {
  return { name, isNumeric: true };
}

/** A row of a table with this head: a cell is text, an element, or a whole `td`. */
export function row(head, cells, attributes = {}) {
  return h("tr", attributes, cells.map((cell, at) =>
    cell instanceof HTMLTableCellElement ? cell : h("td", { class: head[at].isNumeric ? "number" : null }, cell)));
}

/** A table with a head of names, some of them `numeric`; a row is a list of cells, or an element. */
export function grid(caption, head, rows, attributes = {}) {
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h(
      "table",
      attributes,
      h("thead", {}, h("tr", {}, head.map((one) =>
        h("th", { scope: "col", class: one.isNumeric ? "number" : null }, one.name ?? one)))),
      h("tbody", {}, rows.map((cells) => (cells instanceof Element ? cells : row(head, cells)))),
    ),
  );
}

/** A key or value as the server shows it: with its length where it is cut; what a key means, where that is known. */
export function keyText(key) {
  if (!key) return "";
  if (key.bytes === 0) return h("em", { class: "key" }, plainKey(key));
  return h("code", { class: "key", title: key.meaning ? cutText(key) : null }, plainKey(key));
}

/** The same as plain text. */
export function plainKey(key) {
  return key.meaning ?? (cutText(key) || "(empty)");
}

/** A key in a sentence, or on a button. */
export function shortKey(key) {
  return key.meaning ?? shown(key.text, key.cut ? `${number(key.bytes)} bytes` : undefined);
}

function cutText(key) {
  return key.cut ? `${key.text}… (${number(key.bytes)} bytes)` : key.text;
}
