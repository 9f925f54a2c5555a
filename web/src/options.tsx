import type { Options } from "./model";
import type { Page, Store } from "./store";
import { Field, Text } from "./widgets";

/** The names, the macros, the steering rules and the state of the program's handlers. */
export function OptionsPanel(props: { page: Page; store: Store }) {
  const { page, store } = props;
  const { options } = page.setup;
  const set = (part: Partial<Options>) => store.edit({ options: { ...options, ...part } });
  return (
    <section class="panel" aria-labelledby="options-title">
      <h2 id="options-title">Handlers</h2>
      <fieldset class="plain" disabled={page.saved}>
        <legend class="hidden">Handlers</legend>
        <details class="group">
          <summary>Names, macros, rules and state</summary>
          <div class="fields">
            <Text
              label="Header handler"
              value={options.header}
              placeholder="header_handler"
              onChange={(header) => set({ header })}
            />
            <Text
              label="Payload handler"
              value={options.payload}
              placeholder="payload_handler"
              onChange={(payload) => set({ payload })}
            />
            <Text
              label="Completion handler"
              value={options.completion}
              placeholder="completion_handler"
              onChange={(completion) => set({ completion })}
            />
            <Text label="State (B)" value={options.state} placeholder="default" onChange={(state) => set({ state })} />
          </div>
          <Text
            label="Macros"
            value={options.defines}
            hint="NAME or NAME=VALUE, separated by spaces"
            onChange={(defines) => set({ defines })}
          />
          <Field label="Steering rules, one a line" hint="udp dport=53; of Ethernet cards; by default any">
            {(id) => (
              <textarea
                id={id}
                rows={2}
                spellcheck={false}
                value={options.rules}
                onInput={(event) => set({ rules: event.currentTarget.value })}
              />
            )}
          </Field>
        </details>
      </fieldset>
    </section>
  );
}
