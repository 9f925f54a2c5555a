import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";
import type { Work } from "./model";
import type { Diagnostic, ErrorInfo } from "./protocol";
import { baseName } from "./text";

/** A field with its name beside it. */
export function Field(props: { label: string; hint?: string; children: (id: string) => ComponentChildren }) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{props.label}</label>
      {props.children(id)}
      {props.hint && <small>{props.hint}</small>}
    </div>
  );
}

export function Text(props: {
  label: string;
  value: string;
  onChange: (value: string) => void;
  placeholder?: string;
  hint?: string;
  disabled?: boolean;
}) {
  return (
    <Field label={props.label} hint={props.hint}>
      {(id) => (
        <input
          id={id}
          type="text"
          spellcheck={false}
          autocomplete="off"
          value={props.value}
          placeholder={props.placeholder}
          disabled={props.disabled}
          onInput={(event) => props.onChange(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}

export function Choice<Value extends string>(props: {
  label: string;
  value: Value;
  options: readonly (readonly [Value, string])[];
  onChange: (value: Value) => void;
  disabled?: boolean;
}) {
  return (
    <Field label={props.label}>
      {(id) => (
        <select
          id={id}
          value={props.value}
          disabled={props.disabled}
          onChange={(event) => props.onChange(event.currentTarget.value as Value)}
        >
          {props.options.map(([value, text]) => (
            <option key={value} value={value}>
              {text}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

/** A row of buttons; exactly one is pressed. */
export function Switch<Value extends string>(props: {
  label: string;
  value: Value;
  options: readonly (readonly [Value, string])[];
  onChange: (value: Value) => void;
  disabled?: boolean;
}) {
  return (
    <fieldset class="switch">
      <legend class="hidden">{props.label}</legend>
      {props.options.map(([value, text]) => (
        <button
          key={value}
          type="button"
          aria-pressed={value === props.value}
          disabled={props.disabled}
          onClick={() => props.onChange(value)}
        >
          {text}
        </button>
      ))}
    </fieldset>
  );
}

function place(each: Diagnostic): string {
  return `${baseName(each.file)}:${each.line}:${each.column}`;
}

/** An error in one line: the first one of the compiler, or the message. */
export function errorText(error: ErrorInfo): string {
  const errors = error.diagnostics?.filter((each) => each.severity === "error") ?? [];
  // Lines below the first one show the place in an expression.
  if (errors.length === 0) return error.message.split("\n")[0];
  const more = errors.length > 1 ? ` (and ${errors.length - 1} more)` : "";
  return `${place(errors[0])}: ${errors[0].message}${more}`;
}

/** Words instead of a result, or above one that is out of date. */
export function Status(props: { work: Work<unknown> | null; current: string; nothing: ComponentChildren }) {
  const { work } = props;
  if (!work) return <p class="note">{props.nothing}</p>;
  if (work.state === "running")
    return (
      <p class="note" role="status">
        <span class="spin" aria-hidden="true" /> Running{work.total > 0 ? `: ${work.done} of ${work.total}` : ""} …
      </p>
    );
  if (work.error)
    return (
      <div role="alert">
        <p class="note bad">{work.error.message}</p>
        <ul class="news">
          {work.error.diagnostics?.map((each, at) => (
            <li key={at} class={each.severity === "error" ? "bad" : ""}>
              {place(each)}: {each.severity}: {each.message}
            </li>
          ))}
        </ul>
      </div>
    );
  if (work.state === "cancelled") return <p class="note">Cancelled.</p>;
  if (props.current && work.key !== props.current)
    return <p class="note stale">Out of date: the program, the card or the traffic has changed since this run.</p>;
  return null;
}
