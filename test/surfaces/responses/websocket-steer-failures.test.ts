import { describe, expect, test } from 'bun:test'
import { eventually } from '#test/support/eventually.ts'
import { whole } from '#test/support/generations.ts'
import type { SocketClient } from '#test/support/socket-client.ts'
import { checkSocketLog } from '#test/support/socket-log.ts'
import { begin, called, gateway, has, open, steer, tool, upstream, useStory } from './steering.ts'

/** Instructions that cannot steer a response. */

useStory()

describe('input that no response gets comes back', () => {
  const failed = (client: SocketClient) =>
    client.texts
      .map((text) => JSON.parse(text))
      .filter(({ type }) => type === 'response.steer.failed')

  async function expectFailure(
    client: SocketClient,
    [code, id]: [code: string, id: string],
    input: unknown = 'shorter',
  ): Promise<void> {
    const count = failed(client).length
    steer(client, id, input)
    await eventually('it fails', () => failed(client).length > count)
    expect(failed(client).at(-1)).toEqual({
      type: 'response.steer.failed',
      sequence_number: expect.any(Number),
      steer: { previous_response_id: id, input },
      error: { type: 'invalid_request_error', code, message: expect.any(String) },
    })
  }

  test('for an unknown response, and one that is over', async () => {
    const client = await open()
    await expectFailure(client, ['response_not_found', 'resp_none'])
    const { response } = await client.turn({ model: 'm', input: 'x', store: false })
    await expectFailure(client, ['response_already_completed', String(response?.['id'])])
    const broken = await client.turn({ model: 'demo-fail-midway', input: 'x', store: false })
    await expectFailure(client, ['response_not_active', String(broken.response?.['id'])])
    const other = await open()
    await expectFailure(other, ['response_not_found', String(response?.['id'])])
  })

  test('if it is not a user message, and then the response goes on', async () => {
    const client = await open()
    const id = await begin(client)
    const inputs: unknown[] = [
      [],
      7,
      {},
      [{ role: 'system', content: 'x' }],
      [{ role: 'user' }],
      [{ role: 'user', content: '' }],
      [{ role: 'user', content: [{ type: 'refusal', refusal: 'x' }] }],
      [{ role: 'user', content: [{ type: 'nonsense' }] }],
      [{ type: 'function_call_output', call_id: 'a', output: 'b' }],
    ]
    for (const input of inputs) await expectFailure(client, ['invalid_input', id], input)
    upstream.cut()
    await eventually('it is over', () => has(client, '"type":"response.failed"'))
    await checkSocketLog(client.texts.filter((text) => !text.includes('steer.failed')))
  })

  test('for a response with automatic compaction', async () => {
    const client = await open()
    const management = [{ type: 'compaction', compact_threshold: 100_000 }]
    const id = await begin(client, { context_management: management })
    await expectFailure(client, ['steering_not_supported', id])
  })

  test('for a response of a conversation', async () => {
    const client = await open()
    const made = Object(await (await gateway.post('/v1/conversations', {})).json())
    const id = await begin(client, { conversation: made.id, store: true })
    await expectFailure(client, ['steering_not_supported', id])
  })

  test('if too much of it waits', async () => {
    const client = await open()
    const body = `data: ${JSON.stringify(called)}\n\n`
    const id = await begin(client, { tools: [tool] }, { body, ending: 'hang' }, 'arguments.delta')
    for (let sent = 0; sent < 64; sent++) steer(client, id, `${sent}`)
    await eventually(
      'all are accepted',
      () => client.texts.filter((text) => text.includes('steer.accepted')).length === 64,
    )
    await expectFailure(client, ['too_many_pending_steers', id])
    upstream.cut()
    await eventually('all come back', () => failed(client).length === 65)
    const { steers } = await checkSocketLog(client.texts)
    for (const { events } of steers.values()) {
      expect(events.at(-1)).toMatchObject({ error: { code: 'response_not_active' } })
    }
  })

  test('if its response cannot begin', async () => {
    const client = await open()
    const id = await begin(client)
    upstream.answer({ status: 500, body: '{}' })
    steer(client, id)
    await eventually('it comes back', () => failed(client).length === 1)
    expect(failed(client)).toMatchObject([
      {
        steer: { id: expect.stringMatching(/^steer_/), previous_response_id: id, input: 'shorter' },
        error: { code: 'successor_creation_failed' },
      },
    ])
    const { refusals } = await checkSocketLog(client.texts)
    expect(refusals).toEqual([])
    upstream.answer({ body: whole })
    expect((await client.turn({ model: 'm', input: 'x', store: false })).failure).toBeUndefined()
  })

  test('if the response is cancelled', async () => {
    const client = await open()
    const body = `data: ${JSON.stringify(called)}\n\n`
    const more = { tools: [tool], store: true }
    const id = await begin(client, more, { body, ending: 'hang' }, 'arguments.delta')
    steer(client, id)
    await eventually('it is accepted', () => has(client, 'steer.accepted'))
    await gateway.request(`/v1/responses/${id}/cancel`, { method: 'POST' })
    await eventually('it comes back', () => failed(client).length === 1)
    expect(failed(client)[0].error.code).toBe('response_not_active')
    await checkSocketLog(client.texts)
  })
})
