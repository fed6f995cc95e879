/** Query strings as parameters by name. */

import type { QueryParameters } from '../../../protocols/rest/parameters.js';

const NONE: QueryParameters = Object.freeze(Object.create(null));

/** Parameters without a prototype; one that is given twice is an array of its values. */
export function parseQueryString(text: string): QueryParameters {
  if (text === '') return NONE;
  const parameters: Record<string, string | string[]> = Object.create(null);
  for (const [name, value] of new URLSearchParams(text)) {
    const before = parameters[name];
    if (before === undefined) parameters[name] = value;
    else parameters[name] = Array.isArray(before) ? [...before, value] : [before, value];
  }
  return parameters;
}
