import { useMemo, useState } from "preact/hooks";
import type { Card, CardValue } from "./protocol";
import { inUnit, quantity, Scale, STEPS } from "./quantity";
import type { Page, Store } from "./store";
import { Field, Text } from "./widgets";

/** On a narrow screen an open group would hide the results below it. */
const WIDE = matchMedia("(min-width: 861px)");

/** The choice of the card. */
export function CardPanel(props: { page: Page; store: Store }) {
  const { page, store } = props;
  const { setup, card, cardError, server } = page;
  const cards = server?.cards.filter((each) => each.takes_handlers) ?? [];
  return (
    <section class="panel" aria-labelledby="card-title">
      <h2 id="card-title">Card</h2>
      <Field label="Spec" hint={card && card.nic === setup.nics[0] ? card.title : undefined}>
        {(id) => (
          <select
            id={id}
            value={setup.nics[0] ?? ""}
            disabled={page.saved}
            onChange={(event) => store.edit({ nics: [event.currentTarget.value, ...setup.nics.slice(1)], set: {} })}
          >
            {!cards.some((each) => each.name === setup.nics[0]) && <option>{setup.nics[0]}</option>}
            {cards.map((each) => (
              <option key={each.name} value={each.name} title={each.title}>
                {each.name}
              </option>
            ))}
          </select>
        )}
      </Field>
      {cardError && (
        <p class="note bad" role="alert">
          {cardError.message}
        </p>
      )}
    </section>
  );
}

/** The values of the card's spec. */
export function ValuesPanel(props: { page: Page; store: Store }) {
  const { page, store } = props;
  const { setup, card } = page;
  const [filter, setFilter] = useState("");
  const changed = Object.entries(setup.set).map(([key, value]) => `${key}=${value}`);
  const groups = useMemo(() => grouped(card, filter), [card, filter]);
  return (
    <section class="panel" aria-labelledby="values-title">
      <h2 id="values-title">Values of the card</h2>
      <div class="pair">
        <Text label="Find a value" value={filter} onChange={setFilter} placeholder="cores, bank, buffer …" />
        <button
          type="button"
          disabled={changed.length === 0 || page.saved}
          onClick={() => store.edit({ set: {} })}
          title="Take the values of the spec again"
        >
          Reset all
        </button>
      </div>
      {changed.length > 0 && (
        <p class="note">
          Changed: <code>{changed.join(" ")}</code>
        </p>
      )}
      {groups.map(([group, values]) => (
        <details
          key={`${card?.nic} ${group} ${filter !== ""}`}
          open={filter !== "" || (group === "hpu" && WIDE.matches)}
          class="group"
        >
          <summary>
            {group} <small>{values.length}</small>
          </summary>
          {values.map((value) => (
            <Value key={value.key} value={value} page={page} store={store} />
          ))}
        </details>
      ))}
      {card && groups.length === 0 && <p class="note">No value has “{filter}” in its key or its description.</p>}
    </section>
  );
}

function grouped(card: Card | null, filter: string): [string, CardValue[]][] {
  const wanted = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const found = new Map<string, CardValue[]>();
  for (const value of card?.values ?? []) {
    const text = `${value.key} ${value.doc}`.toLowerCase();
    if (!wanted.every((word) => text.includes(word))) continue;
    const group = value.key.includes(".") ? value.key.slice(0, value.key.indexOf(".")) : "card";
    found.set(group, [...(found.get(group) ?? []), value]);
  }
  // Handler cores and their memory are changed most.
  const first = ["hpu", "memory", "link", "buffer"];
  const rank = (group: string) => (first.includes(group) ? first.indexOf(group) : first.length);
  // Values that a spec states are of more interest than defaults.
  const depth = (value: CardValue) => 2 * value.key.split(".").length + Number(value.kind === "default");
  for (const values of found.values()) values.sort((one, other) => depth(one) - depth(other));
  return [...found].sort(([one], [other]) => rank(one) - rank(other));
}

