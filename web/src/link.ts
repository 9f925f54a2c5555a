// The connection with the server: requests by HTTP, works by a WebSocket that connects again after it was lost.

import {
  type BinaryHeader,
  type Card,
  type ClientMessage,
  type Column,
  type ErrorBody,
  type ErrorInfo,
  type Program,
  ROUTES,
  type ServerMessage,
  type State,
  TOKEN_HEADER,
  TOKEN_PARAMETER,
  type Upload,
} from "./protocol";

export type Columns = Record<string, Uint32Array | Float64Array>;

const KEPT = "nicety-token";
const FIRST_WAIT_MS = 300;
const LONGEST_WAIT_MS = 3000;

/** The token of the address, which leaves the address; or that of an earlier load of this tab. */
export function takeToken(): string {
  const address = new URL(location.href);
  const given = address.searchParams.get(TOKEN_PARAMETER);
  if (given) {
    sessionStorage.setItem(KEPT, given);
    address.searchParams.delete(TOKEN_PARAMETER);
    history.replaceState(null, "", address);
  }
  return given ?? sessionStorage.getItem(KEPT) ?? "";
}

export class Refused extends Error {
  constructor(readonly info: ErrorInfo) {
    super(info.message);
  }
}

export class Link {
  private socket: WebSocket | undefined;
  private wait = FIRST_WAIT_MS;
  private readonly waiting: ClientMessage[] = [];

  constructor(
    private readonly token: string,
    private readonly heard: {
      message(message: ServerMessage): void;
      part(header: BinaryHeader, columns: Columns): void;
      connected(): void;
      lost(reason: string): void;
    },
  ) {}

  connect(): void {
    const address = new URL(ROUTES.socket, location.href);
    address.protocol = "ws:";
    address.hash = "";
    address.searchParams.set(TOKEN_PARAMETER, this.token);
    const socket = new WebSocket(address);
    socket.binaryType = "arraybuffer";
    let reason = "";
    socket.onopen = () => {
      this.wait = FIRST_WAIT_MS;
      this.heard.connected();
      for (const message of this.waiting.splice(0)) socket.send(JSON.stringify(message));
    };
    socket.onmessage = (event: MessageEvent<string | ArrayBuffer>) => {
      if (typeof event.data !== "string") {
        this.heard.part(...parted(event.data));
        return;
      }
      const message = JSON.parse(event.data) as ServerMessage;
      if (message.type === "closing") reason = message.reason;
      else this.heard.message(message);
    };
    socket.onclose = (event) => {
      this.waiting.length = 0;
      this.heard.lost(reason || event.reason);
      setTimeout(() => this.connect(), this.wait);
      this.wait = Math.min(2 * this.wait, LONGEST_WAIT_MS);
    };
    this.socket = socket;
  }

  get open(): boolean {
    return this.socket?.readyState === WebSocket.OPEN;
  }

  /** Sends a message, at once or when the connection is there; false if there is none to wait for. */
  send(message: ClientMessage): boolean {
    if (this.open) this.socket?.send(JSON.stringify(message));
    else if (this.socket?.readyState === WebSocket.CONNECTING && this.waiting.length < 8) this.waiting.push(message);
    else return false;
    return true;
  }

  state(): Promise<State> {
    return this.ask("GET", ROUTES.state);
  }

  program(name: string): Promise<Program> {
    return this.ask("POST", ROUTES.program, JSON.stringify({ name }));
  }

  card(nic: string, set: string[]): Promise<Card> {
    return this.ask("POST", ROUTES.card, JSON.stringify({ nic, set }));
  }

  upload(file: File): Promise<Upload> {
    return this.ask("POST", `${ROUTES.uploads}?name=${encodeURIComponent(file.name)}`, file);
  }

  private async ask<Answer>(method: string, route: string, body?: string | File): Promise<Answer> {
    const kind = typeof body === "string" ? { "Content-Type": "application/json" } : undefined;
    const headers = { [TOKEN_HEADER]: this.token, ...kind };
    let answer: Response;
    try {
      answer = await fetch(route, { method, headers, body });
    } catch {
      throw new Refused({ message: "The server does not answer.", kind: "run" });
    }
    const text = await answer.text();
    if (answer.ok) return JSON.parse(text) as Answer;
    let info: ErrorInfo = { message: text || `The server answers ${answer.status}.`, kind: "run" };
    try {
      info = (JSON.parse(text) as ErrorBody).error;
    } catch {
      // A refusal without a document has its text alone.
    }
    throw new Refused(info);
  }
}

/** The header and the columns of a binary message. */
export function parted(message: ArrayBuffer): [BinaryHeader, Columns] {
  const size = new DataView(message).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(message, 4, size))) as BinaryHeader;
  const base = Math.ceil((4 + size) / 8) * 8;
  return [header, Object.fromEntries(header.columns.map((column) => [column.name, typed(message, base, column)]))];
}

function typed(message: ArrayBuffer, base: number, column: Column): Uint32Array | Float64Array {
  const Kind = column.type === "u32" ? Uint32Array : Float64Array;
  return new Kind(message, base + column.offset, column.length);
}
