/** Server-sent events as text. Source: WHATWG HTML, «Server-sent events». */

/** id: null to leave the client's last id as it is. */
export function eventText(name: string, data: unknown, id: string | null): Buffer {
  return Buffer.from(`${id === null ? '' : `id: ${id}\n`}event: ${name}\ndata: ${JSON.stringify(data)}\n\n`);
}

/** A comment: it keeps the connection open, and clients pass over it. */
export const HEARTBEAT = Buffer.from(': still here\n\n');

/** `<epoch>-<number>` of a `Last-Event-ID`; null: it is none of ours. */
export function parseEventId(text: string | undefined): { readonly epoch: string; readonly number: number } | null {
  const [, epoch, number] = /^([0-9a-f-]{1,64})-(\d{1,15})$/.exec(text ?? '') ?? [];
  return epoch === undefined ? null : { epoch, number: Number(number) };
}
