/** Reads and writes that took long, with how they were carried out. */

import type { ReactNode } from 'react';
import { useResult } from '../base/live.js';
import { linkTo } from '../base/router.js';
import { moment, seconds } from '../model/format.js';
import { idsText, type ShownSlowRequest, type SlowReport, slowSentence } from '../model/slow-requests.js';
import { Failure, Loading } from '../parts/basics.js';

const PERIOD_MS = 5000;

export function SlowRequestsPage(): ReactNode {
  const { value, error } = useResult<{ readonly app: { readonly slow_requests: SlowReport } }>('/telemetry?details_level=1', {
    periodMs: PERIOD_MS,
  });
  const report = value?.app.slow_requests;
  return (
    <>
      <div className="head">
        <h1>Slow requests</h1>
      </div>
      <Failure error={error} />
      {report === undefined && error === null && <Loading />}
      {report !== undefined && <p>{slowSentence(report)}</p>}
      {report?.last.length === 0 && (
        <p className="small faint">
          Each of them comes here with how it was carried out. The setting <code>service.slow_request_ms</code> says from how many
          milliseconds on; to look at one request at any time, explain it in the <a href={linkTo('console')}>console</a>.
        </p>
      )}
      {report !== undefined && report.last.length > 0 && (
        <section className="sheet scroll" aria-label="The last slow requests">
          <table>
            <thead>
              <tr>
                <th>When (UTC)</th>
                <th>What</th>
                <th className="number">Took</th>
                <th>How it was carried out</th>
              </tr>
            </thead>
            <tbody>
              {report.last.map((request) => (
                <Row key={`${request.time} ${request.operation} ${request.milliseconds}`} request={request} />
              ))}
            </tbody>
          </table>
          <p className="small faint">
            Send a request with <code>explain: true</code>, or from the <a href={linkTo('console')}>console</a>, to see where its time goes.
          </p>
        </section>
      )}
    </>
  );
}

function Row({ request }: { readonly request: ShownSlowRequest }): ReactNode {
  const { collection, door, milliseconds, operation, plan, status, time } = request;
  const ids = idsText(request);
  return (
    <tr>
      <td className="short">{moment(time)}</td>
      <td>
        <code>{operation}</code>
        {collection !== null && (
          <>
            {' of '}
            <a href={linkTo('collections', collection)}>{collection}</a>
          </>
        )}
        <div className="small faint">{`${door === 'rest' ? 'REST' : 'gRPC'}, status ${status}`}</div>
        {ids !== '' && <div className="small faint mono payload">{ids}</div>}
      </td>
      <td className="number">{seconds(milliseconds / 1000)}</td>
      <td className="payload">{plan ?? <span className="faint">–</span>}</td>
    </tr>
  );
}
