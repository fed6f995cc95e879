/**
 * The plans that this thread has carried out for the read under way, to say something of one that took long without having been asked to explain
 * it. A thread works on one read at a time. It costs a store for each segment.
 */

import { explain, type SegmentPlan } from '../../query/plan.js';

/** More say nothing to a reader. */
const PLANS_MAX = 16;
const plans: SegmentPlan[] = [];
let count = 0;

/** A read begins. */
export function forgetPlans(): void {
  count = 0;
}

/** A segment is searched by this plan. */
export function seePlan(plan: SegmentPlan): void {
  if (count < PLANS_MAX) plans[count] = plan;
  count++;
}

/** One line; null where no segment was searched for a vector. payloads: that were read meanwhile. */
export function seenPlans(payloads: number): string | null {
  const times = new Map<string, number>();
  for (const plan of plans.slice(0, Math.min(count, PLANS_MAX))) times.set(explain(plan), (times.get(explain(plan)) ?? 0) + 1);
  const lines = [...times].map(([line, often]) => (often === 1 ? line : `${often} × ${line}`));
  if (count > PLANS_MAX) lines.push(`and ${count - PLANS_MAX} more segments`);
  if (payloads > 0) lines.push(`${payloads} payloads read for filters and orders`);
  return lines.length === 0 ? null : lines.join('; ');
}
