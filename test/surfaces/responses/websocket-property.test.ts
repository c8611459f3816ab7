import { afterAll, beforeAll, expect, test } from 'bun:test'
import fc from 'fast-check'
import { eventually } from '#test/support/eventually.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { begun, stopUpstreams, upstreamThat, whole } from '#test/support/generations.ts'
import { holdsAsync } from '#test/support/properties.ts'
import { chatStream } from '#test/support/recordings.ts'
import type { ReplayAnswer, ReplayUpstream } from '#test/support/replay-upstream.ts'
import { chunk } from '#test/support/scripted-answers.ts'
import { openSocket } from '#test/support/socket-client.ts'
import { chatPrompt, checkSocketLog } from '#test/support/socket-log.ts'

/** Random requests, instructions and failures on several streams keep the format. */

let upstream: ReplayUpstream
let gateway: Gateway
let token: string

const call = chunk({
  tool_calls: [{ index: 0, id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }],
})
const answers: Record<string, ReplayAnswer> = {
  whole: { body: whole, cutsAt: [begun.length] },
  endless: { body: begun, ending: 'hang' },
  silent: { ending: 'silent' },
  truncated: { body: begun },
  refused: { status: 400, body: '{"error":{"message":"no"}}' },
  calls: { body: chatStream([chunk({ content: 'I look.' }), call, chunk({}, 'tool_calls')]) },
}
const kinds = Object.keys(answers)

beforeAll(async () => {
  upstream = await upstreamThat({})
  upstream.answer(({ body }) => {
    // A probe of an upstream that failed.
    if (body === '') return {}
    const last = chatPrompt(body).findLast((line) => line.startsWith('user: ')) ?? ''
    return answers[last.split(' ')[1] ?? ''] ?? { body: whole }
  })
  gateway = await startGateway({
    upstream: [{ url: upstream.baseUrl, models: ['m'] }],
    retry: { retriesMax: 0 },
    websocket: { activeMax: 3 },
  })
  token = await gateway.token()
})
afterAll(async () => {
  await gateway.stop()
  await stopUpstreams()
})

const lane = fc.constantFrom(null, 'a', 'b', 'c')
const kind = fc.constantFrom(...kinds)
const action = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant('create' as const), lane, kind, store: fc.boolean() }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('steer' as const), lane, kind }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('cut' as const) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('wait' as const) }) },
)

test('every stream and every instruction has a valid course, to its end', async () => {
  await holdsAsync(
    fc.record({ actions: fc.array(action, { minLength: 3, maxLength: 16 }), leaves: fc.boolean() }),
    async ({ actions, leaves }) => {
      const client = await openSocket(gateway.port, {
        headers: { authorization: `Bearer ${token}` },
      })
      /** The response that began last on a stream. */
      const newest = (stream: string | null) => {
        const created = client.texts.filter((text) => text.startsWith('{"type":"response.created"'))
        const own = created
          .map((text) => JSON.parse(text))
          .filter(({ stream_id: of = null }) => of === stream)
        return own.at(-1)?.response.id ?? 'resp_none'
      }
      let created = 0
      let steered = 0
      for (const step of actions) {
        if (step.do === 'create') {
          created++
          client.send({
            type: 'response.create',
            model: 'm',
            input: step.kind,
            store: step.store,
            tools: [{ type: 'function', name: 'f', parameters: { type: 'object' } }],
            ...(step.lane === null ? {} : { stream_id: step.lane }),
          })
        } else if (step.do === 'steer') {
          steered++
          const previous_response_id = newest(step.lane)
          client.send({ type: 'response.steer', previous_response_id, input: step.kind })
        } else if (step.do === 'cut') upstream.cut()
        else await client.arrived()
      }
      await client.arrived()
      if (leaves) client.socket.destroy()
      await eventually('everything has ended', () => {
        upstream.cut()
        const { inference, sockets, runs } = gateway.deps
        const isIdle = inference.running() === 0 && runs.running() === 0
        return isIdle && sockets.busy() === 0
      })
      if (!leaves) await client.arrived()
      const { responses, steers, refusedSteers, refusals } = await checkSocketLog(client.texts)
      client.socket.destroy()
      if (leaves) return
      for (const { response } of responses) expect(response).toBeDefined()
      expect(steers.size + refusedSteers.length).toBe(steered)
      for (const { responseId, events } of steers.values()) {
        const { type } = events.at(-1) ?? {}
        const successors = responses.filter(
          ({ response }) => response?.['previous_response_id'] === responseId,
        )
        // It is in another response, or waits for its client, or came back.
        expect(successors.length).toBe(type === 'response.steer.accepted' ? 1 : 0)
      }
      const parents = new Set(responses.map(({ response }) => response?.['previous_response_id']))
      expect(
        responses.length - (parents.size - (parents.has(null) ? 1 : 0)) + refusals.length,
      ).toBe(created)
    },
    25,
  )
})
