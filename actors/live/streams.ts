/**
 * Streams of what changes in a node, for those who follow it: from messages that actors have handled and changes of the agreed state to at
 * most two changes of each topic a second. The only importer of rxjs. Loaded with the first follower; while there is none, actors tell nothing.
 */

import { asyncScheduler, filter, map, merge, Observable, type SchedulerLike, Subject, share, throttleTime } from 'rxjs';
import { ChangedGroups } from './changed-groups.js';
import { type LiveChange, type LiveSignal, type LiveSources, TOPICS, type Topic } from './topics.js';

/** Changes of a topic come no closer than this. */
const APART_MS = 500;

/** Shared by all who subscribe; it watches the sources while somebody does. */
export function liveChanges(sources: LiveSources, scheduler: SchedulerLike = asyncScheduler): Observable<LiveChange> {
  const signals = new Observable<LiveSignal>((to) => sources.watch((signal) => to.next(signal))).pipe(share());
  return merge(...TOPICS.map((topic) => changesOf(topic, signals, sources, scheduler))).pipe(share());
}

/** The first change at once, those that follow together. */
function changesOf(topic: Topic, signals: Observable<LiveSignal>, sources: LiveSources, scheduler: SchedulerLike): Observable<LiveChange> {
  return new Observable<LiveChange>((to) => {
    const changed = new ChangedGroups(topic, sources);
    /** Groups that were left for the next turn. */
    const left = new Subject<null>();
    const noted = signals.pipe(
      filter((signal) => signal.topic === topic),
      map(({ group }) => changed.note(group)),
    );
    return merge(noted, left)
      .pipe(
        throttleTime(APART_MS, scheduler, { leading: true, trailing: true }),
        map(() => {
          const groups = changed.take();
          if (changed.hasMore) scheduler.schedule(() => left.next(null));
          return { topic, groups };
        }),
        filter(({ groups }) => groups.length > 0),
      )
      .subscribe(to);
  });
}
