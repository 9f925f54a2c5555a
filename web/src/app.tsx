import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { CardPanel, ValuesPanel } from "./card";
import { Compare } from "./compare";
import { Editor, type Mark } from "./editor";
import { Findings } from "./findings";
import { Help } from "./help";
import { Latency } from "./latency";
import { kindOf, TABS, type Tab } from "./model";
import { OptionsPanel } from "./options";
import { Packets } from "./packets";
import type { ErrorInfo } from "./protocol";
import { download, savedPage } from "./save";
import { heatOf, Instructions, Source } from "./source";
import { type Page, type Store, words } from "./store";
import { baseName } from "./text";
import { type Theme, useTheme } from "./theme";
import { Timeline } from "./timeline/timeline";
import { TrafficPanel } from "./traffic";
import { Strip, Verdict } from "./verdict";

function usePage(store: Store): Page {
  const [page, setPage] = useState(store.page);
  useEffect(() => store.watch(() => setPage(store.page)), [store]);
  return page;
}

export function App(props: { store: Store }) {
  const { store } = props;
  const page = usePage(store);
  const [theme, setTheme, dark] = useTheme();
  const [help, setHelp] = useState(false);
  const [goto, setGoto] = useState<{ line: number }>();
  const [over, setOver] = useState(false);
  useShortcuts(store, () => setHelp(true));
  const toLine = (line: number) => setGoto({ line });
  if (!page.ready)
    return (
      <p class="note start" role="status">
        Reading the server …
      </p>
    );
  return (
    <div
      class={`app ${over ? "over" : ""}`}
      onDragOver={(event) => {
        if (page.saved || !event.dataTransfer?.types.includes("Files")) return;
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={(event) => event.relatedTarget === null && setOver(false)}
      onDrop={(event) => {
        setOver(false);
        const file = event.dataTransfer?.files[0];
        if (page.saved || !file) return;
        event.preventDefault();
        void dropped(store, file);
      }}
    >
      <Header page={page} store={store} theme={theme} setTheme={setTheme} onHelp={() => setHelp(true)} />
      <Banners page={page} store={store} />
      <Strip page={page} store={store} />
      <main class="panes">
        <ProgramPane page={page} store={store} goto={goto} />
        <div class="settings">
          <CardPanel page={page} store={store} />
          <TrafficPanel page={page} store={store} />
          <OptionsPanel page={page} store={store} />
          <ValuesPanel page={page} store={store} />
        </div>
        <ResultPane page={page} store={store} dark={dark} toLine={toLine} />
      </main>
      {help && <Help saved={page.saved} onClose={() => setHelp(false)} />}
    </div>
  );
}

const CODE = /\.(c|h)$/i;

/** A dropped program goes to the editor, and any other file is read as a capture. */
async function dropped(store: Store, file: File): Promise<void> {
  if (!CODE.test(file.name)) return store.upload(file);
  store.edit({ program: { origin: "page", name: file.name, text: await file.text() } });
}

function Header(props: {
  page: Page;
  store: Store;
  theme: Theme;
  setTheme: (theme: Theme) => void;
  onHelp: () => void;
}) {
  const { page, store } = props;
  const running = page.results.run?.state === "running";
  const copied = (text: string, name: string) =>
    navigator.clipboard.writeText(text).then(
      () => store.tell(`${name} copied.`),
      () => store.tell(`The browser does not let the page copy. ${name}: ${text}`, true),
    );
  const save = async () => {
    try {
      download(`${baseName(page.setup.program.name).replace(/\.\w+$/, "")}-workbench.html`, await savedPage(page));
      store.tell("Saved as one file, which opens without nicety.");
    } catch (error) {
      store.tell(`Not saved: ${words(error)}`, true);
    }
  };
  return (
    <header class="bar">
      <h1>
        nicety <span class="faint">workbench</span>
      </h1>
      {page.saved ? (
        <span class="faint">A saved page, made by nicety {page.server?.version}: it can only be read.</span>
      ) : (
        <>
          <button type="button" class="primary" disabled={running} onClick={() => store.run()} title="Ctrl+Enter">
            Run
          </button>
          <label class="check">
            <input
              type="checkbox"
              checked={page.auto}
              onChange={(event) => store.change({ auto: event.currentTarget.checked })}
            />{" "}
            Run on change
          </label>
        </>
      )}
      <span class="grow" />
      {!page.saved && (
        <>
          <button type="button" onClick={() => void store.address().then((address) => copied(address, "Address"))}>
            Copy address
          </button>
          <button type="button" onClick={() => void save()} title="Ctrl+S" disabled={!page.results.run}>
            Save
          </button>
        </>
      )}
      <label class="hidden" for="theme">
        Colours
      </label>
      <select id="theme" value={props.theme} onChange={(event) => props.setTheme(event.currentTarget.value as Theme)}>
        <option value="auto">Auto</option>
        <option value="light">Light</option>
        <option value="dark">Dark</option>
      </select>
      <button type="button" onClick={props.onHelp} aria-label="Keyboard shortcuts" title="Keyboard shortcuts: ?">
        ?
      </button>
    </header>
  );
}

function Banners(props: { page: Page; store: Store }) {
  const { page, store } = props;
  return (
    <>
      {page.lost !== null && !page.saved && (
        <p class="banner bad" role="alert">
          {page.server
            ? `${page.lost} Your edits are kept; the page connects again by itself.`
            : `${page.lost} Open the address that nicety serve prints.`}
        </p>
      )}
      {page.notice && (
        <p class={`banner ${page.notice.error ? "bad" : ""}`} role={page.notice.error ? "alert" : "status"}>
          {page.notice.text}
          <button type="button" class="link" onClick={() => store.tell("")}>
            Close
          </button>
        </p>
      )}
    </>
  );
}

function ProgramPane(props: { page: Page; store: Store; goto?: { line: number } }) {
  const { page, store } = props;
  const { setup, results } = page;
  const input = useRef<HTMLInputElement>(null);
  const current = store.key();
  const marks = useMemo(
    () => marksOf(results.run?.error ?? null, setup.program.name),
    [results.run?.error, setup.program.name],
  );
  const fresh = results.profile?.key === current || page.saved;
  const heat = useMemo(
    () => heatOf(fresh ? results.profile?.result : null, setup.program.name),
    [results.profile?.result, fresh],
  );
  const nic = setup.nics[0];
  const library = page.server?.library ?? [];
  const kind = kindOf(page.server, nic);
  const fitting = library.filter((program) => program.cards.includes(kind));
  const others = library.filter((program) => !program.cards.includes(kind));
  const file = page.server?.file;
  return (
    <section class="program" aria-labelledby="program-title">
      <div class="tools">
        <h2 id="program-title">{baseName(setup.program.name)}</h2>
        <span class="grow" />
        <label for="library" class="hidden">
          Program of the library
        </label>
        <select
          id="library"
          value=""
          disabled={page.saved}
          onChange={(event) => {
            const { value } = event.currentTarget;
            event.currentTarget.value = "";
            if (value === " file" && file) store.edit({ program: file });
            else if (value) void store.open(value);
          }}
        >
          <option value="">Library …</option>
          {file && <option value=" file">{baseName(file.name)} (the opened file)</option>}
          <optgroup label={`For ${nic}`}>
            {fitting.map((program) => (
              <option key={program.name}>{program.name}</option>
            ))}
          </optgroup>
          <optgroup label="For other cards">
            {others.map((program) => (
              <option key={program.name}>{program.name}</option>
            ))}
          </optgroup>
        </select>
        <button type="button" disabled={page.saved} onClick={() => input.current?.click()}>
          Open
        </button>
        <input
          ref={input}
          class="hidden"
          type="file"
          accept=".c,.h,text/x-csrc"
          tabIndex={-1}
          aria-label="File of the program"
          onChange={(event) => {
            const chosen = event.currentTarget.files?.[0];
            event.currentTarget.value = "";
            if (chosen) void dropped(store, chosen);
          }}
        />
      </div>
      <Editor
        text={setup.program.text}
        marks={marks}
        heat={heat}
        goto={props.goto}
        readOnly={page.saved}
        onChange={(text) => store.edit({ program: { ...setup.program, text } })}
      />
    </section>
  );
}

/** The compiler's messages at the lines of the program. */
function marksOf(error: ErrorInfo | null, name: string): Mark[] {
  if (!error) return [];
  const own = (error.diagnostics ?? []).filter(
    (each) => each.severity !== "note" && baseName(each.file) === baseName(name),
  );
  if (own.length > 0)
    return own.map(({ line, column, message, severity }) => ({
      line,
      column,
      message,
      severity: severity === "warning" ? "warning" : "error",
    }));
  if (error.line === undefined) return [];
  return [{ line: error.line, column: error.column, message: error.message, severity: "error" }];
}

function ResultPane(props: { page: Page; store: Store; dark: boolean; toLine: (line: number) => void }) {
  const { page, store } = props;
  const { tab } = page.view;
  const current = page.saved ? "" : store.key();
  const command =
    page.results[tab === "findings" ? "check" : tab === "source" || tab === "instructions" ? "profile" : "run"]
      ?.command;
  return (
    <section class="results" aria-label="Results">
      <Tabs tab={tab} onTab={(next) => store.look({ tab: next })} />
      {/* Another tab begins at its top. */}
      <div
        key={tab}
        class={`sheet sheet-${tab}`}
        role="tabpanel"
        id="sheet"
        aria-labelledby={`tab-${tab}`}
        tabIndex={-1}
      >
        {tab === "verdict" && <Verdict page={page} current={current} />}
        {tab === "source" && <Source page={page} current={current} goto={props.toLine} />}
        {tab === "instructions" && <Instructions page={page} current={current} goto={props.toLine} />}
        {tab === "timeline" && (
          <Timeline
            part={page.results.timeline}
            view={page.view}
            dark={props.dark}
            onLook={(part) => store.look(part)}
          />
        )}
        {tab === "packets" && <Packets page={page} store={store} />}
        {tab === "latency" && <Latency page={page} current={current} />}
        {tab === "compare" && <Compare page={page} store={store} current={current} />}
        {tab === "findings" && <Findings page={page} store={store} current={current} goto={props.toLine} />}
      </div>
      <CommandLine command={command ?? null} store={store} />
    </section>
  );
}

function Tabs(props: { tab: Tab; onTab: (tab: Tab) => void }) {
  const { tab, onTab } = props;
  const move = (event: KeyboardEvent) => {
    const at = TABS.findIndex(([name]) => name === tab);
    const to: Record<string, number> = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: TABS.length - 1 };
    if (!(event.key in to)) return;
    event.preventDefault();
    const next = TABS[(to[event.key] + TABS.length) % TABS.length][0];
    onTab(next);
    document.getElementById(`tab-${next}`)?.focus();
  };
  return (
    <div class="tabs" role="tablist" aria-label="Results">
      {TABS.map(([name, title], at) => (
        <button
          key={name}
          type="button"
          role="tab"
          id={`tab-${name}`}
          aria-selected={name === tab}
          aria-controls="sheet"
          tabIndex={name === tab ? 0 : -1}
          title={`Alt+${at + 1}`}
          onClick={() => onTab(name)}
          onKeyDown={move}
        >
          {title}
        </button>
      ))}
    </div>
  );
}

function CommandLine(props: { command: { text: string; note: string | null } | null; store: Store }) {
  const { command, store } = props;
  if (!command) return null;
  return (
    <div class="command">
      <span class="faint" id="command-title">
        Command
      </span>
      <code tabIndex={0} role="group" aria-labelledby="command-title">
        {command.text}
      </code>
      {command.note && <small>{command.note}</small>}
      <button
        type="button"
        onClick={() =>
          navigator.clipboard.writeText(command.text).then(
            () => store.tell("Command copied."),
            () => store.tell("The browser does not let the page copy: select the command.", true),
          )
        }
      >
        Copy command
      </button>
    </div>
  );
}

function useShortcuts(store: Store, help: () => void): void {
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      // On some keyboards Alt makes other characters of digits.
      const digit = Number(/^Digit(\d)$/.exec(event.code)?.[1] ?? 0);
      const target = event.target instanceof HTMLElement ? event.target : null;
      const typing = target?.closest("input, textarea, select, .cm-editor") !== null && target !== null;
      if ((event.ctrlKey || event.metaKey) && event.key === "Enter") store.run();
      else if ((event.ctrlKey || event.metaKey) && event.key === "s")
        document.querySelector<HTMLButtonElement>('[title="Ctrl+S"]')?.click();
      else if (event.altKey && digit >= 1 && digit <= TABS.length) store.look({ tab: TABS[digit - 1][0] });
      else if (event.key === "Escape" && !typing) return store.cancel();
      else if (event.key === "?" && !typing) help();
      else return;
      event.preventDefault();
      event.stopPropagation();
    };
    // Before the editor, which has another use of Ctrl+Enter.
    window.addEventListener("keydown", pressed, { capture: true });
    return () => window.removeEventListener("keydown", pressed, { capture: true });
  }, [store]);
}
