/** What operators ask of the points' collection, by any node. */

import { errorFacts } from '../../protocols/errors.js';
import type { CollectionClusterUpdate } from '../../protocols/model/cluster.js';
import type { CallParts } from './calls.js';
import type { SimulatedNode } from './node.js';
import { POINTS } from './point-names.js';

const TIMEOUT_MS = 4000;

/** Whether the cluster has agreed on it, as far as the node has told. */
export async function setUpPoints(
  { story, violation, world }: CallParts,
  who: string,
  node: SimulatedNode,
  setup: CollectionClusterUpdate,
): Promise<boolean> {
  const { cluster } = node;
  if (cluster === null) return false;
  story.tell(who, `→ ${node.host}  ${JSON.stringify(setup)}`);
  const asked = cluster.updateCollectionCluster(POINTS, setup, TIMEOUT_MS).then(
    () => 'agreed',
    (error: unknown) => {
      const { code, detail } = errorFacts(error);
      if (code === 'internal' && !/stopped|restarts/.test(detail)) violation(`${JSON.stringify(setup)} on ${node.host} failed: ${detail}`);
      return `${code}: ${detail}`;
    },
  );
  // A node that crashes answers nothing.
  const answer = await Promise.race([asked, world.sleep(2 * TIMEOUT_MS).then(() => 'no answer')]);
  story.tell(who, `← ${node.host}  ${setup.kind}: ${answer}`);
  return answer === 'agreed';
}
