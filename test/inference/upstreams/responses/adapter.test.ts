import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { GenerationEvent } from '#inference/events.ts'
import type { AdapterContext } from '#inference/upstream.ts'
import { responses } from '#inference/upstreams/responses/adapter.ts'
import { type AppError, toAppError } from '#lib/errors.ts'
import { makeRequestContext } from '#test/support/generation.ts'
import { checkEvents } from '#test/support/grammar.ts'
import {
  recordedPayloads,
  recordedStream,
  sharedRecordingsExist,
} from '#test/support/recordings.ts'
import { type ReplayUpstream, startReplayUpstream } from '#test/support/replay-upstream.ts'
import { fetchTransport } from '#test/support/transport.ts'
import { blocksOf, decode, mergeDeltas, sseOf } from './decoding.ts'
import {
  completed,
  created,
  itemAdded,
  itemDone,
  message,
  messageWith,
  textDelta,
} from './payloads.ts'
import { bare, quirks } from './requests.ts'

let replay: ReplayUpstream
beforeAll(async () => {
  replay = await startReplayUpstream({ body: '' })
})
afterAll(() => replay.stop())

function context(signal = new AbortController().signal): AdapterContext {
  return {
    upstream: {
      name: 'replay',
      kind: 'responses',
      baseUrl: replay.baseUrl,
      key: 'secret',
      headers: {},
      quirks,
    },
    model: 'model-there',
    transport: fetchTransport,
    signal,
    limits: { eventBytesMax: 1_000_000, toolArgumentCharsMax: 1_000_000 },
    requestContext: makeRequestContext(signal),
    streamed: true,
  }
}

async function generate(): Promise<{ events: GenerationEvent[]; error: AppError | null }> {
  const events: GenerationEvent[] = []
  try {
    for await (const batch of checkEvents(responses.generate(bare, context()))) {
      events.push(...batch)
    }
    return { events, error: null }
  } catch (error) {
    return { events, error: toAppError(error) }
  }
}

const hello = [
  created,
  itemAdded(message),
  textDelta('Hel'),
  textDelta('lo'),
  itemDone(messageWith('Hello')),
  completed(),
]

describe('over a socket', () => {
  test('the whole context is posted to /responses, and the response decoded to events', async () => {
    replay.answer({ body: sseOf(hello) })
    const { events, error } = await generate()
    expect(error).toBeNull()
    expect(events).toEqual(decode(hello).events)
    const sent = replay.requests.at(-1)
    expect(sent).toMatchObject({ method: 'POST', path: '/v1/responses' })
    expect(sent?.headers).toMatchObject({ authorization: 'Bearer secret' })
    expect(JSON.parse(sent?.body ?? '')).toEqual({
      model: 'model-there',
      input: [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Hi' }] }],
      stream: true,
      store: false,
    })
  })

  test.skipIf(!sharedRecordingsExist)('a recorded stream in small pieces', async () => {
    const name = 'openai-web-search-tool.1.chunks.txt'
    const body = recordedStream('responses', name)
    const cutsAt = Array.from({ length: 40 }, (_, piece) => (piece + 1) * 1_999)
    replay.answer({ body, cutsAt })
    const { events } = await generate()
    expect(mergeDeltas(events)).toEqual(
      mergeDeltas(decode(recordedPayloads('responses', name)).events),
    )
  })

  test('a response that is not streamed yields events', async () => {
    const body = JSON.stringify({
      object: 'response',
      status: 'completed',
      output: [messageWith('Hi')],
    })
    replay.answer({ body, headers: { 'content-type': 'application/json' } })
    const { events, error } = await generate()
    expect(error).toBeNull()
    expect(blocksOf({ events })).toEqual([{ text: 'Hi' }])
  })

  test('an error in the same read as text comes after the text', async () => {
    const failure = { type: 'error', code: 'server_error', message: 'Broken.' }
    replay.answer({ body: sseOf([...hello.slice(0, 3), failure]) })
    const { events, error } = await generate()
    expect(error).toMatchObject({ kind: 'upstream_error', message: 'Broken.' })
    expect(blocksOf({ events })).toEqual([{ text: 'Hel' }])
  })

  test('a connection or body that ends early is truncation', async () => {
    replay.answer({ body: sseOf(hello.slice(0, 3)), ending: 'cut' })
    expect((await generate()).error?.kind).toBe('upstream_truncated')
    replay.answer({ body: sseOf(hello.slice(0, 3)) })
    const { events, error } = await generate()
    expect(error?.kind).toBe('upstream_truncated')
    expect(blocksOf({ events })).toEqual([{ text: 'Hel' }])
  })

  test("an error response before the stream keeps the upstream's message", async () => {
    const refusal = {
      error: { message: 'No such model.', code: 'model_not_found', param: 'model' },
    }
    replay.answer({ status: 400, body: JSON.stringify(refusal) })
    const { events, error } = await generate()
    expect(error).toMatchObject({ kind: 'invalid_request', message: 'No such model.' })
    expect(events).toEqual([])
  })

  test('a consumer that stops closes the connection', async () => {
    replay.answer({ body: sseOf(hello.slice(0, 3)), ending: 'hang' })
    const before = replay.connections.aborted
    for await (const batch of responses.generate(bare, context())) {
      if (batch.some(({ type }) => type === 'text-delta')) break
    }
    await replay.until(({ connections }) => connections.aborted > before)
    expect(replay.connections.aborted).toBe(before + 1)
  })

  test('models are listed from /models', async () => {
    replay.answer({
      body: JSON.stringify({ object: 'list', data: [{ id: 'a', object: 'model' }] }),
      headers: { 'content-type': 'application/json' },
    })
    expect(await responses.listModels(context())).toEqual([
      { id: 'a', created: null, ownedBy: null, contextWindow: null },
    ])
  })
})
