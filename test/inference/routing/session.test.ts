import { expect, test } from 'bun:test'
import { chooseForSession } from '#inference/routing/balance.ts'
import { createRouter } from '#inference/routing/router.ts'
import { nothingTried } from '#inference/routing/usable.ts'
import { makeRequest, makeRequestContext } from '#test/support/generation.ts'
import { target } from '#test/support/generations.ts'

/** Requests of one session meet the same upstream, whose prompt cache knows them. */

const weights = { a: 1, b: 2, c: 5 }
const targets = Object.entries(weights).map(([name, weight]) => ({
  ...target('http://127.0.0.1:1/v1', name),
  tier: 0,
  weight,
}))
const router = createRouter()
const chosenFor = (session: string, among = targets) => {
  const candidates = among.map((each) => ({ target: each, state: router.stateOf(each) }))
  return chooseForSession(candidates, session).target.upstream.name
}
const sessions = Array.from({ length: 4_000 }, (_, index) => `session ${index}`)
const without = (removed: string) => targets.filter(({ upstream }) => upstream.name !== removed)

test('a session has one upstream, independent of the order of the list', () => {
  for (const session of sessions.slice(0, 100)) {
    expect(chosenFor(session, targets.toReversed())).toEqual(chosenFor(session))
  }
})

test('sessions are balanced by weight, also those of a removed upstream', () => {
  const chosen = sessions.map((session) => chosenFor(session))
  for (const [name, weight] of Object.entries(weights)) {
    const share = chosen.filter((each) => each === name).length / sessions.length
    expect(Math.abs(share - weight / 8)).toBeLessThan(0.03)
  }
  const moved = sessions.filter((session) => chosenFor(session) === 'c')
  const toB = moved.filter((session) => chosenFor(session, without('c')) === 'b')
  expect(Math.abs(toB.length / moved.length - 2 / 3)).toBeLessThan(0.04)
})

test('a removed upstream moves its own sessions only', () => {
  for (const session of sessions) {
    const chosen = chosenFor(session)
    if (chosen !== 'b') expect(chosenFor(session, without('b'))).toBe(chosen)
  }
})

test('a session yields to another upstream above its share of the load', () => {
  const own = createRouter({ random: () => 0.5 })
  const equal = ['a', 'b'].map((name) => ({ ...target('http://127.0.0.1:1/v1', name), tier: 0 }))
  const call = {
    context: makeRequestContext(),
    targets: equal,
    request: makeRequest({ promptCacheKey: 'one' }),
  }
  const slots = Array.from({ length: 40 }, () => own.take(call, nothingTried))
  const counts = equal.map((each) => own.stateOf(each).upstream.inFlight)
  // 1.25 times the half of forty requests.
  expect(counts.toSorted((left, right) => left - right)).toEqual([15, 25])
  // A few requests at a time are no reason to leave a prompt cache.
  const names = slots.slice(0, 8).map((slot) => slot?.target.upstream.name)
  expect(new Set(names).size).toBe(1)
})
