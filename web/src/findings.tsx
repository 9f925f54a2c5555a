import type { CheckedFrame, Finding, FindingSide } from "./protocol";
import { type Page, type Store, shown } from "./store";
import { baseName, whole } from "./text";
import { Status } from "./widgets";

export function Findings(props: { page: Page; store: Store; current: string; goto: (line: number) => void }) {
  const { page, store } = props;
  const { check } = page.results;
  const report = shown(page.results, "check")?.report;
  return (
    <>
      <div class="tools">
        <button type="button" disabled={page.saved || check?.state === "running"} onClick={() => store.start("check")}>
          Check the program
        </button>
        {check?.state === "running" && (
          <button type="button" onClick={() => store.cancel()}>
            Cancel the check
          </button>
        )}
        {report && (
          <span class="faint">
            {report.nic}: {report.findings.length === 0 ? "no findings" : `${report.findings.length} findings`};{" "}
            {whole(report.runs)} runs of handlers, {whole(report.instructions)} instructions, {whole(report.covered)}{" "}
            different
          </span>
        )}
      </div>
      <Status
        work={check}
        current={props.current}
        nothing="The check finds races, lost locks, uninitialised memory and accesses out of bounds."
      />
      {report?.missing.map((words) => (
        <p key={words} class="note stale">
          {words}
        </p>
      ))}
      <ol class="findings">
        {report?.findings.map((finding, at) => (
          <One key={at} finding={finding} program={page.setup.program.name} goto={props.goto} />
        ))}
      </ol>
    </>
  );
}

function One(props: { finding: Finding; program: string; goto: (line: number) => void }) {
  const { finding } = props;
  return (
    <li>
      <h3>
        {finding.kind} <small>{whole(finding.times)} times</small>
      </h3>
      <Side side={finding.at} program={props.program} goto={props.goto} />
      {finding.other && <Side side={finding.other} program={props.program} goto={props.goto} />}
      <p class="advice">{finding.advice}</p>
    </li>
  );
}

function Side(props: { side: FindingSide; program: string; goto: (line: number) => void }) {
  const { side } = props;
  const stack = side.stack.filter((frame) => frame.function);
  return (
    <p class="side">
      <Place frame={side.place} program={props.program} goto={props.goto} />: the {side.handler}
      {side.packet !== null && ` of packet ${side.packet}`} {side.action}
      {stack.length > 0 && <small> in {stack.map((frame) => frame.function).join(" ← ")}</small>}
    </p>
  );
}

function Place(props: { frame: CheckedFrame; program: string; goto: (line: number) => void }) {
  const { file, line } = props.frame;
  if (!file) return <code>(no line)</code>;
  const text = line === null ? baseName(file) : `${baseName(file)}:${line}`;
  if (line === null || baseName(file) !== baseName(props.program)) return <code>{text}</code>;
  return (
    <button type="button" class="link" onClick={() => props.goto(line)}>
      {text}
    </button>
  );
}
