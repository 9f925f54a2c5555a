import type { Row } from "./draw";

const LANE = 16;
const HEADING = 18;

/** The lanes below one another, with a heading for each group. A closed group has its heading alone. */
export function rowsOf(lanes: { name: string; group: string; node: string }[], closed: ReadonlySet<string>): Row[] {
  const nodes = new Set(lanes.map((lane) => lane.node));
  const groups = new Map<string, number[]>();
  lanes.forEach((lane, at) => {
    const group = nodes.size > 1 ? `${lane.node}: ${lane.group}` : lane.group;
    groups.set(group, [...(groups.get(group) ?? []), at]);
  });
  const rows: Row[] = [];
  let top = 0;
  for (const [group, members] of groups) {
    const isClosed = closed.has(group);
    rows.push({ lane: -1, name: `${isClosed ? "▸" : "▾"} ${group} (${members.length})`, group, top, height: HEADING });
    top += HEADING;
    if (isClosed) continue;
    for (const lane of members) {
      rows.push({ lane, name: lanes[lane].name, group, top, height: LANE });
      top += LANE;
    }
  }
  return rows;
}
