/** Calls of gRPC in the logs of calls, as they are answered. */

import { RoutingReader } from '../../protocols/grpc/routing.js';
import { schema } from '../../protocols/grpc/schema.js';
import type { Caller } from '../access/caller.js';
import type { RequestOrigin } from '../audit/origin.js';
import type { CallLog, CallOperation } from '../context/call-log.js';
import type { Served, ServedOutcome } from './methods.js';
import { PERMISSION_DENIED, UNAUTHENTICATED } from './status.js';

type LoggedMethod = CallOperation & { readonly path: string };
type Refusal = Extract<ServedOutcome, { kind: 'failed' }>;

/** Methods that there are not, and streams that tell of those that there are. */
const UNKNOWN_METHOD = { name: 'unknown', access: 'known' } as const;

export class LoggedCalls {
  private readonly byPath: ReadonlyMap<string, LoggedMethod>;

  constructor(
    private readonly log: CallLog,
    rows: readonly LoggedMethod[],
  ) {
    this.byPath = new Map(rows.map((row) => [row.path, row]));
  }

  /** The same methods, whose calls are recorded. */
  recorded(methods: ReadonlyMap<string, Served>): ReadonlyMap<string, Served> {
    return new Map([...methods].map(([path, served]) => [path, this.recordedMethod(path, served)]));
  }

  /** A call whose message was not taken. */
  refused(path: string, caller: Caller, origin: RequestOrigin, { code, details }: Refusal): void {
    this.log.begin('grpc', this.byPath.get(path) ?? UNKNOWN_METHOD, caller, null, origin)?.(code, details);
  }

  private recordedMethod(path: string, served: Served): Served {
    const operation = this.byPath.get(path);
    if (operation === undefined || operation.access === 'open') return served;
    let collection: ((message: Buffer) => string | null) | null = null;
    return async (message, deadlineMs, context) => {
      // The schema is made with the first call, and a message may be given away with the call.
      collection ??= collectionReader(path);
      const { caller, origin = NOWHERE } = context;
      const end = this.log.begin('grpc', operation, caller, collection(message), origin);
      const outcome = await served(message, deadlineMs, end?.trace === undefined ? context : { ...context, trace: end.trace });
      if (outcome.kind === 'message') end?.(0, null);
      else end?.(outcome.code, isDenial(outcome) ? outcome.details : null, () => outcome.details);
      return outcome;
    };
  }
}

function isDenial({ code }: Refusal): boolean {
  return code === UNAUTHENTICATED || code === PERMISSION_DENIED;
}

const NOWHERE: RequestOrigin = { address: '', field: () => undefined };

/** Null for messages that name no collection, or are broken. */
function collectionReader(path: string): (message: Buffer) => string | null {
  const method = schema().methods.get(path);
  if (method === undefined) return () => null;
  const reader = new RoutingReader(method.request, ['collection_name']);
  return (message) => {
    try {
      return reader.read(message).path.collection_name ?? null;
    } catch {
      return null;
    }
  };
}
