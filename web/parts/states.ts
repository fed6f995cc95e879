/** Colours of states. */

import type { Tone } from '../model/condition.js';

const TONES: Readonly<Record<string, Tone>> = {
  Active: 'good',
  Serving: 'good',
  Listener: 'good',
  Idle: 'good',
  Leading: 'good',
  Following: 'good',
  Leader: 'good',
  Follower: 'good',
  Ready: 'good',
  Dead: 'bad',
  Stopped: 'bad',
  Failed: 'bad',
  Sleeping: 'wait',
  Waiting: 'wait',
};

/** Of a replica or an actor; what is neither well nor ill is at work. */
export function toneOf(state: string): Tone {
  return TONES[state] ?? 'busy';
}
