/** Why the node or its cluster is as it is now, what it has seen that could be better, and buttons that do what it advises. */

import { type ReactNode, useState } from 'react';
import { call } from '../base/api.js';
import { useResult } from '../base/live.js';
import { linkTo } from '../base/router.js';
import { moment } from '../model/format.js';
import { actOf, gravestFirst, type ShownIssue, titleOf, toneOfIssue } from '../model/issues.js';
import { ActDialog, Failure, Loading, Prose, State } from '../parts/basics.js';
import { Findings } from '../parts/findings.js';

const PERIOD_MS = 5000;

export function AdvicePage(): ReactNode {
  const { value, error, reload } = useResult<{ readonly issues: readonly ShownIssue[] }>('/issues', { periodMs: PERIOD_MS });
  const [asked, setAsked] = useState<ShownIssue | null>(null);
  const [clears, setClears] = useState(false);
  return (
    <>
      <div className="head">
        <h1>Why and advice</h1>
        <span className="grow" />
        <button type="button" disabled={value === undefined || value.issues.length === 0} onClick={() => setClears(true)}>
          Forget all
        </button>
      </div>
      <Findings />
      <h2>What could be better</h2>
      <Failure error={error} />
      {value === undefined && error === null && <Loading />}
      {value?.issues.length === 0 && (
        <div className="sheet">
          <h3>Nothing to advise</h3>
          <p>
            This node has seen no filter that reads payloads for want of an index, no field of a request that it does not know, and no lack
            of memory or disk. In a cluster it also watches replicas that are Dead and peers that have more to do than others.
          </p>
        </div>
      )}
      {gravestFirst(value?.issues ?? []).map((issue) => (
        <IssueCard key={issue.id} issue={issue} onAct={() => setAsked(issue)} />
      ))}
      {asked !== null && <IssueDialog issue={asked} onClose={() => setAsked(null)} onDone={reload} />}
      {clears && (
        <ActDialog
          title="Forget all that was seen?"
          action="Forget it"
          onAct={async () => {
            await call('DELETE', '/issues');
            reload();
          }}
          onClose={() => setClears(false)}
        >
          <p>What still is so comes again: the next time that it is seen.</p>
        </ActDialog>
      )}
    </>
  );
}

function IssueCard({ issue, onAct }: { readonly issue: ShownIssue; readonly onAct: () => void }): ReactNode {
  const { action, collection, description, id, solution, timestamp } = issue;
  return (
    <article className="sheet" aria-label={id}>
      <div className="row">
        <h3 style={{ margin: 0 }}>
          <State tone={toneOfIssue(issue)}>{titleOf(issue)}</State>
        </h3>
        {collection !== undefined && <a href={linkTo('collections', collection)}>{collection}</a>}
        <span className="grow" />
        <span className="small faint">{`since ${moment(timestamp)} UTC`}</span>
      </div>
      <p className="payload">
        <Prose text={description} />
      </p>
      <p className="payload">
        <Prose text={solution} />
      </p>
      {action !== undefined && (
        <button type="button" className="main-action" onClick={onAct}>
          {actOf(issue)}
        </button>
      )}
    </article>
  );
}

interface IssueDialogProps {
  readonly issue: ShownIssue;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

/** Shows the request before it is sent. */
function IssueDialog({ issue, onClose, onDone }: IssueDialogProps): ReactNode {
  const { action } = issue;
  if (action === undefined) return null;
  return (
    <ActDialog
      title={titleOf(issue)}
      action="Send"
      onAct={async () => {
        await call(action.method, action.path, action.body);
        onDone();
      }}
      onClose={onClose}
    >
      <p>This request is sent to the node:</p>
      <pre>{`${action.method} ${action.path}${action.body === undefined ? '' : `\n${JSON.stringify(action.body, null, 2)}`}`}</pre>
    </ActDialog>
  );
}
