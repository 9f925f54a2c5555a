import { useLayoutEffect, useRef } from "preact/hooks";

const KEYS: readonly (readonly [string, string])[] = [
  ["Ctrl+Enter", "run"],
  ["Esc", "cancel the run; in the editor, Esc and then Tab leaves it"],
  ["Ctrl+S", "save the page as one file"],
  ["Alt+1 … Alt+8", "choose a tab of the results"],
  ["← →", "next tab; in the timeline, earlier and later"],
  ["↑ ↓", "next packet; in the timeline, the next lane; in a field of a value, one more or less"],
  ["+ −", "zoom the timeline"],
  ["Home or 0", "the whole run in the timeline"],
  ["Shift+← →", "the event before and behind, in the timeline"],
  ["P", "fit the chosen packet into the timeline"],
  ["Ctrl+wheel", "zoom the timeline at the pointer"],
  ["?", "this list"],
];

export function Help(props: { saved: boolean; onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  // Before the next key, which may be Escape.
  useLayoutEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} aria-labelledby="help-title" onClose={props.onClose}>
      <h2 id="help-title">Keyboard shortcuts</h2>
      <dl class="keys">
        {KEYS.map(([key, text]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
      {!props.saved && (
        <p>
          <a href="./LICENCES.txt">Licences of the page</a>
        </p>
      )}
      <form method="dialog">
        <button type="submit">Close</button>
      </form>
    </dialog>
  );
}
