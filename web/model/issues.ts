/** Issues of `GET /issues` as the page shows them. */

import type { Tone } from './condition.js';

export interface ShownIssue {
  readonly id: string;
  readonly description: string;
  readonly solution: string;
  readonly timestamp: string;
  readonly count?: number;
  readonly collection?: string;
  readonly action?: { readonly method: string; readonly path: string; readonly body?: object };
}

interface Kind {
  readonly title: string;
  /** What its button does. */
  readonly act?: string;
  readonly tone: Tone;
}

/** The gravest first. */
const KINDS: Readonly<Record<string, Kind>> = {
  DEAD_REPLICA: { title: 'A replica is Dead', tone: 'bad' },
  DISK: { title: 'The disk is nearly full', tone: 'bad' },
  MEMORY: { title: 'Memory is short', act: 'Quantize the vectors …', tone: 'bad' },
  UNINDEXED_FIELD: { title: 'A filter reads payloads', act: 'Make the index …', tone: 'busy' },
  BALANCE: { title: 'Peers are out of balance', act: 'Balance them …', tone: 'busy' },
  UNKNOWN_FIELD: { title: 'Requests have a field that is not known', tone: 'wait' },
};
const ORDER = Object.keys(KINDS);

export function titleOf({ id }: ShownIssue): string {
  return KINDS[kindOf(id)]?.title ?? kindOf(id);
}

/** What the button says that leads to the action. */
export function actOf({ id }: ShownIssue): string {
  return KINDS[kindOf(id)]?.act ?? 'Do it …';
}

export function toneOfIssue({ id }: ShownIssue): Tone {
  return KINDS[kindOf(id)]?.tone ?? 'wait';
}

/** Of one kind those that more requests had come first. */
export function gravestFirst(issues: readonly ShownIssue[]): ShownIssue[] {
  const placeOf = ({ id }: ShownIssue): number => (ORDER.indexOf(kindOf(id)) + ORDER.length + 1) % (ORDER.length + 1);
  return [...issues].sort((one, other) => placeOf(one) - placeOf(other) || (other.count ?? 0) - (one.count ?? 0));
}

function kindOf(id: string): string {
  return id.split('/')[0] as string;
}
