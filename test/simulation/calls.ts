/** Calls of simulated clients: each one ends with an answer, an error or its node. One that does not is a violation. */

import type { NodeApi } from '../../actors/requests/node-api.js';
import { type ErrorFacts, errorFacts } from '../../protocols/errors.js';
import type { SimulatedNode } from './node.js';
import type { Story } from './story.js';
import type { Life, World } from './world.js';

/** Of each request. */
export const TIMEOUT_MS = 4000;
/** Calls end within their timeout, and this. */
const GRACE_MS = 3000;
/** The watch looks so often. */
const LOOK_MS = 500;

export type Ended<Value> =
  | { readonly kind: 'answered'; readonly answer: Value }
  /** lives: the node did when it answered. stack: for messages. */
  | { readonly kind: 'failed'; readonly error: ErrorFacts; readonly lives: boolean; readonly stack: string }
  /** Without an answer. */
  | { readonly kind: 'lost'; readonly why: string };

export interface CallParts {
  readonly world: World;
  readonly story: Story;
  /** Something that must never happen has happened. */
  readonly violation: (what: string) => void;
}

/** Null when the node does not run. shown: an answer in the story. */
export async function callNode<Value>(
  parts: CallParts,
  who: string,
  node: SimulatedNode,
  what: string,
  ask: (api: NodeApi) => Promise<Value>,
  shown: (answer: Value) => string = () => 'done',
): Promise<Ended<Value> | null> {
  const { api, life } = node;
  if (api === null || life === null) return null;
  parts.story.tell(who, `→ ${node.host}  ${what}`);
  const ended = await endOf(parts, ask(api), life, `${what} on ${node.host}`);
  parts.story.tell(who, `← ${node.host}  ${what}: ${ended.kind === 'answered' ? shown(ended.answer) : reasonOf(ended)}`);
  return ended;
}

function reasonOf(ended: Exclude<Ended<unknown>, { kind: 'answered' }>): string {
  return ended.kind === 'lost' ? ended.why : `${ended.error.code}: ${ended.error.detail}`;
}

function endOf<Value>({ violation, world }: CallParts, call: Promise<Value>, life: Life, what: string): Promise<Ended<Value>> {
  return new Promise((resolve) => {
    let hasEnded = false;
    let lateMs = world.nowMs + TIMEOUT_MS + GRACE_MS;
    const end = (ended: Ended<Value>) => {
      hasEnded = true;
      resolve(ended);
    };
    const watch = () => {
      if (hasEnded) return;
      if (!life.alive) return end({ kind: 'lost', why: 'the node is gone' });
      if (life.paused) lateMs = world.nowMs + TIMEOUT_MS + GRACE_MS;
      if (world.nowMs > lateMs) {
        violation(`${what} has not ended ${GRACE_MS} ms after its timeout`);
        return end({ kind: 'lost', why: 'no end' });
      }
      world.after(LOOK_MS, watch);
    };
    world.after(LOOK_MS, watch);
    call.then(
      (answer) => end({ kind: 'answered', answer }),
      (error: unknown) => {
        const stack = error instanceof Error ? `\n${error.stack}` : '';
        end({ kind: 'failed', error: errorFacts(error), lives: life.alive, stack });
      },
    );
  });
}
