/** From settings and options to what makes a node part of a cluster. */

import type { ClusterStart } from './cli.js';
import type { Settings } from './config/settings.js';

/** One line for each option that needs distributed mode where that is off. */
export function misplacedOptions({ uri, bootstrap, reinit }: ClusterStart, settings: Settings): string[] {
  if (settings.cluster.enabled) return [];
  const given = [...(uri === null ? [] : ['--uri']), ...(bootstrap === null ? [] : ['--bootstrap']), ...(reinit ? ['--reinit'] : [])];
  const hint = 'is for nodes of a cluster; set cluster.enabled to true (variable SERVICE__CLUSTER__ENABLED=true), or leave it out';
  return given.map((option) => `${option}: ${hint}`);
}
