// The Markdown of the course's texts as elements: headings, paragraphs, lists, tables, code and pictures.  Nothing is parsed as HTML.

import { h } from "./inspect/dom.js";

const INLINE = /(`+)(.+?)\1|\*\*(.+?)\*\*|\*([^*\s][^*]*?)\*|!\[([^\]]*)\]\(([^)\s]+)\)|\[([^\]]+)\]\(([^)\s]+)\)/gs;
const LIST = /^(\s*)([-*]|\d+\.) +(.*)$/;

/** The elements of a text.  `linked(words, address)` and `pictured(words, address)` make links and pictures. */
export function elements(text, { linked, pictured }) {
  const lines = text.replace(/<!--.*?-->\n?/gs, "").split("\n");
  const found = [];
  let at = 0;
  const inline = (words) => spans(words, { linked, pictured });

  function taken(holds) {
    const some = [];
    while (at < lines.length && holds(lines[at])) some.push(lines[at++]);
    return some;
  }

  function list(indent) {
    const ordered = /^\s*\d/.test(lines[at]);
    const first = Number.parseInt(lines[at], 10);
    const items = [];
    while (at < lines.length) {
      const item = LIST.exec(lines[at]);
      if (!item || item[1].length < indent) break;
      if (item[1].length > indent) {
        items.at(-1).push(list(item[1].length));
        continue;
      }
      at += 1;
      const words = [item[3], ...taken((line) => line.trim() !== "" && !LIST.test(line) && /^\s/.test(line))];
      items.push([inline(words.map((one) => one.trim()).join(" "))]);
      if (lines[at]?.trim() === "" && LIST.test(lines[at + 1] ?? "")) at += 1;
    }
    return h(ordered ? "ol" : "ul", { start: ordered && first > 1 ? first : null }, items.map((one) => h("li", {}, one)));
  }

  while (at < lines.length) {
    const line = lines[at];
    const heading = /^(#+) (.*)$/.exec(line);
    if (line.trim() === "") at += 1;
    else if (heading) {
      found.push(h(`h${Math.min(heading[1].length + 1, 5)}`, {}, inline(heading[2])));
      at += 1;
    } else if (line.startsWith("```")) {
      at += 1;
      const code = taken((one) => !one.startsWith("```"));
      at += 1;
      found.push(h("pre", { tabindex: "0" }, h("code", {}, code.join("\n"))));
    } else if (/^ {4}/.test(line)) {
      found.push(h("pre", { tabindex: "0" }, h("code", {}, taken((one) => /^ {4}/.test(one)).map((one) => one.slice(4)).join("\n"))));
    } else if (line.startsWith("|")) {
      const rows = taken((one) => one.startsWith("|")).map((one) => one.slice(1, one.lastIndexOf("|")).split(/(?<!\\)\|/).map((cell) => cell.trim()));
      const [head, , ...body] = rows;
      found.push(h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "A table" }, h("table", { class: "narrow" },
        h("thead", {}, h("tr", {}, head.map((cell) => h("th", { scope: "col" }, inline(cell))))),
        h("tbody", {}, body.map((cells) => h("tr", {}, cells.map((cell) => h("td", {}, inline(cell)))))))));
    } else if (LIST.test(line)) found.push(list(LIST.exec(line)[1].length));
    else {
      const words = taken((one) => one.trim() !== "" && !/^(#+ |```|\||\s*[-*] |\d+\. )/.test(one));
      if (words.length) found.push(h("p", {}, inline(words.join(" "))));
      else at += 1;
    }
  }
  return found;
}

/** The parts of a line: text, code, emphasis, links and pictures. */
function spans(words, makers) {
  const parts = [];
  let end = 0;
  for (const match of words.matchAll(INLINE)) {
    parts.push(words.slice(end, match.index));
    end = match.index + match[0].length;
    const [, , code, strong, em, about, picture, label, address] = match;
    if (code !== undefined) parts.push(h("code", {}, code));
    else if (strong !== undefined) parts.push(h("strong", {}, spans(strong, makers)));
    else if (em !== undefined) parts.push(h("em", {}, spans(em, makers)));
    else if (picture !== undefined) parts.push(makers.pictured(about, picture));
    else parts.push(makers.linked(spans(label, makers), address));
  }
  parts.push(words.slice(end));
  return parts;
}
