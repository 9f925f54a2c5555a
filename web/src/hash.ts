// The state of the page in the address: JSON, compressed, in letters that an address takes. A token is never part of it.

function toLetters(bytes: Uint8Array): string {
  const parts: string[] = [];
  // A call takes a limited number of arguments.
  for (let at = 0; at < bytes.length; at += 0x8000) parts.push(String.fromCharCode(...bytes.subarray(at, at + 0x8000)));
  return btoa(parts.join("")).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

function toBytes(letters: string): Uint8Array<ArrayBuffer> {
  const text = atob(letters.replaceAll("-", "+").replaceAll("_", "/"));
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at += 1) bytes[at] = text.charCodeAt(at);
  return bytes;
}

async function through(
  bytes: Uint8Array<ArrayBuffer>,
  stream: GenericTransformStream,
): Promise<Uint8Array<ArrayBuffer>> {
  const piped = new Blob([bytes]).stream().pipeThrough(stream as ReadableWritablePair<Uint8Array, BufferSource>);
  return new Uint8Array(await new Response(piped).arrayBuffer());
}

export async function packedBytes(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  return toLetters(await through(bytes, new CompressionStream("deflate-raw")));
}

export function unpackedBytes(letters: string): Promise<Uint8Array<ArrayBuffer>> {
  return through(toBytes(letters), new DecompressionStream("deflate-raw"));
}

/** The letters of a value. */
export function packed(value: unknown): Promise<string> {
  return packedBytes(new TextEncoder().encode(JSON.stringify(value)));
}

/** The value of letters; undefined if they are damaged. */
export async function unpacked(letters: string): Promise<unknown> {
  try {
    return JSON.parse(new TextDecoder().decode(await unpackedBytes(letters)));
  } catch {
    return undefined;
  }
}
