import { useEffect, useMemo, useRef } from "preact/hooks";
import { type Heat, step } from "./editor";
import type { ProfiledInstruction, ProfileResult, ProfileRow } from "./protocol";
import { type Page, shown } from "./store";
import { baseName, fixed, percent, waits, whole } from "./text";
import { Status } from "./widgets";

interface LineFigures {
  cycles: number;
  p99: number;
  executions: number;
  causes: Record<string, number>;
}

/** The figures of the lines of a file. Functions of one line are added. */
function linesOf(row: ProfileRow, file: string): Map<number, LineFigures> {
  const found = new Map<number, LineFigures>();
  for (const line of row.lines) {
    if (line.file === null || line.line === null || !same(line.file, file)) continue;
    const before = found.get(line.line);
    const causes = { ...before?.causes };
    for (const [cause, cycles] of Object.entries(line.causes)) causes[cause] = (causes[cause] ?? 0) + cycles;
    found.set(line.line, {
      cycles: (before?.cycles ?? 0) + line.cycles,
      p99: Math.max(before?.p99 ?? 0, line.cycles_p99),
      executions: (before?.executions ?? 0) + line.executions,
      causes,
    });
  }
  return found;
}

function same(one: string, other: string): boolean {
  return one === other || baseName(one) === baseName(other);
}

/** The heat of the program's lines, for the editor. */
export function heatOf(result: ProfileResult | null | undefined, name: string): Map<number, Heat> {
  const row = result?.rows[0];
  const heat = new Map<number, Heat>();
  if (!row) return heat;
  const own = result.sources.find((source) => source.is_program)?.file ?? name;
  for (const [line, figures] of linesOf(row, own))
    heat.set(line, { share: figures.cycles / row.cycles, text: fixed(figures.cycles / row.packets, 1) });
  return heat;
}

export function Source(props: { page: Page; current: string; goto: (line: number) => void }) {
  const { profile } = props.page.results;
  const result = shown(props.page.results, "profile");
  const row = result?.rows[0];
  return (
    <>
      <Status work={profile} current={props.current} nothing="Press Run: the profile is made for this tab." />
      {row && (
        <>
          <p class="note">
            {row.nic}: {fixed(row.cycles_mean, 1)} cycles a packet, {whole(row.packets)} packets of {row.packet_bytes} B
            {Object.keys(row.causes).length > 0 && `; waits: ${waits(row.causes, row.packets) || "none"}`}
          </p>
          {row.missing.map((words) => (
            <p key={words} class="note stale">
              {words}
            </p>
          ))}
          {result?.sources.map((source) => (
            <File key={source.file} source={source} row={row} goto={source.is_program ? props.goto : undefined} />
          ))}
          <Locks row={row} />
        </>
      )}
    </>
  );
}

const AROUND = 2;

