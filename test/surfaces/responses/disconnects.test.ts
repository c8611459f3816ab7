import { afterAll, describe, expect, test } from 'bun:test'
import type { Target } from '#inference/upstream.ts'
import { eventually } from '#test/support/eventually.ts'
import { startGateway } from '#test/support/gateway.ts'
import { collect, start, stopUpstreams, target, upstreamThat } from '#test/support/generations.ts'
import {
  type RecordedProtocol,
  recordedStream,
  recordedStreamNames,
  sharedRecordingsExist,
} from '#test/support/recordings.ts'
import { readOpenFrames } from '#test/support/response-frames.ts'

/** A disconnected client leaves nothing open, whenever it disconnects. */

afterAll(stopUpstreams)

const bytesMax = 16_384
const failing = 'openai-error.1.chunks.txt'

const streams = (['chat-completions', 'responses'] as const)
  .flatMap((protocol) => recordedStreamNames(protocol).map((name) => ({ protocol, name })))
  .filter(({ name }) => name !== failing && !name.includes('-empty'))
  .map((recording) => ({ ...recording, wire: recordedStream(recording.protocol, recording.name) }))
  .filter(({ wire }) => Buffer.byteLength(wire) <= bytesMax)

/** The end of each message of the stream, in bytes. */
function messageEnds(wire: string): number[] {
  return [...wire.matchAll(/\n\n/g)].map(({ index }) => Buffer.byteLength(wire.slice(0, index + 2)))
}

function targetOf(protocol: RecordedProtocol, baseUrl: string): Target {
  const chat = target(baseUrl)
  return protocol === 'responses'
    ? { ...chat, upstream: { ...chat.upstream, kind: 'responses' } }
    : chat
}

/** Receives `count` events, then disconnects in the given way. */
async function disconnectAfter(
  count: number,
  run: { way: string; leaving: AbortController; batches: AsyncGenerator<readonly unknown[]> },
): Promise<void> {
  let seen = 0
  for await (const batch of run.batches) {
    seen += batch.length
    if (seen < count) continue
    if (run.way === 'stops reading') break
    run.leaving.abort()
  }
}

describe('a client that disconnects after any event', () => {
  const ways = ['stops reading', 'aborts']
  const cases = streams.flatMap((recording) => ways.map((way) => ({ ...recording, way })))

  // A connection whose response does not end is closed after a second.
  test.concurrent.each(cases)('$protocol/$name, $way', async ({ protocol, wire, way }) => {
    const upstream = await upstreamThat({ body: wire, cutsAt: messageEnds(wire) })
    const { inference, records, run } = start({ limits: { streamsMax: 1_000 } })
    const goal = targetOf(protocol, upstream.baseUrl)
    const events = await collect(run([goal]))
    expect(events.length).toBeGreaterThan(2)

    upstream.answer({ body: wire, cutsAt: messageEnds(wire), ending: 'hang' })
    // The generation has ended with the last event and cannot be aborted.
    const counts = [...events.keys()].slice(1)
    await Promise.all(
      counts.map((count) => {
        const leaving = new AbortController()
        const batches = run([goal], { signal: leaving.signal })
        return disconnectAfter(count, { way, leaving, batches })
      }),
    )
    expect(inference.running()).toBe(0)
    await upstream.until(({ connections }) => connections.open === 0)
    expect(records).toHaveLength(1 + counts.length)
    expect(upstream.requests).toHaveLength(1 + counts.length)
    // Once the model has finished, a disconnect during its usage does not change that.
    expect(records.slice(1).filter(({ outcome }) => outcome === 'failed')).toEqual([])
  })
})

describe.skipIf(!sharedRecordingsExist)('a client that disconnects after any frame', () => {
  test.each([
    ['chat', 'chat-completions', 'mistral-incremental-tool-call.chunks.txt'],
    ['responses', 'responses', 'openai-custom-tool.1.chunks.txt'],
  ] as const)('of a %s upstream', async (api, protocol, name) => {
    const wire = recordedStream(protocol, name)
    const upstream = await upstreamThat({ body: wire, cutsAt: messageEnds(wire) })
    const gateway = await startGateway({
      upstream: [{ url: upstream.baseUrl, api, models: ['m'] }],
    })
    const ended = () => gateway.logLines.filter((line) => line.includes('"request ended"'))
    const ask = (signal?: AbortSignal) =>
      gateway.request('/v1/responses', {
        method: 'POST',
        body: JSON.stringify({ model: 'm', input: 'x', stream: true, store: false }),
        ...(signal === undefined ? {} : { signal }),
      })
    const frames = readOpenFrames(await (await ask()).text())
    expect(frames.length).toBeGreaterThan(6)

    upstream.answer({ body: wire, cutsAt: messageEnds(wire), ending: 'hang' })
    const counts = [...frames.keys()]
    for (const count of counts) {
      const leaving = new AbortController()
      const answer = await ask(leaving.signal)
      let text = ''
      for await (const bytes of answer.body ?? []) {
        text += Buffer.from(bytes).toString('latin1')
        if (readOpenFrames(text).length >= count) break
      }
      leaving.abort()
    }
    await upstream.until(({ connections }) => connections.open === 0)
    await eventually('all are over', () => ended().length === 1 + counts.length)
    expect(gateway.deps.inference.running()).toBe(0)
    await gateway.stop()
    expect(ended()).toHaveLength(1 + counts.length)
  })
})
