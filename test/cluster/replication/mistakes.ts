/** Replication with one rule broken, each of which the random walk has to find out. Rarer ones are shown by `step.test.ts`. */

import { stepReplication } from '../../../cluster/replication/step.js';
import type { ReplicationStepOf } from './world.js';

export const MISTAKES: Readonly<Record<string, ReplicationStepOf>> = {
  'acknowledges what is on its own disk only': (state, input) => {
    const stepped = stepReplication(state, input);
    const { role } = stepped.state;
    if (role.kind !== 'Leading' || input.kind !== 'logged') return stepped;
    const early = role.pending.map((write) => ({ kind: 'acknowledge' as const, ...write }));
    return { state: { ...stepped.state, role: { ...role, pending: [] } }, effects: [...stepped.effects, ...early] };
  },
  'leads without asking the others what they have': (state, input) => {
    if (input.kind !== 'located') return stepReplication(state, input);
    return stepReplication(state, { ...input, last: { ...input.last, term: state.assignment?.term ?? 0 } });
  },
  'finishes a transfer without the writes that come meanwhile': (state, input) => {
    const stepped = stepReplication(state, input);
    return input.kind === 'require' ? { ...stepped, state: { ...stepped.state, required: new Set() } } : stepped;
  },
};
