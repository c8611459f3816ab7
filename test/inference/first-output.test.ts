import { expect, test } from 'bun:test'
import { type EventBatch, type Relay, withRelay } from '#inference/events.ts'
import { readFirstOutput } from '#inference/first-output.ts'

const relay = (...names: string[]): Relay => ({
  protocol: 'messages',
  maker: 'm',
  frames: names.map((data) => ({ payload: {}, data })),
})
const start = { type: 'generation-start', id: null, model: null } as const
const text = { type: 'text-start', block: 0, form: 'answer' } as const
const delta = { type: 'text-delta', block: 0, text: 'Hi' } as const

async function* batchesOf(...batches: EventBatch[]): AsyncGenerator<EventBatch, void> {
  yield* batches
}

test('what precedes the first output is part of its batch, with frames that have no events', async () => {
  const batches = batchesOf(
    withRelay([], relay('ping')),
    [],
    withRelay([start], relay('start')),
    withRelay([text], relay('text')),
    [delta],
  )
  const first = await readFirstOutput(batches)
  expect([...first.batch]).toEqual([start, text])
  expect(first.batch.relay?.frames.map(({ data }) => data)).toEqual(['ping', 'start', 'text'])
  expect(await first.batches.next()).toEqual({ done: false, value: [delta] })
})

test('a generation without output is truncated, whatever else it had', async () => {
  const reading = readFirstOutput(batchesOf(withRelay([start], relay('start'))))
  expect(reading).rejects.toMatchObject({ kind: 'upstream_truncated' })
  await reading.catch(() => {})
})
