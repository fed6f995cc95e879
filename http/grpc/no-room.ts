/** How a call ends for whose message there is no memory. */

import { clientFacts, errorHeaders, noRoomFor } from '../context/answer.js';
import type { Endpoint } from '../context/endpoint.js';
import type { ServedOutcome } from './methods.js';
import { grpcStatusOf } from './status.js';

export function noRoomOutcome(endpoint: Pick<Endpoint, 'access' | 'method'>): Extract<ServedOutcome, { kind: 'failed' }> {
  const facts = clientFacts(noRoomFor(endpoint), endpoint);
  return { kind: 'failed', ...grpcStatusOf(facts), metadata: errorHeaders(facts) };
}
