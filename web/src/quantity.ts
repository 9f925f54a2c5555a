// Values of cards as text: a number and its unit.

export interface Quantity {
  number: number;
  unit: string;
  /** The text between the two. */
  gap: string;
}

export function quantity(text: string): Quantity | null {
  const found = /^([-+]?(?:\d[\d_]*)(?:\.\d+)?(?:e[-+]?\d+)?)(\s*)([^\s\d].*)?$/i.exec(text.trim());
  if (!found) return null;
  return { number: Number(found[1].replaceAll("_", "")), gap: found[2], unit: found[3] ?? "" };
}

const SCALES: Record<string, number> = { "": 1, k: 1e3, M: 1e6, G: 1e9, T: 1e12, Ki: 1024, Mi: 1 << 20, Gi: 1 << 30 };
const TIMES: Record<string, number> = { ps: 1e-12, ns: 1e-9, us: 1e-6, µs: 1e-6, ms: 1e-3, s: 1 };

/** The factor of a unit, relative to its base; null for an unknown unit. */
function factor(unit: string): [number, string] | null {
  if (unit in TIMES) return [TIMES[unit], "s"];
  const found = /^(Ki|Mi|Gi|k|M|G|T)?(.*)$/.exec(unit);
  return found ? [SCALES[found[1] ?? ""], found[2]] : null;
}

/** A quantity's number in another unit; null if the units have no common base. */
export function inUnit(value: Quantity, unit: string): number | null {
  if (value.unit === unit || value.number === 0) return value.number;
  const from = factor(value.unit);
  const to = factor(unit);
  return from && to && from[1] === to[1] ? (value.number * from[0]) / to[0] : null;
}

export const STEPS = 200;
const SPAN = 16;

/** A slider's scale around a value: from a 16th of it to 16 times of it, within its limits. */
export class Scale {
  private readonly low: number;
  private readonly high: number;
  private readonly linear: boolean;

  constructor(
    base: number,
    least: number | null,
    most: number | null,
    private readonly isWhole: boolean,
  ) {
    const from = base > 0 ? base / SPAN : 0;
    const to = base > 0 ? base * SPAN : 16;
    this.low = Math.max(from, least ?? (isWhole && base > 0 ? 1 : 0));
    this.high = Math.max(Math.min(to, most ?? to), this.low);
    if (isWhole) {
      this.low = Math.ceil(this.low);
      this.high = Math.floor(this.high);
    }
    this.linear = this.low <= 0;
  }

  get ends(): [number, number] {
    return [this.low, this.high];
  }

  place(value: number): number {
    const at = Math.min(Math.max(value, this.low), this.high);
    if (this.high === this.low) return 0;
    if (this.linear) return (STEPS * (at - this.low)) / (this.high - this.low);
    return (STEPS * Math.log(at / this.low)) / Math.log(this.high / this.low);
  }

  value(place: number): number {
    const share = place / STEPS;
    const exact = this.linear ? this.low + share * (this.high - this.low) : this.low * (this.high / this.low) ** share;
    if (this.isWhole) return Math.round(exact);
    return Number(exact.toPrecision(3));
  }
}
