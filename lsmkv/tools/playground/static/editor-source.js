// The editor, of which the build makes editor.js: CodeMirror for Python, in a shadow root, so that its styles need no exception
// in the page's policy.

import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { python } from "@codemirror/lang-python";
import { HighlightStyle, bracketMatching, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { EditorState } from "@codemirror/state";
import { EditorView, drawSelection, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";

const style = HighlightStyle.define([
  { tag: tags.keyword, color: "var(--level-2)", fontWeight: "600" },
  { tag: [tags.string, tags.docString], color: "var(--saved)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--level-0)" },
  { tag: tags.comment, color: "var(--quiet)", fontStyle: "italic" },
  { tag: [tags.function(tags.definition(tags.variableName)), tags.definition(tags.className)], color: "var(--level-4)", fontWeight: "600" },
]);
const theme = EditorView.theme({
  "&": { color: "var(--text)", backgroundColor: "var(--page)", fontSize: "14px", height: "100%" },
  ".cm-scroller": { fontFamily: 'ui-monospace, "DejaVu Sans Mono", monospace', lineHeight: "1.5" },
  ".cm-content": { caretColor: "var(--text)" },
  ".cm-gutters": { backgroundColor: "var(--card)", color: "var(--quiet)", borderRight: "1px solid var(--line)" },
  ".cm-activeLine": { backgroundColor: "color-mix(in srgb, var(--button) 45%, transparent)" },
  "&.cm-focused .cm-cursor": { borderLeftColor: "var(--text)" },
  ".cm-selectionBackground, &.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground": { backgroundColor: "color-mix(in srgb, var(--main) 35%, transparent)" },
  "&.cm-focused .cm-matchingBracket": { backgroundColor: "color-mix(in srgb, var(--focus) 35%, transparent)" },
  "&.cm-focused": { outline: "3px solid var(--focus)" },
});

/** Text that takes the place of a selection is put in here: left to the browser, it keeps the style of what it replaces, in an
 * attribute that the page's policy refuses. */
const replacing = EditorView.domEventHandlers({
  beforeinput(event, view) {
    if (event.inputType !== "insertText" || !event.data || event.isComposing || view.state.selection.main.empty) return false;
    view.dispatch(view.state.replaceSelection(event.data), { userEvent: "input.type", scrollIntoView: true });
    return true;
  },
});

/** An editor of Python in `place`; `onchange(text)` is called after each change.  Escape, then Tab, leaves it. */
export function editor(place, label, onchange) {
  const root = place.attachShadow({ mode: "open" });
  const extensions = [
    lineNumbers(), history(), drawSelection(), indentOnInput(), bracketMatching(), highlightActiveLine(), indentUnit.of("    "),
    EditorState.tabSize.of(4), python(), syntaxHighlighting(style), theme, EditorView.contentAttributes.of({ "aria-label": label }),
    EditorView.lineWrapping, replacing, keymap.of([...defaultKeymap, ...historyKeymap, indentWithTab]),
    EditorView.updateListener.of((update) => { if (update.docChanged) onchange(update.state.doc.toString()); }),
  ];
  const view = new EditorView({ root, parent: root, state: EditorState.create({ extensions }) });
  view.scrollDOM.tabIndex = 0; // what scrolls can be reached by the keyboard
  return {
    get text() {
      return view.state.doc.toString();
    },
    /** Show another text from its first line on, with a history of its own. */
    set text(text) {
      view.setState(EditorState.create({ doc: text, extensions }));
      view.scrollDOM.scrollTop = 0;
    },
    focus: () => view.focus(),
    /** Go to a line. */
    show(line) {
      const at = view.state.doc.line(Math.min(Math.max(1, line), view.state.doc.lines)).from;
      view.dispatch({ selection: { anchor: at }, effects: EditorView.scrollIntoView(at, { y: "center" }) });
      view.focus();
    },
  };
}
