import { expect, test } from 'bun:test'
import { createLineRecorder } from '#batches/line-recorder.ts'
import type { Recorded, RecordedLine } from '#batches/line-store.ts'

const usage = { inputTokens: 1, cachedTokens: 0, outputTokens: 1, reasoningTokens: 0 }
const lineOf = (line: number, answer = 'x'): RecordedLine => ({
  line,
  answer,
  outcome: 'completed',
  usage,
})

/** A recorder whose transactions the test ends. */
function startRecorder() {
  const calls: { batchId: string; lines: number[]; end(failure?: Error): void }[] = []
  const record = createLineRecorder((batchId, lines) => {
    const { promise, resolve, reject } = Promise.withResolvers<(line: number) => Recorded>()
    calls.push({
      batchId,
      lines: lines.map(({ line }) => line),
      end(failure) {
        if (failure === undefined) resolve((line) => (line === 3 ? 'known' : 'recorded'))
        else reject(failure)
      },
    })
    return promise
  })
  return { calls, record }
}

test('a batch has one transaction at a time, with every answer that arrived meanwhile', async () => {
  const { calls, record } = startRecorder()
  const first = record('a', lineOf(1))
  const next = [2, 3, 4].map((line) => record('a', lineOf(line)))
  const other = record('b', lineOf(9))
  expect(calls.map(({ batchId, lines }) => [batchId, lines])).toEqual([
    ['a', [1]],
    ['b', [9]],
  ])
  calls[0]?.end()
  calls[1]?.end()
  expect(await first).toBe('recorded')
  expect(await other).toBe('recorded')
  expect(calls[2]?.lines).toEqual([2, 3, 4])
  calls[2]?.end()
  expect(await Promise.all(next)).toEqual(['recorded', 'known', 'recorded'])
})

test('a failed transaction fails its own answers alone', async () => {
  const { calls, record } = startRecorder()
  const failed = record('a', lineOf(1)).catch(String)
  const next = record('a', lineOf(2))
  calls[0]?.end(new Error('no database'))
  expect(await failed).toBe('Error: no database')
  calls[1]?.end()
  expect(await next).toBe('recorded')
  const later = record('a', lineOf(5))
  calls[2]?.end()
  expect(await later).toBe('recorded')
})

test('a transaction has a bounded number of answers and characters', async () => {
  const { calls, record } = startRecorder()
  const all = [record('a', lineOf(0))]
  for (let line = 1; line <= 100; line++) all.push(record('a', lineOf(line)))
  for (let line = 101; line <= 103; line++)
    all.push(record('a', lineOf(line, 'x'.repeat(5_000_000))))
  for (let at = 0; at < 6; at++) {
    calls[at]?.end()
    await Promise.resolve().then(() => Bun.sleep(0))
  }
  expect(calls.map(({ lines }) => lines.length)).toEqual([1, 64, 37, 1, 1])
  await Promise.all(all)
})
