import type { LineRateRow } from "./protocol";
import { type Page, type Store, shown } from "./store";
import { fixed, nanoseconds, percent, times } from "./text";
import { SIGNS, subject } from "./verdict";
import { Status } from "./widgets";

type Figure = readonly [string, (row: LineRateRow) => number | null, (value: number) => string];

const FIGURES: readonly Figure[] = [
  ["Sustainable rate / offered", (row) => row.capacity_fraction, times],
  ["Packets a second", (row) => row.packets_per_s / 1e6, (value) => `${fixed(value, 2)} M`],
  ["Handler time", (row) => row.handler_ns, nanoseconds],
  ["Cycles", (row) => row.cycles_mean, (value) => fixed(value, 1)],
  ["Cycles, p99", (row) => row.cycles_p99, (value) => fixed(value, 0)],
  ["Instructions", (row) => row.instructions_mean, (value) => fixed(value, 1)],
  ["Latency, median", (row) => row.traffic?.latency_ns_p50 ?? null, nanoseconds],
  ["Latency, p99", (row) => row.traffic?.latency_ns_p99 ?? null, nanoseconds],
];

export function Compare(props: { page: Page; store: Store; current: string }) {
  const { page, store } = props;
  const { run, previous } = page.results;
  const rows = shown(page.results, "run")?.report.rows ?? [];
  const before = previous?.result.report.rows ?? [];
  const nics = page.setup.nics;
  const limit = page.server?.limits.cards_per_request ?? 1;
  const others = page.server?.cards.filter((card) => card.takes_handlers && !nics.includes(card.name)) ?? [];
  return (
    <>
      <div class="tools">
        <label for="compare-add">Compare with card</label>
        <select
          id="compare-add"
          value=""
          disabled={page.saved || nics.length >= limit}
          onChange={(event) => event.currentTarget.value && store.edit({ nics: [...nics, event.currentTarget.value] })}
        >
          <option value="">{nics.length >= limit ? `at most ${limit} cards` : "add a card …"}</option>
          {others.map((card) => (
            <option key={card.name}>{card.name}</option>
          ))}
        </select>
        {nics.slice(1).map((nic) => (
          <button
            key={nic}
            type="button"
            disabled={page.saved}
            aria-label={`Remove ${nic}`}
            onClick={() => store.edit({ nics: nics.filter((each) => each !== nic) })}
          >
            {nic} ×
          </button>
        ))}
      </div>
      <Status work={run} current={props.current} nothing="There is no run yet. Press Run." />
      {rows.length > 0 && <Table rows={rows} before={before} what={previous?.what ?? ""} />}
      {rows.length > 0 && before.length === 0 && (
        <p class="note">Change the program, the card or the traffic: the previous run is then compared here.</p>
      )}
    </>
  );
}

function Table(props: { rows: LineRateRow[]; before: LineRateRow[]; what: string }) {
  const { rows, before } = props;
  const columns = [
    ...before.map((row) => ({ row, name: "previous" })),
    ...rows.map((row) => ({ row, name: "present" })),
  ];
  const base = before[0] ?? rows[0];
  return (
    <>
      <div class="wide" tabIndex={0} role="group" aria-label="Comparison">
        <table class="grid compare">
          <thead>
            <tr>
              <th class="text">Figure</th>
              {columns.map(({ row, name }, at) => (
                <th key={at}>
                  {subject(row)}
                  <small> {name}</small>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            <tr>
              <td class="text">Sustained</td>
              {columns.map(({ row }, at) => (
                <td key={at} class={`word-${row.verdict.replace(" ", "-")}`}>
                  {SIGNS[row.verdict]} {row.verdict}
                </td>
              ))}
            </tr>
            <tr>
              <td class="text">Bottleneck</td>
              {columns.map(({ row }, at) => (
                <td key={at}>{row.bottleneck}</td>
              ))}
            </tr>
            {FIGURES.filter(([, figure]) => columns.some(({ row }) => figure(row) !== null)).map(
              ([title, figure, text]) => (
                <tr key={title}>
                  <td class="text">{title}</td>
                  {columns.map(({ row }, at) => (
                    <td key={at}>
                      <Value value={figure(row)} base={row === base ? null : figure(base)} text={text} />
                    </td>
                  ))}
                </tr>
              ),
            )}
          </tbody>
        </table>
      </div>
      {props.what && <p class="note">Previous run: {props.what}. Differences are relative to the first column.</p>}
    </>
  );
}

function Value(props: { value: number | null; base: number | null; text: (value: number) => string }) {
  const { value, base } = props;
  if (value === null) return <>–</>;
  const change = base ? value / base - 1 : 0;
  return (
    <>
      {props.text(value)}
      {Math.abs(change) >= 0.0005 && (
        <small>
          {" "}
          {change > 0 ? "+" : "−"}
          {percent(Math.abs(change))}
        </small>
      )}
    </>
  );
}
