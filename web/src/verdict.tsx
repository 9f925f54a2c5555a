import { COLOURS } from "./colours";
import type { Work } from "./model";
import type { CardPart, LineRateRow, RunResult } from "./protocol";
import { type Page, type Store, shown } from "./store";
import { fixed, nanoseconds, percent, times, whole } from "./text";
import { errorText, Status } from "./widgets";

export type Answer = "yes" | "barely" | "no" | "not judged" | "failed" | "running" | "none";

export const SIGNS: Record<Answer, string> = {
  yes: "✓",
  barely: "◐",
  no: "✕",
  "not judged": "?",
  failed: "!",
  running: "…",
  none: "–",
};

/** The answer of a run so far: that of the result, or the first one of the news. */
export function answerOf(run: Work<RunResult> | null): Answer {
  if (!run) return "none";
  if (run.error) return "failed";
  const row = run.result?.report.rows[0];
  if (row) return row.verdict;
  const early = run.news.findLast((news) => news.verdict !== null)?.verdict;
  return early ?? (run.state === "running" ? "running" : "none");
}

const WORDS = {
  running: "The first answer comes in a moment.",
  cancelled: "Cancelled.",
  failed: "Failed.",
  done: "No packet was measured.",
};

export function offered(row: LineRateRow): string {
  return row.traffic ? "offered rate" : "line rate";
}

export function subject(row: LineRateRow): string {
  return row.traffic ? row.nic : `${row.nic}, ${row.packet_bytes} B`;
}

export function Strip(props: { page: Page; store: Store }) {
  const { run } = props.page.results;
  const answer = answerOf(run);
  const row = shown(props.page.results, "run")?.report.rows[0];
  const running = run?.state === "running";
  return (
    <section class={`strip is-${answer.replace(" ", "-")}`} aria-label="Verdict">
      <div class="answer" role="status" aria-live="polite" data-answer={answer}>
        <span class="sign" aria-hidden="true">
          {SIGNS[answer]}
        </span>
        <span class="word">{answer === "none" ? "no run" : answer}</span>
      </div>
      <div class={`figures ${running && row && run.news.length === 0 ? "old" : ""}`}>
        {answer === "failed" && run?.error ? (
          <span class="bad">{errorText(run.error)}</span>
        ) : running && run.news.length > 0 ? (
          <span>{run.news.at(-1)?.text}</span>
        ) : row ? (
          <Figures row={row} />
        ) : (
          <span>
            {run
              ? WORDS[run.state]
              : (props.page.notice?.text ?? "Press Run to see whether the card sustains the traffic.")}
          </span>
        )}
      </div>
      <div class="doing">
        {running && (
          <>
            <progress
              aria-label="Progress of the run"
              max={run.total || 1}
              value={run.total > 0 ? run.done : undefined}
            />
            <button type="button" onClick={() => props.store.cancel()}>
              Cancel
            </button>
          </>
        )}
        {!running && run && run.elapsedMs > 0 && <span class="faint">{fixed(run.elapsedMs / 1000, 2)} s</span>}
      </div>
    </section>
  );
}

function Figures(props: { row: LineRateRow }) {
  const { row } = props;
  return (
    <>
      <Figure name="Sustainable rate" value={`${times(row.capacity_fraction)} ${offered(row)}`} />
      <Figure name="Bottleneck" value={row.bottleneck} />
      <Figure
        name="Handler time"
        value={`${nanoseconds(row.handler_ns)} of ${nanoseconds(row.handler_budget_ns)}`}
        title="Handler core time of a packet, and the time that the cores have for it"
      />
      {row.cycles_mean !== null && <Figure name="Cycles a packet" value={fixed(row.cycles_mean, 1)} />}
      <Figure name="Rate" value={`${fixed(row.packets_per_s / 1e6, 2)} Mpps`} />
    </>
  );
}

function Figure(props: { name: string; value: string; title?: string }) {
  return (
    <span class="figure" title={props.title}>
      <span class="faint">{props.name}</span> <b>{props.value}</b>
    </span>
  );
}

export function Verdict(props: { page: Page; current: string }) {
  const { run } = props.page.results;
  const result = shown(props.page.results, "run");
  return (
    <div class={run?.state === "running" ? "old" : ""}>
      <Status work={run} current={props.current} nothing="There is no run yet. Press Run." />
      {run && run.news.length > 0 && !run.result && (
        <ul class="news">
          {run.news.map((news, at) => (
            <li key={at}>{news.text}</li>
          ))}
        </ul>
      )}
      {result?.report.rows.map((row) => (
        <Row key={`${row.nic} ${row.packet_bytes}`} row={row} result={result} />
      ))}
      {result?.report.failed_points?.map((point) => (
        <p key={point.point} class="note bad">
          {point.point}: {point.text}
        </p>
      ))}
      {result && (
        <details class="report">
          <summary>Report as text</summary>
          <pre tabIndex={0}>{result.text}</pre>
        </details>
      )}
    </div>
  );
}

