/** While a run goes on, nothing may ask the real world: it would go another way each time. */

const GUARDED: readonly (readonly [object, string])[] = [
  [Math, 'random'],
  [Date, 'now'],
  [globalThis, 'setTimeout'],
  [globalThis, 'setInterval'],
  [globalThis, 'setImmediate'],
  [performance, 'now'],
];

/**
 * What `run` comes to. A use of the real clock, timers or randomness in it throws. `onStray` hears of errors that nobody in it
 * caught.
 */
export async function guarded<Value>(run: () => Promise<Value>, onStray: (error: unknown) => void): Promise<Value> {
  const kept = GUARDED.map(([owner, name]) => [owner, name, Object.getOwnPropertyDescriptor(owner, name)] as const);
  for (const [owner, name] of GUARDED) {
    const value = () => {
      throw new Error(`a run used ${name} of the real world`);
    };
    Object.defineProperty(owner, name, { value, configurable: true, writable: true });
  }
  process.on('unhandledRejection', onStray);
  try {
    return await run();
  } finally {
    process.off('unhandledRejection', onStray);
    for (const [owner, name, descriptor] of kept) {
      if (descriptor === undefined) Reflect.deleteProperty(owner, name);
      else Object.defineProperty(owner, name, descriptor);
    }
  }
}
