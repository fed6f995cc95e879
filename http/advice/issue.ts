/** What `GET /issues` shows: something that was seen, and what to do about it. */

/** A request that does what an issue advises. */
export interface IssueAction {
  readonly method: 'POST' | 'PUT' | 'PATCH';
  readonly path: string;
  readonly body?: object;
}

export interface Issue {
  /** `<KIND>/<what it is about>`; the same as long as the issue is there. */
  readonly id: string;
  /** What was seen, with figures. */
  readonly description: string;
  readonly solution: string;
  /** When it was first seen, since the issues were last cleared. */
  readonly timestamp: string;
  /** Requests that had it; absent where it is no matter of requests. */
  readonly count?: number;
  /** The collection that it is about; absent: it is about the node or the cluster. */
  readonly collection?: string;
  /** Absent where no single request does it. */
  readonly action?: IssueAction;
}
