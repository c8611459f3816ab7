import { expect, test } from 'bun:test'
import { createCohorts } from '#lib/cohorts.ts'
import { runPendingPromises } from '#test/support/pending-promises.ts'

/** Joins, takes two steps, and notes them. */
function walkers(joinCohort: () => Promise<void>) {
  const steps: string[] = []
  return {
    steps,
    async walk(name: string) {
      await joinCohort()
      steps.push(`${name}1`)
      await null
      steps.push(`${name}2`)
    },
  }
}

const nextTurn = () => new Promise((resolve) => setImmediate(resolve))

test('who joins in one turn goes on at its end, and takes each step with the others', async () => {
  const { walk, steps } = walkers(createCohorts())
  const first = walk('a')
  await runPendingPromises()
  expect(steps).toEqual([])
  await Promise.all([first, walk('b')])
  expect(steps).toEqual(['a1', 'b1', 'a2', 'b2'])
})

test('who joins later goes on in the next turn', async () => {
  const { walk, steps } = walkers(createCohorts())
  await walk('a')
  const next = walk('b')
  await runPendingPromises()
  expect(steps).toEqual(['a1', 'a2'])
  await next
  expect(steps).toEqual(['a1', 'a2', 'b1', 'b2'])
})

test('a full cohort is followed by another one in the next turn', async () => {
  const { walk, steps } = walkers(createCohorts(2))
  const all = Promise.all(['a', 'b', 'c', 'd', 'e'].map(walk))
  const turns: string[][] = []
  for (let turn = 0; turn < 3; turn++) {
    await nextTurn()
    turns.push(steps.splice(0))
  }
  expect(turns).toEqual([
    ['a1', 'b1', 'a2', 'b2'],
    ['c1', 'd1', 'c2', 'd2'],
    ['e1', 'e2'],
  ])
  await all
})
