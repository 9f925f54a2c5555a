interface Unit {
  name: string;
  ps: number;
}

const UNITS: readonly Unit[] = [
  { name: "s", ps: 1e12 },
  { name: "ms", ps: 1e9 },
  { name: "µs", ps: 1e6 },
  { name: "ns", ps: 1e3 },
];

/** The largest unit in which a time is at least 2; ns for shorter times. */
export function unitOf(ps: number): Unit {
  return UNITS.find((unit) => ps >= 2 * unit.ps) ?? UNITS[UNITS.length - 1];
}

/** A time in words; by default with three digits, which are picoseconds in times of nanoseconds. */
export function timeText(ps: number, digits = 3, unit = unitOf(ps)): string {
  return `${(ps / unit.ps).toFixed(digits)} ${unit.name}`;
}
