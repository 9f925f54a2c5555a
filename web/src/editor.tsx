import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { cpp } from "@codemirror/lang-cpp";
import { bracketMatching, HighlightStyle, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { type Diagnostic, lintGutter, setDiagnostics } from "@codemirror/lint";
import { highlightSelectionMatches, searchKeymap } from "@codemirror/search";
import { Annotation, EditorState, StateEffect, StateField, type Range as TextRange } from "@codemirror/state";
import {
  Decoration,
  type DecorationSet,
  drawSelection,
  EditorView,
  GutterMarker,
  gutter,
  highlightActiveLine,
  highlightActiveLineGutter,
  highlightSpecialChars,
  keymap,
  lineNumbers,
} from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { useEffect, useRef } from "preact/hooks";

export interface Mark {
  line: number;
  column?: number;
  message: string;
  severity: "error" | "warning";
}

/** The share of the cycles of a line, from 0 to 1, with its words. */
export interface Heat {
  share: number;
  text: string;
}

const colours = HighlightStyle.define([
  { tag: [tags.keyword, tags.controlKeyword, tags.operatorKeyword, tags.modifier], color: "var(--code-keyword)" },
  { tag: [tags.typeName, tags.standard(tags.typeName)], color: "var(--code-type)" },
  { tag: [tags.string, tags.character], color: "var(--code-string)" },
  { tag: [tags.number, tags.bool], color: "var(--code-number)" },
  { tag: [tags.comment], color: "var(--code-comment)", fontStyle: "italic" },
  { tag: [tags.processingInstruction, tags.meta], color: "var(--code-meta)" },
  {
    tag: [tags.function(tags.variableName), tags.function(tags.definition(tags.variableName))],
    color: "var(--code-function)",
  },
]);

const setHeat = StateEffect.define<Map<number, Heat>>();

class HeatMarker extends GutterMarker {
  constructor(private readonly heat: Heat) {
    super();
  }
  override eq(other: GutterMarker): boolean {
    return other instanceof HeatMarker && other.heat.share === this.heat.share && other.heat.text === this.heat.text;
  }
  override toDOM(): Node {
    const node = document.createElement("span");
    node.className = `heat heat${step(this.heat.share)}`;
    node.textContent = this.heat.text;
    return node;
  }
}

/** A step of the scale of heat, 1 to 6. */
export function step(share: number): number {
  if (share >= 0.5) return 6;
  if (share >= 0.25) return 5;
  if (share >= 0.1) return 4;
  if (share >= 0.05) return 3;
  if (share >= 0.01) return 2;
  return 1;
}

const heats = StateField.define<Map<number, Heat>>({
  create: () => new Map(),
  update(value, change) {
    // An edit makes the lines of a measurement wrong.
    let found = change.docChanged ? new Map<number, Heat>() : value;
    for (const effect of change.effects) if (effect.is(setHeat)) found = effect.value;
    return found;
  },
});

const heatLines = EditorView.decorations.compute([heats], (state): DecorationSet => {
  const found: TextRange<Decoration>[] = [];
  for (const [line, heat] of [...state.field(heats)].sort(([one], [other]) => one - other))
    if (line >= 1 && line <= state.doc.lines)
      found.push(Decoration.line({ class: `heatline heat${step(heat.share)}` }).range(state.doc.line(line).from));
  return Decoration.set(found);
});

const heatGutter = gutter({
  class: "heatgutter",
  lineMarker(view, block) {
    const heat = view.state.field(heats).get(view.state.doc.lineAt(block.from).number);
    return heat ? new HeatMarker(heat) : null;
  },
  lineMarkerChange: (update) => update.startState.field(heats) !== update.state.field(heats),
});

// A text that the page gives to the editor. The editor does not report it: with two texts in a frame, each report would
// bring the other one back, without end.
const ofPage = Annotation.define<boolean>();

function extensions(label: string, readOnly: boolean, changed: (text: string) => void) {
  return [
    lineNumbers(),
    heats,
    heatGutter,
    heatLines,
    lintGutter(),
    history(),
    drawSelection(),
    highlightSpecialChars(),
    highlightActiveLine(),
    highlightActiveLineGutter(),
    highlightSelectionMatches(),
    indentOnInput(),
    bracketMatching(),
    indentUnit.of("    "),
    syntaxHighlighting(colours),
    cpp(),
    // Escape and then Tab leaves the editor, as CodeMirror documents.
    keymap.of([...defaultKeymap, ...historyKeymap, ...searchKeymap, indentWithTab]),
    // Checks of accessibility ask for a place in the order of the focus, which the browser gives in any case.
    EditorView.contentAttributes.of({ "aria-label": label, tabindex: "0" }),
    EditorState.readOnly.of(readOnly),
    EditorView.updateListener.of((update) => {
      const isOfPage = update.transactions.some((change) => change.annotation(ofPage));
      if (update.docChanged && !isOfPage) changed(update.state.doc.toString());
    }),
  ];
}

export function Editor(props: {
  text: string;
  marks: Mark[];
  heat: Map<number, Heat>;
  goto?: { line: number };
  readOnly: boolean;
  onChange: (text: string) => void;
}) {
  const place = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView>(null);
  const changed = useRef(props.onChange);
  changed.current = props.onChange;

  useEffect(() => {
    const made = new EditorView({
      parent: place.current as HTMLDivElement,
      doc: props.text,
      extensions: extensions("Program in C", props.readOnly, (text) => changed.current(text)),
    });
    view.current = made;
    return () => made.destroy();
  }, []);

  useEffect(() => {
    const at = view.current;
    if (at && at.state.doc.toString() !== props.text)
      at.dispatch({
        changes: { from: 0, to: at.state.doc.length, insert: props.text },
        annotations: ofPage.of(true),
      });
  }, [props.text]);

  useEffect(() => {
    const at = view.current;
    if (at) at.dispatch(setDiagnostics(at.state, diagnostics(at.state, props.marks)));
    // The editor itself moves marks when its text changes.
  }, [props.marks]);

  useEffect(() => {
    view.current?.dispatch({ effects: setHeat.of(props.heat) });
  }, [props.heat]);

  useEffect(() => {
    const at = view.current;
    if (!at || !props.goto) return;
    const line = at.state.doc.line(Math.min(Math.max(props.goto.line, 1), at.state.doc.lines));
    at.dispatch({ selection: { anchor: line.from }, effects: EditorView.scrollIntoView(line.from, { y: "center" }) });
    at.focus();
  }, [props.goto]);

  return <div class="editor" ref={place} />;
}

function diagnostics(state: EditorState, marks: Mark[]): Diagnostic[] {
  return marks
    .map((mark) => {
      const line = state.doc.line(Math.min(Math.max(mark.line, 1), state.doc.lines));
      const from = Math.min(line.from + Math.max((mark.column ?? 1) - 1, 0), line.to);
      const to = mark.column ? Math.max(endOfWord(state, from), from) : line.to;
      return { from, to, severity: mark.severity, message: mark.message };
    })
    .sort((one, other) => one.from - other.from);
}

function endOfWord(state: EditorState, from: number): number {
  return state.wordAt(from)?.to ?? Math.min(from + 1, state.doc.lineAt(from).to);
}
