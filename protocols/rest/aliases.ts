/** Body of `POST /collections/aliases`. */

import { TroupeError } from '../errors.js';
import type { AliasAction } from '../model/alias.js';
import type { JsonValue } from '../model/payload.js';
import { Fields, isObject, wrongType } from './fields.js';

/** The actions in their order. Errors: malformedBody. */
export function decodeAliasActions(body: JsonValue): AliasAction[] {
  const actions = Fields.of(body, '').value('actions');
  if (actions === undefined) throw new TroupeError('malformedBody', 'missing field `actions`');
  if (!Array.isArray(actions)) throw wrongType('actions', actions, 'a sequence');
  return actions.map((action, at) => decodeAction(action, `actions[${at}]`));
}

function decodeAction(action: JsonValue, path: string): AliasAction {
  const fields = Fields.of(action, path);
  const create = textsOf(fields.value('create_alias'), ['alias_name', 'collection_name']);
  if (create !== undefined) return { kind: 'create', alias: create[0] as string, collection: create[1] as string };
  const removed = textsOf(fields.value('delete_alias'), ['alias_name']);
  if (removed !== undefined) return { kind: 'delete', alias: removed[0] as string };
  const renamed = textsOf(fields.value('rename_alias'), ['old_alias_name', 'new_alias_name']);
  if (renamed !== undefined) return { kind: 'rename', from: renamed[0] as string, to: renamed[1] as string };
  throw new TroupeError(
    'malformedBody',
    `\`${path}\`: expected \`create_alias\` (collection_name, alias_name), \`delete_alias\` (alias_name) or \`rename_alias\` (old_alias_name, new_alias_name)`,
  );
}

/** The texts of the named fields; undefined when `value` is no object or one of them is no text. */
function textsOf(value: JsonValue | undefined, names: readonly string[]): string[] | undefined {
  if (!isObject(value)) return undefined;
  const texts = names.map((name) => (Object.hasOwn(value, name) ? value[name] : undefined));
  return texts.every((text) => typeof text === 'string') ? (texts as string[]) : undefined;
}
