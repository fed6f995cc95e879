/** Carries out a request whose body or answer is an archive, counted and logged as all others. */

import type { IncomingMessage, ServerResponse } from 'node:http';
import { TroupeError } from '../../../protocols/errors.js';
import type { QueryParameters } from '../../../protocols/rest/parameters.js';
import { acceptedBody, valueEnvelope } from '../../context/answer.js';
import { bodyCoding } from '../../context/codings.js';
import { checkMode } from '../../context/recovery.js';
import type { DoorServices } from '../../context/services.js';
import { logUnawaited } from '../../handlers/snapshots.js';
import type { DownloadRoute, UploadRoute } from '../../routes.js';
import { type AnsweredCall, logBug, recordAnswer } from '../calls/answer-call.js';
import { checkNodePath } from '../calls/check-head.js';
import { errorReply, jsonReply, type RestReply, textErrorReply, textReply } from '../calls/reply.js';
import { eventsReply, fileReply, type StreamReply } from './download.js';
import { checkFormType, FormProblem, takeFormFile } from './form-file.js';

export interface TransferCall<Route extends DownloadRoute | UploadRoute = DownloadRoute | UploadRoute> extends AnsweredCall {
  readonly route: Route;
  readonly path: Readonly<Record<string, string>>;
  readonly query: QueryParameters;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly contentType: string | undefined;
}

/** The part of a form that is the archive. */
const PART = 'snapshot';

/** The answer to a call; null if the client is gone. Never rejects. Of an upload the rest of the body may still be on its way. */
export async function answerTransfer(
  services: DoorServices,
  logRequests: boolean,
  call: TransferCall,
): Promise<RestReply | StreamReply | null> {
  const started = services.monotonicMs();
  const { response, route } = call;
  let answer: RestReply | StreamReply;
  try {
    await services.access?.admit(call.caller, route, call.path.collection_name);
    checkMode(services.recoveryMode, route);
    checkNodePath(call.path);
    answer = route.kind === 'download' ? await download(services, call, route) : await upload(services, call, route, started);
  } catch (error) {
    if (response.destroyed) return null;
    answer = failure(services, call, error, started);
  }
  recordAnswer(services, logRequests, call, answer.status, started);
  return answer;
}

async function download(services: DoorServices, call: TransferCall, route: DownloadRoute): Promise<RestReply | StreamReply> {
  const { path, query, request, response } = call;
  const gone = new AbortController();
  response.once('close', () => gone.abort(new Error('the client has gone away')));
  const { 'last-event-id': lastEventId } = request.headers;
  const last = Array.isArray(lastEventId) ? lastEventId[0] : lastEventId;
  const offered = await route.run(services, { path, query, lastEventId: last, signal: gone.signal });
  const isHead = request.method === 'HEAD';
  const reply = 'kind' in offered ? await eventsReply(offered, isHead) : await fileReply(offered, request.headers, isHead);
  // Nobody reads the stream of a client that went away meanwhile.
  if (response.destroyed && !Buffer.isBuffer(reply.body)) reply.body?.destroy();
  return reply;
}

async function upload(services: DoorServices, call: TransferCall, route: UploadRoute, started: number): Promise<RestReply> {
  const { contentType, path, query, request } = call;
  const { use, wait } = route.run(services, { path, query });
  const coding = bodyCoding(request.headers);
  if (coding !== null) throw new FormProblem(415, `An archive is sent as it is, without the content encoding ${coding}`);
  const formType = checkFormType(contentType);
  const file = await services.node.snapshots.upload();
  try {
    await takeFormFile(request, formType, PART, file);
  } catch (error) {
    await file.discard();
    throw error;
  }
  const used = use(file);
  if (wait) return jsonReply(200, valueEnvelope(await used, services.monotonicMs() - started));
  used.catch((error: unknown) => logUnawaited(services.log, 'restore an uploaded snapshot', path, error));
  return jsonReply(202, acceptedBody(services.monotonicMs() - started));
}

function failure(services: DoorServices, call: TransferCall, error: unknown, started: number): RestReply {
  if (error instanceof FormProblem) return textReply(error.status, error.text);
  logBug(services, call, error);
  const { route } = call;
  const isText = route.kind === 'download' || (error instanceof TroupeError && error.code === 'forbidden');
  return isText ? textErrorReply(error, route) : errorReply(error, route, services.monotonicMs() - started);
}
