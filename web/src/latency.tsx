import type { Histogram, LineRateRow } from "./protocol";
import { type Page, shown } from "./store";
import { nanoseconds, whole } from "./text";
import { Status } from "./widgets";

const WIDTH = 720;
const HEIGHT = 220;
const LEFT = 52;
const BOTTOM = 34;
const TOP = 22;

export function Latency(props: { page: Page; current: string }) {
  const { run } = props.page.results;
  const result = shown(props.page.results, "run");
  const row = result?.report.rows.find((each) => each.nic === result.latency?.nic);
  return (
    <>
      <Status work={run} current={props.current} nothing="There is no run yet. Press Run." />
      {result && !result.latency && (
        <p class="note">This traffic has no latency of packets: choose generated or captured packets.</p>
      )}
      {result?.latency && (
        <>
          <h3>
            Latency through {result.latency.nic}, {whole(result.latency.packets)} packets
          </h3>
          <Picture histogram={result.latency} row={row} />
          {row?.traffic && <Percentiles row={row} />}
          <details>
            <summary>Numbers of the histogram</summary>
            <table class="grid">
              <thead>
                <tr>
                  <th>From</th>
                  <th>To</th>
                  <th>Packets</th>
                </tr>
              </thead>
              <tbody>
                {result.latency.counts.map((count, at) =>
                  count > 0 ? (
                    <tr key={at}>
                      <td>{nanoseconds(result.latency?.edges_ns[at] ?? 0)}</td>
                      <td>{nanoseconds(result.latency?.edges_ns[at + 1] ?? 0)}</td>
                      <td>{whole(count)}</td>
                    </tr>
                  ) : null,
                )}
              </tbody>
            </table>
          </details>
        </>
      )}
    </>
  );
}

/** A name at the right edge is left of its line. */
function isRight(x: number): boolean {
  return x > WIDTH - 70;
}

function percentiles(row: LineRateRow | undefined): [string, number][] {
  const traffic = row?.traffic;
  if (!traffic) return [];
  return [
    ["median", traffic.latency_ns_p50],
    ["p99", traffic.latency_ns_p99],
    ["p99.9", traffic.latency_ns_p999],
    ["maximum", traffic.latency_ns_max],
  ];
}

function Percentiles(props: { row: LineRateRow }) {
  return (
    <dl class="times">
      {percentiles(props.row).map(([name, ns]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{nanoseconds(ns)}</dd>
        </div>
      ))}
    </dl>
  );
}

function Picture(props: { histogram: Histogram; row: LineRateRow | undefined }) {
  const { edges_ns: edges, counts } = props.histogram;
  const first = edges[0];
  const last = edges[edges.length - 1];
  const most = Math.max(...counts, 1);
  // Equal latencies have one bin without width.
  const room = last > first ? last - first : Math.max(first, 1);
  const begin = last > first ? first : first - room / 2;
  const x = (ns: number) => LEFT + ((ns - begin) / room) * (WIDTH - LEFT - 10);
  // A logarithmic scale shows the rare packets of the tail.
  const y = (count: number) =>
    count <= 0 ? 0 : (Math.log10(1 + count) / Math.log10(1 + most)) * (HEIGHT - BOTTOM - TOP);
  const base = HEIGHT - BOTTOM;
  const powers = [1, 10, 100, 1000, 10000, 100000, 1000000].filter((count) => count <= most);
  const marks = percentiles(props.row).filter(([, ns]) => ns >= begin && ns <= begin + room);
  return (
    <svg
      class="histogram"
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      role="img"
      aria-label="Histogram of latency; its numbers follow"
    >
      {powers.map((count) => (
        <g key={count}>
          <line x1={LEFT} x2={WIDTH - 10} y1={base - y(count)} y2={base - y(count)} class="rule" />
          <text x={LEFT - 6} y={base - y(count) + 4} text-anchor="end">
            {whole(count)}
          </text>
        </g>
      ))}
      {counts.map((count, at) => {
        const left = x(edges[at]);
        const width = Math.max(x(edges[at + 1]) - left - 0.5, 1.5);
        return count > 0 ? (
          <rect key={at} x={left} y={base - y(count)} width={width} height={y(count)}>
            <title>{`${nanoseconds(edges[at])} to ${nanoseconds(edges[at + 1])}: ${whole(count)} packets`}</title>
          </rect>
        ) : null;
      })}
      {marks.map(([name, ns], at) => (
        <g key={name} class="mark">
          <line x1={x(ns)} x2={x(ns)} y1={TOP - 6} y2={base} />
          <text
            x={x(ns) + (isRight(x(ns)) ? -3 : 3)}
            y={TOP - 8 + (at % 2) * 11}
            text-anchor={isRight(x(ns)) ? "end" : "start"}
          >
            {name}
          </text>
        </g>
      ))}
      <line x1={LEFT} x2={WIDTH - 10} y1={base} y2={base} class="axis" />
      {[0, 0.25, 0.5, 0.75, 1].map((share) => (
        <text
          key={share}
          x={x(begin + share * room)}
          y={base + 16}
          text-anchor={share === 1 ? "end" : share === 0 ? "start" : "middle"}
        >
          {nanoseconds(begin + share * room)}
        </text>
      ))}
      <text x={WIDTH / 2} y={HEIGHT - 3} text-anchor="middle">
        latency; packets on a logarithmic scale
      </text>
    </svg>
  );
}
