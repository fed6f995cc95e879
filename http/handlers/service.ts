/** Operations on the node itself: what it is, how it is, and its descriptions. Each throws errors of the catalogue. */

import { flagParameter, textParameter, unsigned } from '../../protocols/rest/parameters.js';
import { type HttpAnswer, result } from '../context/answer.js';
import type { NodeRequest } from '../context/node-request.js';
import { API_VERSION, type DoorServices } from '../context/services.js';
import type { DownloadRequest, OfferedEvents } from '../context/transfers.js';
import { topicsFrom } from '../live/hub.js';
import { writeMetrics } from '../reports/metrics.js';
import { DETAILS_LEVEL_MAX, telemetryReport } from '../reports/telemetry.js';
import { docsPage, docsPolicy } from './docs-page.js';

export function root({ identity: { version } }: DoorServices): HttpAnswer {
  const value = { title: 'troupe - vector database', version: API_VERSION, commit: `troupe-${version}`, troupe: { version } };
  return { kind: 'json', value };
}

export function alive(): HttpAnswer {
  return { kind: 'text', status: 200, text: 'healthz check passed' };
}

export function ready({ notReady }: DoorServices): HttpAnswer {
  const reason = notReady();
  if (reason === null) return { kind: 'text', status: 200, text: 'all shards are ready' };
  return { kind: 'text', status: 503, text: `some shards are not ready: ${reason}` };
}

export function telemetry(services: DoorServices, { query }: NodeRequest): HttpAnswer {
  // Nothing is added above.
  const level = Math.min(unsigned(query, 'details_level') ?? 0, DETAILS_LEVEL_MAX);
  const options = { level, anonymize: flagParameter(query, 'anonymize'), perCollection: flagParameter(query, 'per_collection') };
  return { kind: 'long', key: `telemetry ${JSON.stringify(options)}`, value: () => telemetryReport(services, options) };
}

/** What changes, as it does. */
export function events({ live }: DoorServices, { lastEventId, query }: DownloadRequest<never>): OfferedEvents {
  const topics = topicsFrom(textParameter(query, 'topics'));
  const follow = query.follow === undefined || flagParameter(query, 'follow');
  return { kind: 'events', open: () => live.open({ topics, follow, lastEventId }) };
}

export function metrics(services: DoorServices, { query }: NodeRequest): HttpAnswer {
  const options = { anonymize: flagParameter(query, 'anonymize'), perCollection: flagParameter(query, 'per_collection') };
  return { kind: 'longText', key: `metrics ${JSON.stringify(options)}`, write: (out) => writeMetrics(out, services, options) };
}

export function docs({ exposure }: DoorServices): HttpAnswer {
  return { kind: 'page', html: docsPage(exposure), policy: docsPolicy() };
}

/** What was seen that could be better, and what to do about it. */
export function issues({ advice }: DoorServices, { caller }: NodeRequest): HttpAnswer {
  return result({ issues: advice.issues(caller) });
}

export function clearIssues({ advice }: DoorServices): HttpAnswer {
  advice.clear();
  return result(true);
}
