import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type OpenAI from 'openai'
import { isRecord } from '#lib/json.ts'
import { createDice } from '#test/support/dice.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { json } from '#test/support/generations.ts'
import {
  recordedBody,
  recordedBodyNames,
  recordedPayloads,
  recordedStream,
  recordedStreamNames,
  sharedRecordingsExist,
} from '#test/support/recordings.ts'
import { type ReplayUpstream, startReplayUpstream } from '#test/support/replay-upstream.ts'
import {
  contentOfChat,
  contentOfResponse,
  contentOfResponsesStream,
  normalise,
} from '#test/support/response-content.ts'
import { checkStream, type Frame, readFrames } from '#test/support/response-frames.ts'

/** Real traffic of other servers, through the complete gateway. */

/** Only an error. */
const failing = 'openai-error.1.chunks.txt'
/** It was cut off at the output limit. */
const isLimited = (payload: string) =>
  /"finish_reason": ?"length"|"status": ?"incomplete"/.test(payload)
/** Its first and last payloads lack the closing brace, so it has no end. */
const truncated = 'parallel-tool-call-wrapper.1.chunks.txt'

const protocols = ['chat-completions', 'responses'] as const
const streams = protocols.flatMap((protocol) =>
  recordedStreamNames(protocol).map((name) => ({ protocol, name })),
)
const whole = streams.filter(({ name }) => name !== failing && name !== truncated)

/** Complete responses, as of an upstream that does not stream although requested. */
const errors = /error/
const bodies = protocols.flatMap((protocol) =>
  recordedBodyNames(protocol)
    .filter((name) => !errors.test(name))
    .map((name) => ({ protocol, name })),
)

const cutRounds = 3
const cutsEach = 8

function namesOf(protocol: (typeof protocols)[number]): string[] {
  return [...recordedStreamNames(protocol), ...recordedBodyNames(protocol)]
}

describe('recorded traffic through the gateway', () => {
  let upstream: ReplayUpstream
  let gateway: Gateway
  let client: OpenAI
  let cutsAt: readonly number[] = []

  beforeAll(async () => {
    upstream = await startReplayUpstream(({ path, body }) => {
      const protocol = path.endsWith('/responses') ? 'responses' : 'chat-completions'
      const { model } = JSON.parse(body)
      return model.endsWith('.json')
        ? { headers: json, body: recordedBody(protocol, model), cutsAt }
        : { body: recordedStream(protocol, model), cutsAt }
    })
    gateway = await startGateway({
      upstream: [
        { url: upstream.baseUrl, api: 'chat', models: namesOf('chat-completions') },
        { url: upstream.baseUrl, api: 'responses', models: namesOf('responses') },
      ],
    })
    client = await gateway.openai()
  })
  afterAll(async () => {
    await gateway.stop()
    await upstream.stop()
  })

  const ask = (model: string, stream: boolean) =>
    gateway.post('/v1/responses', { model, input: 'x', stream })
  const streamed = async (model: string) => (await ask(model, true)).text()

  test.each(whole)(
    '$protocol/$name keeps the order of frames and its content',
    async (recording) => {
      const { protocol, name } = recording
      const { response } = checkStream(await streamed(name))
      const payloads = recordedPayloads(protocol, name)
      const expected =
        protocol === 'responses' ? contentOfResponsesStream(payloads) : contentOfChat(payloads)
      expect(response['status']).toBe(payloads.some(isLimited) ? 'incomplete' : 'completed')
      expect(contentOfResponse(response)).toEqual(expected)
    },
  )

  test.each(whole)('$protocol/$name is the same without streaming', async ({ name }) => {
    const answer: unknown = await (await ask(name, false)).json()
    const { response } = checkStream(await streamed(name))
    expect(normalise(JSON.stringify(answer))).toBe(normalise(JSON.stringify(response)))
  })

  test.each(whole)('$protocol/$name is read by the strict stream helper', async ({ name }) => {
    const stream = client.responses.stream({ model: name, input: 'x' })
    let closing: unknown
    stream.on('event', (event) => {
      if ('response' in event) closing = structuredClone(event.response)
    })
    const final: unknown = await stream.finalResponse()
    if (!isRecord(final) || !isRecord(closing)) throw new Error('no response')
    expect(closing['status']).toBeOneOf(['completed', 'incomplete'])
    // The package adds fields, and removes none.
    expect(final).toMatchObject(closing)
  })

  test.each(whole)('$protocol/$name is the same wherever reads split it', async (recording) => {
    const { protocol, name } = recording
    const uncut = normalise(await streamed(name))
    const bytes = Buffer.byteLength(recordedStream(protocol, name))
    const dice = createDice(bytes)
    for (let round = 0; round < cutRounds; round++) {
      const cuts = Array.from({ length: cutsEach }, () => dice.upTo(bytes))
      cutsAt = cuts.toSorted((left, right) => left - right)
      expect(normalise(await streamed(name)), `cut at ${cutsAt}`).toBe(uncut)
    }
    cutsAt = []
  })

  test.each(bodies)(
    '$protocol/$name is streamed even if it arrived complete',
    async (recording) => {
      const { protocol, name } = recording
      cutsAt = [100, 200]
      const { response } = checkStream(await streamed(name))
      cutsAt = []
      const body = recordedBody(protocol, name)
      const parsed: unknown = JSON.parse(body)
      const expected =
        protocol === 'responses' && isRecord(parsed)
          ? contentOfResponse(parsed)
          : contentOfChat([body])
      expect(contentOfResponse(response)).toEqual(expected)
      const answer: unknown = await (await ask(name, false)).json()
      expect(normalise(JSON.stringify(answer))).toBe(normalise(JSON.stringify(response)))
    },
  )

  test.skipIf(!sharedRecordingsExist)('a recorded failure is an HTTP status', async () => {
    const answer = await ask(failing, true)
    expect(answer.status).toBe(429)
    expect(await answer.json()).toMatchObject({ error: { code: 'insufficient_quota' } })
  })

  test.skipIf(!sharedRecordingsExist)(
    'a recording without its end fails, with its output',
    async () => {
      const { response } = checkStream(await streamed(truncated))
      expect(response).toMatchObject({ status: 'failed', error: { code: 'server_error' } })
      expect(contentOfResponse(response).calls).toHaveLength(1)
      expect((await ask(truncated, false)).status).toBe(502)
    },
  )

  test.skipIf(!sharedRecordingsExist)(
    'the validation detects a missing, repeated or misplaced frame',
    async () => {
      const frames = readFrames(await streamed('openai-phase.1.chunks.txt'))
      const mistakes = frames.flatMap((frame, at) => {
        const [before, after] = [frames.slice(0, at), frames.slice(at + 1)]
        const [next, ...rest] = after
        return [
          { what: `without ${at}`, frames: [...before, ...after] },
          // A second in_progress is a heartbeat.
          { what: `twice ${at}`, frames: at === 1 ? after : [...before, frame, frame, ...after] },
          { what: `late ${at}`, frames: next ? [...before, next, frame, ...rest] : before },
        ]
      })
      const unnoticed = mistakes.filter(({ frames }) => !isRefused(frames))
      expect(unnoticed.map(({ what }) => what)).toEqual([])
    },
  )
})

/** Whether the validation rejects these frames, renumbered. */
function isRefused(frames: readonly Frame[]): boolean {
  const blocks = frames.map((frame, at) => {
    const data = JSON.stringify({ ...frame, sequence_number: at })
    return `event: ${frame.type}\ndata: ${data}\n\n`
  })
  try {
    checkStream(`${blocks.join('')}data: [DONE]\n\n`)
    return false
  } catch {
    return true
  }
}
