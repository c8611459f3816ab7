import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type OpenAI from 'openai'
import type { ResponseStreamEvent } from 'openai/resources/responses/responses'
import {
  type ClientGateway,
  expectRecall,
  kinds,
  slowPrompt,
  startClientGateway,
} from '#test/support/client-gateway.ts'
import { eventually } from '#test/support/eventually.ts'

/** Stored and background responses in the `openai` package. */

describe.each(kinds)('the openai package over a $kind upstream', ({ kind, model, slow }) => {
  let server: ClientGateway
  let client: OpenAI

  beforeAll(async () => {
    server = await startClientGateway(kind)
    client = await server.gateway.openai()
  })
  afterAll(() => server.stop())

  const ask = (input: string) => client.responses.create({ model, input })
  const askInBackground = (of: string, input: string) =>
    client.responses.create({ model: of, input, background: true })
  const collect = async (stream: AsyncIterable<ResponseStreamEvent>) => {
    const events: ResponseStreamEvent[] = []
    for await (const event of stream) events.push(event)
    return events
  }

  test('retrieve returns what create returned', async () => {
    const created = await ask('Say hello.')
    expect(await client.responses.retrieve(created.id)).toEqual(created)
  })

  test('delete removes a response', async () => {
    const { id } = await ask('Say hello.')
    await client.responses.delete(id)
    const failure = await client.responses.retrieve(id).catch((error) => error)
    expect(failure.status).toBe(404)
    const again = await client.responses.delete(id).catch((error) => error)
    expect(again.status).toBe(404)
  })

  test('previous_response_id continues a conversation', async () => {
    const said = 'My name is Ada and I like the sea and the wind.'
    const first = await ask(said)
    const second = await client.responses.create({
      model,
      input: 'recall it',
      previous_response_id: first.id,
    })
    expect(second.previous_response_id).toBe(first.id)
    const { output_text: text, usage } = second
    expectRecall(kind, { text, inputTokens: usage?.input_tokens }, [said, first.output_text])
    const failure = await client.responses
      .create({ model, input: 'x', previous_response_id: 'resp_unknown' })
      .catch((error) => error)
    expect([failure.status, failure.code]).toEqual([400, 'previous_response_not_found'])
  })

  test('the stream of a response can be resumed from any event', async () => {
    const whole = await collect(
      await client.responses.create({ model, input: 'Say hello.', stream: true }),
    )
    const [first] = whole
    if (first?.type !== 'response.created') throw new Error('no response')
    const { id } = first.response
    expect(await collect(await client.responses.retrieve(id, { stream: true }))).toEqual(whole)
    for (const { sequence_number: after } of whole) {
      const rest = await client.responses.retrieve(id, { stream: true, starting_after: after })
      expect(await collect(rest)).toEqual(whole.slice(after + 1))
    }
  })

  test('the stream helper resumes a response after an event', async () => {
    const { id, output_text: text } = await ask('Say hello.')
    const after = 4
    const stream = client.responses.stream({ response_id: id, starting_after: after })
    const numbers: number[] = []
    for await (const { sequence_number: number } of stream) numbers.push(number)
    expect(numbers[0]).toBe(after + 1)
    const final = await stream.finalResponse()
    expect([final.id, final.status, final.output_text]).toEqual([id, 'completed', text])
  })

  test('inputItems.list returns the input in pages', async () => {
    const { id } = await client.responses.create({
      model,
      input: [
        { role: 'user', content: 'one' },
        { role: 'assistant', content: 'two' },
        { role: 'user', content: 'three' },
      ],
    })
    const read = async (order: 'asc' | 'desc') => {
      const said: unknown[] = []
      for await (const item of client.responses.inputItems.list(id, { limit: 1, order })) {
        const [part] = item.type === 'message' ? item.content : []
        said.push(part !== undefined && 'text' in part ? part.text : item)
      }
      return said
    }
    expect(await read('asc')).toEqual(['one', 'two', 'three'])
    expect(await read('desc')).toEqual(['three', 'two', 'one'])
  })

  test('inputTokens.count returns a count', async () => {
    const few = await client.responses.inputTokens.count({ model, input: 'Say hello.' })
    const many = await client.responses.inputTokens.count({
      model,
      input: 'Say hello. '.repeat(100),
    })
    expect(few.input_tokens).toBeGreaterThan(0)
    expect(many.input_tokens).toBeGreaterThan(few.input_tokens * 10)
  })

  test('compact returns a context that a new chain continues', async () => {
    const first = await ask('My name is Ada.')
    const compacted = await client.responses.compact({
      model,
      previous_response_id: first.id,
      input: 'I like the sea.',
    })
    expect(compacted.object).toBe('response.compaction')
    expect(compacted.output.at(-1)?.type).toBe('compaction')
    const next = await client.responses.create({
      model,
      input: [
        ...(compacted.output as OpenAI.Responses.ResponseInput),
        { role: 'user', content: 'recall it' },
      ],
    })
    expect(next.status).toBe('completed')
    const { output_text: text, usage } = next
    expectRecall(kind, { text, inputTokens: usage?.input_tokens }, ['My name is Ada.'])
  })

  test('a background response can be polled until it ends', async () => {
    const accepted = await askInBackground(model, 'Say hello.')
    expect(accepted.background).toBe(true)
    expect(['queued', 'in_progress', 'completed']).toContain(accepted.status ?? '')
    let response = accepted
    await eventually('it is completed', async () => {
      response = await client.responses.retrieve(accepted.id)
      return response.status === 'completed'
    })
    expect(response.output_text.length).toBeGreaterThan(5)
  })

  test('a background stream can be interrupted and resumed', async () => {
    const stream = await client.responses.create({
      model,
      input: 'Say hello.',
      background: true,
      stream: true,
    })
    let id = ''
    const seen: ResponseStreamEvent[] = []
    for await (const event of stream) {
      seen.push(event)
      if (event.type === 'response.created') id = event.response.id
      if (event.type === 'response.in_progress') break
    }
    const after = seen.at(-1)?.sequence_number ?? 0
    const rest = await collect(
      await client.responses.retrieve(id, { stream: true, starting_after: after }),
    )
    const last = rest.at(-1)
    if (last?.type !== 'response.completed') throw new Error(`ended with ${last?.type}`)
    const joined = [...seen, ...rest]
    expect(joined.map((event) => event.sequence_number)).toEqual([...joined.keys()])
    const text = joined.map((event) =>
      event.type === 'response.output_text.delta' ? event.delta : '',
    )
    expect(text.join('')).toBe(
      last.response.output
        .flatMap((item) => (item.type === 'message' ? item.content : []))
        .map((part) => (part.type === 'output_text' ? part.text : ''))
        .join(''),
    )
  })

  test('cancel ends a background response and its streams', async () => {
    const { id } = await askInBackground(slow, slowPrompt)
    const watcher = await client.responses.retrieve(id, { stream: true })
    const types: string[] = []
    for await (const event of watcher) {
      types.push(event.type)
      if (event.type !== 'response.output_item.added') continue
      const cancelled = await client.responses.cancel(id)
      expect([cancelled.id, cancelled.status]).toEqual([id, 'cancelled'])
    }
    expect(types.at(-1)).toBe('response.incomplete')
    expect((await client.responses.retrieve(id)).status).toBe('cancelled')
    expect((await client.responses.cancel(id)).status).toBe('cancelled')
  })
})
