// Figures as text.

export function fixed(value: number, digits: number): string {
  return value.toLocaleString("en-GB", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

export function whole(value: number): string {
  return value.toLocaleString("en-GB");
}

export function percent(share: number, digits = 1): string {
  return `${fixed(100 * share, digits)} %`;
}

/** A multiple of a rate: two significant digits below 0.1. */
export function times(rate: number): string {
  if (rate > 1000) return "more than 1,000 ×";
  const digits = rate >= 0.1 || rate <= 0 ? 2 : 1 - Math.floor(Math.log10(rate));
  return `${fixed(rate, digits)} ×`;
}

export function nanoseconds(ns: number): string {
  if (ns >= 1e9) return `${fixed(ns / 1e9, 2)} s`;
  if (ns >= 1e6) return `${fixed(ns / 1e6, 2)} ms`;
  if (ns >= 1e4) return `${fixed(ns / 1e3, 1)} µs`;
  return `${fixed(ns, ns < 100 ? 1 : 0)} ns`;
}

export function bytes(count: number): string {
  if (count >= 1 << 30) return `${fixed(count / (1 << 30), 2)} GiB`;
  if (count >= 1 << 20) return `${fixed(count / (1 << 20), 1)} MiB`;
  if (count >= 1 << 10) return `${fixed(count / (1 << 10), 1)} KiB`;
  return `${count} B`;
}

/** The last part of a path. */
export function baseName(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

/** The largest causes of waits in a few words. */
export function waits(causes: Record<string, number>, packets: number): string {
  const found = Object.entries(causes)
    .filter(([cause, cycles]) => cause !== "issue" && cycles / packets >= 0.05)
    .sort(([, one], [, other]) => other - one);
  return found
    .slice(0, 3)
    .map(([cause, cycles]) => `${cause} ${fixed(cycles / packets, 1)}`)
    .join(", ");
}
