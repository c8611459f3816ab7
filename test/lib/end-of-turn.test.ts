import { expect, test } from 'bun:test'
import { endOfTurn } from '#lib/end-of-turn.ts'

test('those who wait in one turn go on together, and take each further step together', async () => {
  const steps: string[] = []
  async function walk(name: string) {
    await endOfTurn()
    steps.push(`${name} 1`)
    await null
    steps.push(`${name} 2`)
  }
  const first = walk('a')
  await Bun.sleep(0).then(() => {})
  expect(steps).toEqual(['a 1', 'a 2'])
  steps.length = 0
  await Promise.all([walk('b'), walk('c')])
  expect(steps).toEqual(['b 1', 'c 1', 'b 2', 'c 2'])
  await first
})

test('who waits at the end of a turn waits for the end of the next one', async () => {
  await endOfTurn()
  let isNextTurn = false
  setImmediate(() => {
    isNextTurn = true
  })
  await endOfTurn()
  expect(isNextTurn).toBe(true)
})
