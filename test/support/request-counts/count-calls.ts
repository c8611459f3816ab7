/** Global functions whose calls are counted, by what they do. */
export const countedKinds = ['timers', 'controllers', 'parses', 'stringifies'] as const

export type Counts = Record<(typeof countedKinds)[number], number>

/**
 * Counts what one piece of work starts, in this process. Only for a process of its own: the globals
 * stay replaced.
 */
export function countCalls(): Counts {
  const counts: Counts = { timers: 0, controllers: 0, parses: 0, stringifies: 0 }
  const count = <Holder extends object>(holder: Holder, name: keyof Holder, kind: keyof Counts) => {
    const original = holder[name]
    if (typeof original !== 'function') throw new Error(`${String(name)} is no function`)
    holder[name] = new Proxy(original, {
      apply(target, self, given) {
        counts[kind] += 1
        return Reflect.apply(target, self, given)
      },
      construct(target, given, made) {
        counts[kind] += 1
        return Reflect.construct(target, given, made)
      },
    })
  }
  count(globalThis, 'setTimeout', 'timers')
  count(globalThis, 'setInterval', 'timers')
  count(globalThis, 'AbortController', 'controllers')
  count(AbortSignal, 'any', 'controllers')
  count(AbortSignal, 'timeout', 'controllers')
  count(JSON, 'parse', 'parses')
  count(Request.prototype, 'json', 'parses')
  count(Response.prototype, 'json', 'parses')
  count(JSON, 'stringify', 'stringifies')
  return counts
}
