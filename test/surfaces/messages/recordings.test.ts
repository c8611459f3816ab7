import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { JsonObject } from '#lib/json.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { checkMessageStream } from '#test/support/message-frames.ts'
import { recordedPayloads, recordedStream, recordedStreamNames } from '#test/support/recordings.ts'
import { type ReplayUpstream, startReplayUpstream } from '#test/support/replay-upstream.ts'
import {
  contentOfChat,
  contentOfResponsesStream,
  normalise,
} from '#test/support/response-content.ts'

/** Recorded responses of servers with other protocols, on /compat. */

const recordings = (['chat-completions', 'responses'] as const).flatMap((protocol) =>
  recordedStreamNames(protocol).map((name) => ({ protocol, name })),
)

describe('recorded traffic on /compat', () => {
  let upstream: ReplayUpstream
  let gateway: Gateway

  beforeAll(async () => {
    upstream = await startReplayUpstream(({ path, body }) => {
      const protocol = path.endsWith('/responses') ? 'responses' : 'chat-completions'
      return { body: recordedStream(protocol, JSON.parse(body).model) }
    })
    const namesOf = (protocol: string) =>
      recordings.filter((recording) => recording.protocol === protocol).map(({ name }) => name)
    gateway = await startGateway({
      upstream: [
        { url: upstream.baseUrl, api: 'chat', models: namesOf('chat-completions') },
        { url: upstream.baseUrl, api: 'responses', models: namesOf('responses') },
      ],
    })
  })
  afterAll(async () => {
    await gateway.stop()
    await upstream.stop()
  })

  const ask = (model: string, stream: boolean) =>
    gateway.post('/compat/v1/messages', {
      model,
      max_tokens: 100,
      messages: [{ role: 'user', content: 'x' }],
      stream,
    })

  test.each(recordings)('$protocol/$name', async ({ protocol, name }) => {
    const answer = await ask(name, true)
    const whole = await ask(name, false)
    if (answer.status !== 200) {
      expect(whole.status).toBe(answer.status)
      return
    }
    const { message, error } = checkMessageStream(await answer.text())
    if (error !== null) {
      expect(await whole.json()).toMatchObject({ type: 'error', error })
      return
    }
    // Each seal is unique.
    const same = (given: unknown) =>
      JSON.parse(normalise(JSON.stringify(given)).replace(/"sluice1[^"]+"/g, '"sealed"'))
    expect(same(await whole.json())).toEqual(same(message))
    const payloads = recordedPayloads(protocol, name)
    const said =
      protocol === 'responses' ? contentOfResponsesStream(payloads) : contentOfChat(payloads)
    const content = message?.['content'] as JsonObject[]
    const textOf = (type: string, field: string) =>
      content.map((block) => (block['type'] === type ? block[field] : '')).join('')
    expect(textOf('text', 'text')).toBe(said.text)
    expect(
      content.flatMap(({ type, name: called }) => (type === 'tool_use' ? [called] : [])),
    ).toEqual(said.calls.map(({ name: called }) => called))
  })
})
