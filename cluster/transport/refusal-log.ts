/** Who was not let in, for the log: the same is told once a minute, since whoever is refused calls again and again. */

const AGAIN_MS = 60_000;
const KNOWN_MAX = 256;

export class RefusalLog {
  readonly #toldMs = new Map<string, number>();

  constructor(private readonly log: { warn(message: string, facts: Record<string, unknown>): void } | undefined) {}

  note(message: string, address: string, reason: string): void {
    const nowMs = performance.now();
    const which = `${message} ${address} ${reason}`;
    if (nowMs - (this.#toldMs.get(which) ?? Number.NEGATIVE_INFINITY) < AGAIN_MS) return;
    if (this.#toldMs.size >= KNOWN_MAX) this.#toldMs.clear();
    this.#toldMs.set(which, nowMs);
    this.log?.warn(message, { address, reason });
  }
}
