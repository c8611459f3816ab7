import { expect, test } from 'bun:test'
import { FairQueue, type QueuedCall } from '#inference/fair-queue/fair-queue.ts'
import { Ticket } from '#inference/fair-queue/lane.ts'
import { queued } from './queued-call.ts'

const unknownMs = 1_000
const accept = () => true
const limits = { waitingMax: 1_000, waitingPerPrincipalMax: 100 }

/** A queue whose calls are names. */
function start(given: Partial<typeof limits> = {}) {
  const queue = new FairQueue<string>({ ...limits, ...given })
  const offer = (name: string, call: Partial<QueuedCall> = {}, nowMs = 0) =>
    queue.add(name, queued(call), nowMs, unknownMs)
  const add = (name: string, call: Partial<QueuedCall> = {}, nowMs = 0) => {
    const ticket = offer(name, call, nowMs)
    if (!(ticket instanceof Ticket)) throw new Error(`"${name}" was refused: ${ticket.reason}`)
    return ticket
  }
  const grantAll = (upstream = 'gpu') => {
    const names: string[] = []
    for (;;) {
      const ticket = queue.grant(upstream, 0, accept)
      if (ticket === null) return names
      names.push(ticket.call)
    }
  }
  return { queue, offer, add, grantAll }
}

test('the calls of one principal are granted in order', () => {
  const { add, grantAll } = start()
  for (const name of ['a', 'b', 'c']) add(name)
  expect(grantAll()).toEqual(['a', 'b', 'c'])
})

test('a principal with one call is granted before the second call of another', () => {
  const { add, grantAll } = start()
  for (const name of ['a1', 'a2', 'a3']) add(name, { principal: 'anne' })
  add('b1', { principal: 'ben' })
  expect(grantAll()).toEqual(['a1', 'b1', 'a2', 'a3'])
})

test('principals share tokens, not calls', () => {
  const { add, queue } = start()
  for (let at = 0; at < 100; at++) add('large', { principal: 'anne', costTokens: 1_000 })
  for (let at = 0; at < 100; at++) add('small', { principal: 'ben', costTokens: 100 })
  const granted = Array.from({ length: 55 }, () => queue.grant('gpu', 0, accept)?.call)
  expect(granted.filter((name) => name === 'large')).toHaveLength(5)
})

test('a principal does not save up its share while it sends nothing', () => {
  const { add, queue } = start()
  for (let at = 0; at < 40; at++) add('anne', { principal: 'anne' })
  for (let at = 0; at < 20; at++) queue.grant('gpu', 0, accept)
  for (let at = 0; at < 20; at++) add('ben', { principal: 'ben' })
  const granted = Array.from({ length: 10 }, () => queue.grant('gpu', 0, accept)?.call)
  expect(granted.filter((name) => name === 'anne')).toHaveLength(5)
})

test('a principal that returns at once still owes what it used', () => {
  const { add, queue } = start()
  for (let at = 0; at < 10; at++) add('ben', { principal: 'ben' })
  add('anne', { principal: 'anne', costTokens: 500 })
  expect([queue.grant('gpu', 0, accept)?.call, queue.grant('gpu', 0, accept)?.call]).toEqual([
    'ben',
    'anne',
  ])
  add('anne', { principal: 'anne' })
  const granted = Array.from({ length: 6 }, () => queue.grant('gpu', 0, accept)?.call)
  expect(granted).toEqual(['ben', 'ben', 'ben', 'ben', 'anne', 'ben'])
})

test('what a call really cost is charged to its principal', () => {
  const { add, queue } = start()
  for (const principal of ['anne', 'ben']) {
    for (let at = 0; at < 10; at++) add(principal, { principal })
  }
  const first = queue.grant('gpu', 0, accept)
  expect(first?.call).toBe('anne')
  if (first !== null) queue.settle(first, 500)
  const granted = Array.from({ length: 6 }, () => queue.grant('gpu', 0, accept)?.call)
  expect(granted).toEqual(['ben', 'ben', 'ben', 'ben', 'ben', 'anne'])
})

test('interactive calls go first, and the others do not starve', () => {
  const { add, queue } = start()
  for (let at = 0; at < 90; at++) {
    add('batch', { priority: 'batch' })
    add('background', { priority: 'background' })
    add('interactive', { priority: 'interactive' })
  }
  const granted = Array.from({ length: 80 }, () => queue.grant('gpu', 0, accept)?.call)
  expect(granted.slice(0, 8)).toEqual(Array(8).fill('interactive'))
  const count = (name: string) => granted.filter((other) => other === name).length
  expect([count('interactive'), count('background'), count('batch')]).toEqual([70, 8, 2])
})

test('an interactive call overtakes waiting background and batch calls', () => {
  const { add, grantAll } = start()
  add('batch', { priority: 'batch' })
  add('background', { priority: 'background' })
  add('interactive')
  expect(grantAll()).toEqual(['interactive', 'background', 'batch'])
})

test('models that share an upstream share its tokens by waiting principals', () => {
  const { add, queue } = start()
  for (let at = 0; at < 90; at++) add('one', { model: 'one', principal: 'anne' })
  for (let at = 0; at < 90; at++) {
    for (const principal of ['ben', 'carl']) add('two', { model: 'two', principal })
  }
  const granted = Array.from({ length: 90 }, () => queue.grant('gpu', 0, accept)?.call)
  expect(granted.filter((name) => name === 'one')).toHaveLength(30)
})

