import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type {
  Response,
  ResponsesClientEvent,
  ResponsesServerEvent,
} from 'openai/resources/responses/responses'
import { ResponsesWS } from 'openai/resources/responses/ws'
import {
  type ClientGateway,
  expectRecall,
  kinds,
  startClientGateway,
} from '#test/support/client-gateway.ts'
import { checkErrorMessage, checkTurn } from '#test/support/response-frames.ts'

/** `ResponsesWS` of the `openai` package: one connection, one response after the other. */

const weather = {
  type: 'function' as const,
  name: 'get_weather',
  strict: false,
  parameters: { type: 'object', properties: { city: { type: 'string' } } },
}

describe.each(kinds)('ResponsesWS over a $kind upstream', ({ kind, model, tools }) => {
  let server: ClientGateway
  beforeAll(async () => {
    server = await startClientGateway(kind)
  })
  afterAll(() => server.stop())

  type Ask = (body: Partial<ResponsesClientEvent.ResponseCreate>) => Promise<ResponsesServerEvent[]>

  /** Runs with a connection of its own; `ask` returns the events of a response. */
  async function connected(run: (ask: Ask) => Promise<void>): Promise<void> {
    const socket = new ResponsesWS(await server.gateway.openai())
    const messages = socket.stream()
    try {
      await run(async (body) => {
        socket.send({ type: 'response.create', model, ...body })
        const events: ResponsesServerEvent[] = []
        for (;;) {
          const { value } = await messages.next()
          if (value?.type === 'error') {
            if (value.error.error === undefined) throw value.error
            return [{ ...value.error.error, type: 'error' } as ResponsesServerEvent]
          }
          if (value?.type === 'close') throw new Error(`closed with ${value.code}`)
          if (value?.type !== 'message') continue
          events.push(value.message)
          if (/^response\.(completed|incomplete|failed)$/.test(value.message.type)) return events
        }
      })
    } finally {
      socket.close()
    }
  }

  test('responses run one after the other', async () => {
    await connected(async (ask) => {
      for (const input of ['Say hello.', 'Say it again.']) {
        const response = responseOf(await ask({ input }))
        expect(response.status).toBe('completed')
        expect(textOf(response).length).toBeGreaterThan(5)
      }
    })
  })

  test.each([true, false])('a response continues the previous one (store: %p)', async (store) => {
    await connected(async (ask) => {
      const introduction = 'My name is Ada and I like the sea and the wind.'
      const first = responseOf(await ask({ store, input: introduction }))
      const second = responseOf(
        await ask({ store, input: 'recall it', previous_response_id: first.id }),
      )
      const answer = { text: textOf(second), inputTokens: second.usage?.input_tokens }
      expectRecall(kind, answer, [introduction, textOf(first)])
    })
  })

  test('a tool is called and its result is returned', async () => {
    await connected(async (ask) => {
      const common = { model: tools, tools: [weather], store: false }
      const first = responseOf(await ask({ ...common, input: 'Weather in Oslo?' }))
      const [call] = first.output.filter((item) => item.type === 'function_call')
      const second = responseOf(
        await ask({
          ...common,
          previous_response_id: first.id,
          input: [
            { type: 'function_call_output', call_id: String(call?.call_id), output: 'sunny' },
          ],
        }),
      )
      expect(textOf(second)).toContain('sunny')
    })
  })

  test('a refused request is reported, and the connection stays open', async () => {
    await connected(async (ask) => {
      const [refused] = await ask({ input: 'x', previous_response_id: 'resp_unknown' })
      expect(checkErrorMessage(refused)['code']).toBe('previous_response_not_found')
      expect(responseOf(await ask({ input: 'Say hello.' })).status).toBe('completed')
    })
  })
})

function responseOf(events: readonly ResponsesServerEvent[]): Response {
  checkTurn(events)
  const last = events.at(-1)
  if (last?.type !== 'response.completed') throw new Error(`ended with ${last?.type}`)
  return last.response
}

function textOf(response: Response): string {
  return response.output
    .flatMap((item) => (item.type === 'message' ? item.content : []))
    .map((part) => (part.type === 'output_text' ? part.text : ''))
    .join('')
}
