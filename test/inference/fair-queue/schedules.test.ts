import { expect, test } from 'bun:test'
import { FairQueue } from '#inference/fair-queue/fair-queue.ts'
import { Ticket } from '#inference/fair-queue/lane.ts'
import { createDice } from '#test/support/dice.ts'
import { queued } from './queued-call.ts'

const unknownMs = 1_000
const accept = () => true

/** What a random schedule observed. */
type Schedule = { ended: Map<number, string[]>; faults: string[] }

const principals = ['a', 'b', 'c', 'd', 'e', 'f']
const routes = [['gpu'], ['gpu', 'other'], ['other']]
const priorityNames = ['interactive', 'background', 'batch'] as const

function pick<T>(values: readonly T[], dice: ReturnType<typeof createDice>): T {
  const value = values[dice.upTo(values.length)]
  if (value === undefined) throw new Error('nothing to pick from')
  return value
}

function runSchedule(seed: number): Schedule {
  const dice = createDice(seed)
  const queue = new FairQueue<number>({ waitingMax: 20, waitingPerPrincipalMax: 6 })
  const live: Ticket<number>[] = []
  const ended = new Map<number, string[]>()
  const faults: string[] = []
  const end = (call: number, how: string) => {
    ended.set(call, [...(ended.get(call) ?? []), how])
    const at = live.findIndex((ticket) => ticket.call === call)
    if (at < 0) faults.push(`${how} of call ${call}, which does not wait`)
    else live.splice(at, 1)
  }
  const grant = (nowMs: number, upstream: string) => {
    const servable = live.filter(({ lane }) => lane.upstreams.includes(upstream))
    const granted = queue.grant(upstream, nowMs, accept)
    if (granted === null) {
      if (servable.length > 0) faults.push('a free slot, and calls that wait for it')
      return
    }
    const { call, lane, flow, costTokens } = granted
    if (!lane.upstreams.includes(upstream)) faults.push('granted at a foreign upstream')
    const earlier = live.find((other) => other.lane === lane && other.flow === flow)
    if (earlier !== granted) faults.push('not the first of its principal')
    end(call, 'granted')
    if (dice.upTo(2) === 0) queue.settle(granted, dice.upTo(2 * costTokens))
  }
  let nowMs = 0
  for (let step = 0; step < 600; step++) {
    nowMs += dice.upTo(20)
    const choice = dice.upTo(10)
    if (choice < 5) {
      const added = queue.add(
        step,
        queued({
          upstreams: pick(routes, dice),
          principal: pick(principals, dice),
          priority: pick(priorityNames, dice),
          costTokens: dice.upTo(1_000),
          deadlineMs: nowMs + dice.upTo(400),
        }),
        nowMs,
        unknownMs,
      )
      if (added instanceof Ticket) live.push(added)
      else if (!(added.drainMs >= 0)) faults.push('no time to drain')
    } else if (choice < 8) grant(nowMs, pick(['gpu', 'other'], dice))
    else if (choice === 8) {
      const ticket = live[dice.upTo(Math.max(1, live.length))]
      if (ticket !== undefined) {
        queue.remove(ticket)
        queue.remove(ticket)
        end(ticket.call, 'removed')
      }
    } else {
      for (let due = queue.expire(nowMs); due !== null; due = queue.expire(nowMs)) {
        if (due.deadlineMs > nowMs) faults.push('expired early')
        end(due.call, 'expired')
      }
      if ((queue.nextDeadlineMs() ?? nowMs + 1) <= nowMs) faults.push('a deadline was missed')
    }
    if (queue.size !== live.length) faults.push(`size ${queue.size} instead of ${live.length}`)
    const lanes = [...queue.lanes()]
    const counted = lanes.reduce((sum, lane) => sum + lane.waiting, 0)
    if (counted !== live.length) faults.push('the lanes count otherwise')
    for (const lane of lanes) {
      if (lane.waiting > 20 || lane.waiting === 0) faults.push('a lane that is too long or empty')
      for (const name of principals) if (lane.waitingOf(name) > 6) faults.push('too many of one')
    }
  }
  for (const upstream of ['gpu', 'other'])
    while (live.some(({ lane }) => lane.upstreams.includes(upstream))) grant(nowMs, upstream)
  if (queue.size !== 0 || [...queue.lanes()].length !== 0) faults.push('calls are left over')
  return { ended, faults }
}

test('in random schedules each call ends once, bounds hold, and no free slot waits', () => {
  for (let seed = 1; seed <= 200; seed++) {
    const { ended, faults } = runSchedule(seed)
    expect({ seed, faults: faults.slice(0, 3) }).toEqual({ seed, faults: [] })
    for (const endings of ended.values()) expect(endings).toHaveLength(1)
  }
})

test('between two principals that wait, granted tokens differ by two calls at most', () => {
  const costMax = 1_000
  for (let seed = 1; seed <= 100; seed++) {
    const dice = createDice(seed)
    const queue = new FairQueue<string>({ waitingMax: 100_000, waitingPerPrincipalMax: 1_000 })
    const served = new Map(principals.map((principal) => [principal, 0]))
    const refill = (principal: string) =>
      queue.add(
        principal,
        queued({ principal, costTokens: 1 + dice.upTo(principal === 'a' ? costMax : 50) }),
        0,
        unknownMs,
      )
    for (const principal of principals) for (let at = 0; at < 3; at++) refill(principal)
    for (let step = 0; step < 500; step++) {
      const ticket = queue.grant('gpu', 0, accept)
      if (ticket === null) throw new Error('nobody waits')
      const { call, costTokens } = ticket
      served.set(call, (served.get(call) ?? 0) + costTokens)
      refill(call)
      const sums = [...served.values()]
      expect(Math.max(...sums) - Math.min(...sums)).toBeLessThanOrEqual(2 * costMax)
    }
  }
})