test('an upstream is given only calls that it may serve', () => {
  const { add, grantAll } = start()
  add('a', { model: 'one', upstreams: ['first', 'second'] })
  add('b', { model: 'two', upstreams: ['second'] })
  expect(grantAll('first')).toEqual(['a'])
  expect(grantAll('third')).toEqual([])
  expect(grantAll('second')).toEqual(['b'])
})

test('a call that cannot use the free slot does not block the others', () => {
  const { add, queue } = start()
  add('a', { model: 'one' })
  add('b', { model: 'two' })
  expect(queue.grant('gpu', 0, (name) => name !== 'a')?.call).toBe('b')
  expect(queue.grant('gpu', 0, (name) => name !== 'a')).toBeNull()
  expect(queue.grant('gpu', 0, accept)?.call).toBe('a')
})

test('a full queue refuses with the time that it takes to drain', () => {
  const { queue, offer, add } = start({ waitingMax: 4 })
  for (const principal of ['a', 'b', 'c', 'd']) add('x', { principal })
  expect(offer('x', { principal: 'e' })).toEqual({ reason: 'queue_full', drainMs: 4_000 })
  queue.grant('gpu', 2_000, accept)
  add('x', { principal: 'e' }, 2_000)
  queue.grant('gpu', 6_000, accept)
  add('x', { principal: 'f' }, 6_000)
  // Two grants in 6 s: 3 s for each of the four that wait.
  expect(offer('x', { principal: 'g' }, 6_000)).toEqual({ reason: 'queue_full', drainMs: 12_000 })
  expect(offer('x', { principal: 'g' }, 16_000)).toEqual({ reason: 'queue_full', drainMs: 19_000 })
})

test('time without waiting calls does not count as a slow queue', () => {
  const { queue, offer, add } = start({ waitingMax: 1 })
  add('x', {}, 0)
  queue.grant('gpu', 1_000, accept)
  add('x', {}, 900_000)
  queue.grant('gpu', 901_000, accept)
  add('x', {}, 901_000)
  expect(offer('x', { principal: 'ben' }, 901_000)).toMatchObject({ drainMs: 1_000 })
})

test('one principal fills its share of the queue, and others still find a place', () => {
  const { offer } = start({ waitingMax: 100, waitingPerPrincipalMax: 80 })
  const results = Array.from({ length: 100 }, () => offer('a', { principal: 'anne' }))
  expect(results.filter((result) => result instanceof Ticket)).toHaveLength(50)
  expect(results.at(-1)).toEqual({ reason: 'principal_full', drainMs: 50_000 })
  expect(offer('b', { principal: 'ben' })).toBeInstanceOf(Ticket)
})

test('calls of one principal are bounded by their own limit', () => {
  const { offer } = start({ waitingMax: 100, waitingPerPrincipalMax: 3 })
  const results = Array.from({ length: 5 }, () => offer('a'))
  expect(results.filter((result) => result instanceof Ticket)).toHaveLength(3)
})

test('waiting batch calls leave the places of interactive calls free', () => {
  const { offer } = start({ waitingMax: 4 })
  const principals = ['a', 'b', 'c', 'd', 'e']
  for (const principal of principals) offer('x', { principal, priority: 'batch' })
  expect(offer('y')).toBeInstanceOf(Ticket)
})

test('calls expire in the order of their deadlines', () => {
  const { queue, add } = start()
  add('late', { deadlineMs: 300 })
  add('early', { deadlineMs: 100 })
  add('middle', { deadlineMs: 200 })
  expect(queue.nextDeadlineMs()).toBe(100)
  expect(queue.expire(99)).toBeNull()
  expect([queue.expire(200)?.call, queue.expire(200)?.call]).toEqual(['early', 'middle'])
  expect(queue.expire(200)).toBeNull()
  expect([queue.size, queue.grant('gpu', 0, accept)?.call, queue.nextDeadlineMs()]).toEqual([
    1,
    'late',
    null,
  ])
})

test('a refund does not put a principal before one that comes new', () => {
  const { add, queue } = start()
  for (let at = 0; at < 30; at++) add('anne', { principal: 'anne', costTokens: 500 })
  const granted = Array.from({ length: 10 }, () => queue.grant('gpu', 0, accept))
  for (const ticket of granted) if (ticket !== null) queue.settle(ticket, 10)
  add('ben', { principal: 'ben' })
  const next = Array.from({ length: 2 }, () => queue.grant('gpu', 0, accept)?.call)
  expect(next).toContain('ben')
})

test('a steady stream of new principals does not hold back the second call of another', () => {
  const { add, queue } = start()
  add('first', { principal: 'anne' })
  add('second', { principal: 'anne' })
  let grants = 0
  for (let granted = ''; granted !== 'second' && grants < 1_000; grants++) {
    // Three calls of others wait at any time.
    for (let at = queue.size; at < 4; at++) add('new', { principal: `new-${grants}-${at}` })
    granted = queue.grant('gpu', 0, accept)?.call ?? ''
  }
  expect(grants).toBeLessThanOrEqual(12)
})

test('a call that has left the queue does not keep those that waited beside it', () => {
  const { queue, add } = start()
  const [first, second, third] = [add('a'), add('b'), add('c')]
  queue.remove(second)
  expect([second.before, second.after]).toEqual([null, null])
  expect([first.after, third.before]).toEqual([third, first])
  expect(queue.grant('gpu', 0, accept)).toBe(first)
  expect([first.after, third.before]).toEqual([null, null])
})
