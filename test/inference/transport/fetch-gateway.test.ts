import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readEvents } from '#test/support/event-reading.ts'
import { eventually } from '#test/support/eventually.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { checkMessageStream } from '#test/support/message-frames.ts'
import {
  type ReplayRequest,
  type ReplayUpstream,
  startReplayUpstream,
} from '#test/support/replay-upstream.ts'
import { checkStream } from '#test/support/response-frames.ts'
import { chatAnswer, nativeAnswer } from '#test/support/scripted-answers.ts'
import { messagesAnswer } from '#test/support/strict-messages-upstream.ts'

/** The whole product with `transport = "fetch"`. */

let upstream: ReplayUpstream
let gateway: Gateway

const protocols = ['chat', 'responses', 'messages'] as const

beforeAll(async () => {
  upstream = await startReplayUpstream({})
  gateway = await startGateway({
    environment: { SLUICE_TRANSPORT: 'fetch' },
    upstream: protocols.map((api) => ({ url: upstream.baseUrl, api, models: [api] })),
    retry: { retriesMax: 0 },
  })
})
afterAll(async () => {
  await gateway.stop()
  await upstream.stop()
})

function wholeBody({ path, body }: ReplayRequest): string {
  if (path.endsWith('/chat/completions')) return chatAnswer(body)
  return path.endsWith('/responses') ? nativeAnswer(body) : String(messagesAnswer(body).body)
}

const halfBody = (request: ReplayRequest) => {
  const body = wholeBody(request)
  return body.slice(0, body.indexOf('wörld'))
}

const surfaces = {
  responses: {
    ask: (model: string) =>
      gateway.post('/v1/responses', { model, input: 'Hello', stream: true, store: false }),
    ending(wire: string) {
      const { response } = checkStream(wire)
      return [response['status'], response['error']]
    },
    whole: ['completed', null],
    broken: ['failed', expect.objectContaining({ code: 'server_error' })],
  },
  messages: {
    ask: (model: string) =>
      gateway.post('/compat/v1/messages', {
        model,
        max_tokens: 10,
        stream: true,
        messages: [{ role: 'user', content: 'Hello' }],
      }),
    ending(wire: string) {
      const { message, error } = checkMessageStream(wire)
      return [message?.['stop_reason'], error]
    },
    whole: ['end_turn', null],
    broken: [null, expect.objectContaining({ type: 'api_error' })],
  },
}

describe.each(protocols)('a stream of %s', (protocol) => {
  describe.each(['responses', 'messages'] as const)('to a caller of %s', (name) => {
    const { ask, ending, whole, broken } = surfaces[name]

    test('arrives completely', async () => {
      upstream.answer((request) => ({ body: wholeBody(request) }))
      expect(ending(await (await ask(protocol)).text())).toEqual(whole)
    })

    test('that is truncated is reported as such', async () => {
      upstream.answer((request) => ({ body: halfBody(request), ending: 'hang' }))
      const events = readEvents(await ask(protocol))
      await events.until(/Hello/)
      upstream.cut()
      expect(ending(await events.whole())).toEqual(broken)
      await eventually('fetch says in the log what happened', () =>
        gateway.logLines.some((line) => line.includes('fetch failed: ECONNRESET')),
      )
    })

    test('whose body ends cleanly but too early is reported as such', async () => {
      upstream.answer((request) => ({ body: halfBody(request) }))
      expect(ending(await (await ask(protocol)).text())).toEqual(broken)
    })
  })
})

test('a disconnect ends the upstream request', async () => {
  upstream.answer((request) => ({ body: halfBody(request), ending: 'hang' }))
  const before = upstream.connections.aborted
  const answer = await surfaces.responses.ask('chat')
  await answer.body?.cancel()
  await upstream.until(({ connections }) => connections.aborted === before + 1)
})