function Value(props: { value: CardValue; page: Page; store: Store }) {
  const { value, page, store } = props;
  const own = page.setup.set[value.key];
  const shown = own ?? value.value;
  const change = (text: string | undefined) => {
    const { [value.key]: _, ...others } = page.setup.set;
    store.edit({ set: text === undefined || text === "" ? others : { ...others, [value.key]: text } });
  };
  const wrong = page.cardError?.key === value.key;
  const id = `value-${value.key}`;
  return (
    <div class={`value ${own === undefined ? "" : "changed"}`}>
      <label for={id} title={value.doc}>
        <code>{value.key}</code>
      </label>
      <span class={`kind kind-${own === undefined ? value.kind : "override"}`}>
        {own === undefined ? value.kind : "changed"}
      </span>
      <Control id={id} value={value} shown={shown} wrong={wrong} disabled={page.saved} change={change} />
      <p class="about">
        <Range value={value} />
        {sentence(value.doc)} <span class="source">{sentence(`Source: ${value.source}`)}</span>
        {value.note && <span class="source"> {sentence(value.note)}</span>}{" "}
        {own !== undefined && (
          <button type="button" class="link" disabled={page.saved} onClick={() => change(undefined)}>
            Reset {value.key}
          </button>
        )}
      </p>
    </div>
  );
}

function sentence(text: string): string {
  const begun = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(begun) ? begun : `${begun}.`;
}

function Range(props: { value: CardValue }) {
  const { value } = props;
  // The choices are in the list itself.
  if (value.choices || !value.allowed) return null;
  return <span class="range">{sentence(`Allowed: ${value.allowed}`)} </span>;
}

function Control(props: {
  id: string;
  value: CardValue;
  shown: string;
  wrong: boolean;
  disabled: boolean;
  change: (text: string | undefined) => void;
}) {
  const { id, value, shown, wrong, disabled, change } = props;
  const choices = value.choices ?? (/^(true|false)$/.test(value.value) ? ["true", "false"] : null);
  if (choices)
    return (
      <select id={id} value={shown} disabled={disabled} onChange={(event) => change(event.currentTarget.value)}>
        {!choices.includes(shown) && <option>{shown}</option>}
        {choices.map((choice) => (
          <option key={choice}>{choice}</option>
        ))}
      </select>
    );
  const now = quantity(shown);
  // A replaced value has the name of its spec behind it.
  const base = quantity((value.replaces ?? value.value).replace(/\s*\([^()]*\)$/, ""));
  const field = (
    <input
      id={id}
      type="text"
      spellcheck={false}
      autocomplete="off"
      value={shown}
      disabled={disabled}
      aria-invalid={wrong}
      onChange={(event) => change(event.currentTarget.value.trim())}
      onKeyDown={(event) => {
        const step = event.key === "ArrowUp" ? 1 : event.key === "ArrowDown" ? -1 : 0;
        if (step === 0 || !now) return;
        event.preventDefault();
        change(`${Math.max(now.number + step, 0)}${now.gap}${now.unit}`);
      }}
    />
  );
  if (!now || !base) return field;
  const limit = (text: string | null) => {
    const found = text === null ? null : quantity(text);
    return found ? inUnit(found, base.unit) : null;
  };
  const isWhole = base.unit === "" || base.unit === "B" ? Number.isInteger(base.number) : false;
  const scale = new Scale(base.number, limit(value.least), limit(value.most), isWhole);
  const at = inUnit(now, base.unit) ?? base.number;
  const [low, high] = scale.ends;
  return (
    <>
      {field}
      <input
        type="range"
        min={0}
        max={STEPS}
        step={1}
        disabled={disabled || low === high}
        aria-label={`Slider of ${value.key}`}
        aria-valuetext={shown}
        title={`${low} to ${high} ${base.unit}`}
        value={Math.round(scale.place(at))}
        onInput={(event) => change(`${scale.value(Number(event.currentTarget.value))}${base.gap}${base.unit}`)}
      />
    </>
  );
}