function File(props: {
  source: { file: string; is_program: boolean; text: string };
  row: ProfileRow;
  goto?: (line: number) => void;
}) {
  const { source, row } = props;
  const lines = useMemo(() => linesOf(row, source.file), [row, source.file]);
  const table = useRef<HTMLTableElement>(null);
  useEffect(() => {
    const hottest = source.is_program ? table.current?.querySelector(".heat6, .heat5, .heat4") : null;
    const sheet = table.current?.closest(".sheet");
    if (!hottest || !sheet) return;
    // Only the sheet scrolls, and not the page around it.
    const { top } = sheet.getBoundingClientRect();
    sheet.scrollTop += hottest.getBoundingClientRect().top - top - sheet.clientHeight / 2;
  }, [row]);
  const text = source.text.split("\n");
  if (text.at(-1) === "") text.pop();
  if (lines.size === 0) return null;
  const near = (at: number) => {
    for (let by = -AROUND; by <= AROUND; by += 1) if (lines.has(at + by)) return true;
    return false;
  };
  const numbers = text.map((_, at) => at + 1).filter((number) => source.is_program || near(number));
  return (
    <section>
      <h3>{baseName(source.file)}</h3>
      <div class="wide" tabIndex={0} role="group" aria-label={`Lines of ${baseName(source.file)}`}>
        <table class="grid code" ref={table}>
          <thead>
            <tr>
              <th>Line</th>
              <th>Cycles</th>
              <th>p99</th>
              <th>%</th>
              <th>Instr.</th>
              <th class="text">Source</th>
              <th class="text">Waits</th>
            </tr>
          </thead>
          <tbody>
            {numbers.map((number) => {
              const found = lines.get(number);
              const share = found ? found.cycles / row.cycles : 0;
              return (
                <tr key={number} class={found ? `heatline heat${step(share)}` : "cold"}>
                  <td>
                    {props.goto ? (
                      <button
                        type="button"
                        class="link"
                        onClick={() => props.goto?.(number)}
                        aria-label={`Go to line ${number}`}
                      >
                        {number}
                      </button>
                    ) : (
                      number
                    )}
                  </td>
                  <td>{found ? fixed(found.cycles / row.packets, 1) : ""}</td>
                  <td>{found ? whole(found.p99) : ""}</td>
                  <td>{found ? fixed(100 * share, 1) : ""}</td>
                  <td>{found ? fixed(found.executions / row.packets, 1) : ""}</td>
                  <td class="text">{text[number - 1]}</td>
                  <td class="text waits">{found ? waits(found.causes, row.packets) : ""}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function Locks(props: { row: ProfileRow }) {
  const { row } = props;
  return (
    <>
      {row.locks.length > 0 && (
        <section>
          <h3>Locks</h3>
          <div class="wide" tabIndex={0} role="group" aria-label="Table of locks">
            <table class="grid">
              <thead>
                <tr>
                  <th class="text">Lock</th>
                  <th class="text">Acquired</th>
                  <th class="text">Released</th>
                  <th class="text">Waited</th>
                  <th>Waits</th>
                  <th>Wait, cycles a packet</th>
                  <th>Held</th>
                  <th>Handover</th>
                </tr>
              </thead>
              <tbody>
                {row.locks.map((lock) => (
                  <tr key={lock.word}>
                    <td class="text">{lock.variable ?? lock.word}</td>
                    <td class="text">{baseName(lock.acquired_at)}</td>
                    <td class="text">{lock.released_at ? baseName(lock.released_at) : "-"}</td>
                    <td class="text">{baseName(lock.waited_at)}</td>
                    <td>{whole(lock.waits)}</td>
                    <td>{fixed(lock.wait_cycles, 1)}</td>
                    <td>{fixed(lock.held_cycles, 1)}</td>
                    <td>{fixed(lock.handover_cycles, 1)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </section>
      )}
      {row.banks.some((bank) => bank.wait_cycles >= 0.01) && (
        <section>
          <h3>Banks that handlers wait for</h3>
          <table class="grid">
            <thead>
              <tr>
                <th class="text">Bank</th>
                <th class="text">Data</th>
                <th>Waits</th>
                <th>Cycles a packet</th>
              </tr>
            </thead>
            <tbody>
              {row.banks
                .filter((bank) => bank.wait_cycles >= 0.01)
                .map((bank) => (
                  <tr key={`${bank.level} ${bank.cluster} ${bank.bank} ${bank.data}`}>
                    <td class="text">
                      {bank.bank} of {bank.level}
                    </td>
                    <td class="text">{bank.data}</td>
                    <td>{whole(bank.waits)}</td>
                    <td>{fixed(bank.wait_cycles, 2)}</td>
                  </tr>
                ))}
            </tbody>
          </table>
        </section>
      )}
    </>
  );
}

export function Instructions(props: { page: Page; current: string; goto: (line: number) => void }) {
  const { profile } = props.page.results;
  const result = shown(props.page.results, "profile");
  const row = result?.rows[0];
  const own = result?.sources.find((source) => source.is_program)?.file;
  return (
    <>
      <Status work={profile} current={props.current} nothing="Press Run: the profile is made for this tab." />
      {row &&
        bySymbol(row.instructions).map(([symbol, instructions]) => (
          <section key={symbol}>
            <h3>
              {symbol}{" "}
              <small>{percent(instructions.reduce((sum, each) => sum + each.cycles, 0) / row.cycles)} of cycles</small>
            </h3>
            <div class="wide" tabIndex={0} role="group" aria-label={`Instructions of ${symbol}`}>
              <table class="grid code">
                <thead>
                  <tr>
                    <th class="text">Address</th>
                    <th>Runs</th>
                    <th>Cycles</th>
                    <th>p99</th>
                    <th>%</th>
                    <th class="text">Instruction</th>
                    <th class="text">Line</th>
                    <th class="text">Waits</th>
                  </tr>
                </thead>
                <tbody>
                  {instructions.map((each) => (
                    <Instruction key={each.address} each={each} row={row} own={own} goto={props.goto} />
                  ))}
                </tbody>
              </table>
            </div>
          </section>
        ))}
    </>
  );
}

function Instruction(props: {
  each: ProfiledInstruction;
  row: ProfileRow;
  own?: string;
  goto: (line: number) => void;
}) {
  const { each, row } = props;
  const share = each.cycles / row.cycles;
  const line = row.lines[each.line];
  const place = line?.file && line.line ? `${baseName(line.file)}:${line.line}` : "";
  const isOwn = line?.file && props.own ? same(line.file, props.own) : false;
  return (
    <tr class={`heatline heat${step(share)}`}>
      <td class="text">{each.address.toString(16)}</td>
      <td>{fixed(each.executions / row.packets, 1)}</td>
      <td>{fixed(each.cycles / row.packets, 1)}</td>
      <td>{whole(each.cycles_p99)}</td>
      <td>{fixed(100 * share, 1)}</td>
      <td class="text">{each.text}</td>
      <td class="text">
        {isOwn ? (
          <button type="button" class="link" onClick={() => props.goto(line.line ?? 1)} aria-label={`Go to ${place}`}>
            {place}
          </button>
        ) : (
          place
        )}
      </td>
      <td class="text waits">{waits(each.causes, row.packets)}</td>
    </tr>
  );
}

function bySymbol(instructions: ProfiledInstruction[]): [string, ProfiledInstruction[]][] {
  const found = new Map<string, ProfiledInstruction[]>();
  for (const each of instructions) {
    const symbol = each.symbol ?? "(without a symbol)";
    found.set(symbol, [...(found.get(symbol) ?? []), each]);
  }
  return [...found];
}