function Row(props: { row: LineRateRow; result: RunResult }) {
  const { row, result } = props;
  const sentences = result.sentences.find((each) => each.nic === row.nic)?.lines ?? [];
  const failed = result.report.failures.filter((each) => each.nic === row.nic);
  return (
    <article class="row">
      <h3>
        {subject(row)}: <b>{failed.length > 0 ? "failed" : row.verdict}</b>
      </h3>
      {failed.map((failure) => (
        <p key={failure.text} class="note bad">
          {failure.text} ({whole(failure.times)} times)
        </p>
      ))}
      <div class="halves">
        <div>
          <h4>Utilisation at the {offered(row)}</h4>
          <Bars parts={row.parts} />
        </div>
        <div>
          <h4>Packet disposition</h4>
          <Dispositions row={row} />
          <h4>Handlers</h4>
          <Handlers row={row} />
        </div>
      </div>
      {sentences.length > 0 && (
        <div class="sentences">
          {sentences.map((line) => (
            <p key={line}>{line}</p>
          ))}
        </div>
      )}
    </article>
  );
}

function Bars(props: { parts: CardPart[] }) {
  const most = Math.max(1.1, ...props.parts.map((part) => part.load)) * 1.02;
  // Loads far above 1 would make all others invisible.
  const scale = Math.min(most, 2);
  return (
    <table class="bars">
      <thead class="hidden">
        <tr>
          <th>Part</th>
          <th>Utilisation</th>
          <th>Headroom</th>
        </tr>
      </thead>
      <tbody>
        {props.parts.map((part) => (
          <tr key={`${part.part} ${part.name}`}>
            <th scope="row">
              {part.part}
              {part.name && <small> {part.name}</small>}
            </th>
            <td class="bar">
              <span class="rule barely" style={{ left: `${(100 * 0.9) / scale}%` }} title="barely from 90 %" />
              <span class="rule full" style={{ left: `${100 / scale}%` }} title="no above 100 %" />
              <span
                class={`fill ${part.load > 1 ? "over" : part.load >= 0.9 ? "near" : ""}`}
                style={{ width: `${Math.min((100 * part.load) / scale, 100)}%` }}
              />
            </td>
            <td class="number">
              {part.load > 0 ? percent(part.load) : "idle"}
              {part.load > 0 && (
                <small>
                  {part.headroom >= 0 ? ` ${percent(part.headroom)} free` : ` ${percent(-part.headroom)} short`}
                </small>
              )}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Dispositions(props: { row: LineRateRow }) {
  const { row } = props;
  const traffic = row.traffic;
  const counts: [string, number, boolean][] = traffic
    ? [
        ["passed", traffic.passed, false],
        ["dropped by handlers", traffic.dropped_by_handler, false],
        ["failed", traffic.failed, true],
        ["lost: packet buffer full", traffic.dropped_by_overload, true],
        ["lost: no room in the host", traffic.dropped_at_host, true],
        ["lost: no room before the port", traffic.dropped_at_link, true],
      ]
    : [
        ["processed", row.packet_dispositions.processed, false],
        ["dropped by handlers", row.packet_dispositions.dropped, false],
        ["to host", row.packet_dispositions.proceeded, false],
        ["failed", row.packet_dispositions.failed, true],
      ];
  const all = counts.reduce((sum, [, count]) => sum + count, 0) || 1;
  const parts = counts.map((each, at) => ({ each, colour: COLOURS[at] })).filter(({ each }) => each[1] > 0);
  return (
    <>
      <div class="stack" aria-hidden="true">
        {parts.map(({ each: [name, count], colour }) => (
          <span key={name} style={{ width: `${(100 * count) / all}%`, background: colour }} title={name} />
        ))}
      </div>
      <ul class="legend">
        {parts.map(({ each: [name, count, bad], colour }) => (
          <li key={name} class={bad ? "bad" : ""}>
            <i style={{ background: colour }} aria-hidden="true" />
            {name} <b>{percent(count / all)}</b> <small>{whole(count)}</small>
          </li>
        ))}
      </ul>
    </>
  );
}

function Handlers(props: { row: LineRateRow }) {
  return (
    <div class="wide" tabIndex={0} role="group" aria-label="Table of handlers">
      <table class="grid">
        <thead>
          <tr>
            <th class="text">Handler</th>
            <th>Runs</th>
            <th>Cycles</th>
            <th>p99</th>
            <th>Instr.</th>
            <th>Time</th>
            <th>Queued</th>
          </tr>
        </thead>
        <tbody>
          {props.row.handlers.map((handler) => (
            <tr key={handler.handler}>
              <td class="text">{handler.handler}</td>
              <td>{whole(handler.runs)}</td>
              <td>{fixed(handler.cycles_mean, 1)}</td>
              <td>{whole(handler.cycles_p99)}</td>
              <td>{fixed(handler.instructions_mean, 1)}</td>
              <td>{nanoseconds(handler.time_ns_mean)}</td>
              <td>{nanoseconds(handler.queued_ns_mean)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
