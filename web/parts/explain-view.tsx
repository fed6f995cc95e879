/** How a read was carried out, as a picture: bars of its stages by time, the reasons beside them, and indexes that would help. */

import { type ReactNode, useState } from 'react';
import { call } from '../base/api.js';
import { type ExplainAnswer, rowsOf, type TriedIndex, trialSentence } from '../model/explain.js';
import { seconds } from '../model/format.js';
import { ActDialog, Prose } from './basics.js';

export function ExplainView({ explanation }: { readonly explanation: ExplainAnswer }): ReactNode {
  const { advice, summary, time_us } = explanation;
  return (
    <section className="sheet" aria-label="How it was carried out">
      <h2>{`How it was carried out: ${seconds(time_us / 1e6)}`}</h2>
      <p>{summary}</p>
      {advice.map((one) => (
        <AdviceNotice key={one.field} advice={one} />
      ))}
      <div className="explain">
        {rowsOf(explanation).map(({ depth, figures, key, kind, left, reasons, title, us, width }) => (
          <div key={key} className={kind}>
            <div className="what" style={{ paddingLeft: `${depth}rem` }}>
              <span>{title}</span>
              {figures.length > 0 && <div className="small faint">{figures.join(', ')}</div>}
              {reasons.map((reason) => (
                <p key={reason} className="small">
                  <Prose text={reason} />
                </p>
              ))}
            </div>
            <div className="time">{seconds(us / 1e6)}</div>
            <div className="lane" aria-hidden="true">
              <i style={{ left: `${100 * left}%`, width: `${100 * width}%` }} />
            </div>
          </div>
        ))}
      </div>
    </section>
  );
}

function AdviceNotice({ advice }: { readonly advice: TriedIndex }): ReactNode {
  const [asks, setAsks] = useState(false);
  const [done, setDone] = useState(false);
  const { body, method, path } = advice.call;
  const make = async (): Promise<void> => {
    await call(method, `${path}?wait=true`, body);
    setDone(true);
  };
  return (
    <div className="notice busy">
      <p style={{ marginTop: 0 }}>
        <Prose text={advice.reason} />
      </p>
      <p className="small">{trialSentence(advice)}</p>
      {done ? (
        <p role="status">The index is made. Explain the request again to see what it saves.</p>
      ) : (
        <button type="button" onClick={() => setAsks(true)}>
          {`Make this index of ${advice.field}`}
        </button>
      )}
      {asks && (
        <ActDialog title={`Make an index of ${advice.field}`} action="Make it" onAct={make} onClose={() => setAsks(false)}>
          <p>Reads and writes go on while it is made. The node is sent this request:</p>
          <pre>{`${method} ${path}?wait=true\n${JSON.stringify(body, null, 2)}`}</pre>
        </ActDialog>
      )}
    </div>
  );
}
