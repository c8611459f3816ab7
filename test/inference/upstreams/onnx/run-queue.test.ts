import { expect, test } from 'bun:test'
import { RunQueue } from '#inference/upstreams/onnx/run-queue.ts'
import type { Run, RunResult } from '#inference/upstreams/onnx/wire.ts'
import { AppError } from '#lib/errors.ts'

const neverAborted = new AbortController().signal
const runOf = (text: string): Run => ({ kind: 'embed', texts: [text] })
const result: RunResult = { kind: 'scored', scores: [], tokens: 0 }

function start(runsMax = 10) {
  const started: string[] = []
  const queue = new RunQueue((run) => {
    if (run.kind === 'embed') started.push(run.texts.join())
  }, runsMax)
  const add = (text: string, urgency: 'query' | 'passage', signal = neverAborted) =>
    queue.add(runOf(text), urgency, signal)
  return { queue, started, add }
}

const messageOf = (work: Promise<unknown>) =>
  work.then(
    () => 'resolved',
    (error: unknown) => (error instanceof Error ? error.message : String(error)),
  )

test('a query runs before the passages that were queued earlier', async () => {
  const { queue, started, add } = start()
  const all = [
    add('first passage', 'passage'),
    add('second passage', 'passage'),
    add('query', 'query'),
  ]
  for (const _ of all) queue.settle(result)
  await Promise.all(all)
  expect(started).toEqual(['first passage', 'query', 'second passage'])
})

test('each kind has its own bounded queue', async () => {
  const { queue, add } = start(1)
  const running = add('running', 'passage')
  const queued = add('queued', 'passage')
  expect(await messageOf(add('too many', 'passage'))).toContain('Too many texts')
  const query = add('query', 'query')
  for (let count = 0; count < 3; count++) queue.settle(result)
  await Promise.all([running, queued, query])
})

test('an aborted run leaves the queue, and a running one is completed', async () => {
  const { queue, started, add } = start()
  const stopped = new AbortController()
  const running = add('running', 'passage', stopped.signal)
  const queued = add('queued', 'passage', stopped.signal)
  const next = add('next', 'passage')
  stopped.abort(new Error('gone'))
  expect(await messageOf(running)).toBe('gone')
  expect(await messageOf(queued)).toBe('gone')
  expect(started).toEqual(['running'])
  queue.settle(result)
  expect(started).toEqual(['running', 'next'])
  queue.settle(result)
  await next
})

test('the end of the process fails all runs, also those to come', async () => {
  const { queue, add } = start()
  const runs = [add('running', 'passage'), add('queued', 'query')]
  queue.close(new AppError('upstream_error', 'The process exited.'))
  runs.push(add('late', 'query'))
  expect(await Promise.all(runs.map(messageOf))).toEqual(runs.map(() => 'The process exited.'))
})
