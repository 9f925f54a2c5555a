// The colours of Okabe and Ito, which people with any kind of colour vision tell apart. The yellow is left out, as in
// pictures of nicety.

export const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8a8a8a"];

/** A colour as canvas pixels have it on machines with little-endian words: 0xBBGGRR. */
export function pixel(colour: string): number {
  const value = Number.parseInt(colour.slice(1), 16);
  return ((value & 255) << 16) | (value & 0xff00) | (value >> 16);
}

export const pixels = (count: number): Uint32Array =>
  Uint32Array.from({ length: Math.max(count, 1) }, (_, at) => pixel(COLOURS[at % COLOURS.length]));
