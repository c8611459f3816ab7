import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { FunctionTool, RequestItem } from '#inference/request.ts'
import { makeContext, makeRequest, userMessage } from '#test/support/generation.ts'
import { finishOf, type LlamaWorld, lacksLlama, startLlama } from '#test/support/llama.ts'

/** The output of a running model: random letters that follow the constraints. */

const { sampling } = makeRequest()
const assistantMessage = (text: string): RequestItem => ({
  type: 'message',
  role: 'assistant',
  parts: [{ type: 'text', text }],
})

describe.skipIf(lacksLlama)('a local model', () => {
  let world: LlamaWorld
  beforeAll(() => {
    world = startLlama({ sequencesMax: 1, contextTokensMax: 1_024 })
    // It tends to end.
    world.install('brief', { endBias: 10 })
  })
  afterAll(() => world.stop())

  test('streams output up to the limit and reports its usage', async () => {
    const { events, text, error } = await world.ask({ maxTokens: 40 })
    expect(error).toBeNull()
    expect(text).toHaveLength(40)
    expect(events.filter(({ type }) => type === 'text-delta').length).toBeGreaterThan(10)
    const usage = finishOf(events)?.usage
    expect(finishOf(events)).toMatchObject({ reason: 'length' })
    expect(usage).toMatchObject({ outputTokens: 40, reasoningTokens: 0, cacheWriteTokens: 0 })
    // `<|turn|>user`, `Hello`, and the marks around them: a token for each letter and each mark.
    expect(usage?.inputTokens).toBeGreaterThan('userHelloassistant'.length)
    expect(usage?.totalTokens).toBe((usage?.inputTokens ?? 0) + 40)
  })

  test('repeats itself with the same seed and prompt only', async () => {
    const first = await world.ask({ maxTokens: 30 })
    const second = await world.ask({ maxTokens: 30 })
    const other = await world.ask({ maxTokens: 30, items: [userMessage('Goodbye')] })
    expect(second.text).toBe(first.text)
    expect(other.text).not.toBe(first.text)
    // The prompt prefix is cached.
    const cachedTokens = finishOf(second.events)?.usage?.cachedTokens ?? 0
    expect(cachedTokens).toBe((finishOf(second.events)?.usage?.inputTokens ?? 0) - 1)
  })

  test('varies without a seed', async () => {
    const free = startLlama({ seed: undefined as never, sequencesMax: 1 })
    const texts = [await free.ask({ maxTokens: 30 }), await free.ask({ maxTokens: 30 })]
    expect(texts[0]?.text).not.toBe(texts[1]?.text ?? '')
    await free.stop()
  })

  test('ends on its own', async () => {
    const { events, text, error } = await world.ask({ name: 'brief' })
    expect(error).toBeNull()
    expect(finishOf(events)?.reason).toBe('stop')
    expect(text).not.toContain('<|end|>')
    expect(events.findLast(({ type }) => type === 'text-end')).toMatchObject({ complete: true })
  })

  test('stops before a stop sequence', async () => {
    const { text } = await world.ask({ maxTokens: 60 })
    const stopText = text.slice(20, 22)
    const { events, ...stopped } = await world.ask({
      sampling: { ...sampling, maxOutputTokens: 60, stopSequences: ['\u0001', stopText] },
    })
    expect(stopped.text).toBe(text.slice(0, text.indexOf(stopText)))
    expect(finishOf(events)).toMatchObject({ reason: 'stop-sequence', stopSequence: stopText })
  })

  test('is less random at a lower temperature', async () => {
    const ask = (temperature: number, seedItems: string) =>
      world.ask({
        items: [userMessage(seedItems)],
        sampling: { ...sampling, temperature, maxOutputTokens: 20 },
      })
    const cold = [await ask(0, 'x'), await ask(0, 'x')]
    expect(cold[0]?.text).toBe(cold[1]?.text ?? '')
    expect((await ask(1.5, 'x')).text).not.toBe(cold[0]?.text ?? '')
  })

  test('avoids repetition with a penalty', async () => {
    const ask = async (presencePenalty: number) => {
      const options = { temperature: 0, maxOutputTokens: 40, presencePenalty }
      return (await world.ask({ sampling: { ...sampling, ...options } })).text
    }
    const distinct = (text: string) => new Set(text).size
    expect(distinct(await ask(2))).toBeGreaterThan(distinct(await ask(0)))
  })

  test('continues a prefill', async () => {
    const items = [userMessage('Hello'), assistantMessage('The answer is')]
    const { events } = await world.ask({ items, prefilled: true, maxTokens: 10 })
    const fresh = await world.ask({ items, maxTokens: 10 })
    const inputOf = (answer: typeof events) => finishOf(answer)?.usage?.inputTokens ?? 0
    // Without end markers and without the start of another response.
    expect(inputOf(events)).toBeLessThan(inputOf(fresh.events))
  })

  test('is constrained to an output format', async () => {
    const schema = {
      type: 'object',
      properties: { ok: { type: 'boolean' }, unit: { enum: ['C', 'F'] } },
      required: ['ok', 'unit'],
      additionalProperties: false,
    }
    const format = { type: 'json-schema', name: 'n', description: null, schema, strict: true }
    const { text, events } = await world.ask({ format: { ...format, type: 'json-schema' } })
    expect(JSON.parse(text)).toEqual({
      ok: expect.any(Boolean),
      unit: expect.stringMatching(/^[CF]$/),
    })
    expect(finishOf(events)?.reason).toBe('stop')
  })

  test('counts the tokens of its prompt', async () => {
    const context = makeContext({ model: 'tiny' })
    const { events } = await world.ask({ maxTokens: 1 })
    const counted = await world.llama.countTokens?.(makeRequest(), context)
    expect(counted).toBe(finishOf(events)?.usage?.inputTokens ?? 0)
  })

  test('rejects a prompt that exceeds its context, and fills the context completely', async () => {
    const long = await world.ask({ items: [userMessage('a'.repeat(1_024))] })
    expect(long.error?.kind).toBe('context_length_exceeded')
    expect(long.error?.message).toContain('1024')
    const endlessly = await world.ask({ items: [userMessage('a'.repeat(10_000_000))] })
    expect(endlessly.error?.kind).toBe('context_length_exceeded')
    const full = await world.ask({ items: [userMessage('a'.repeat(900))], maxTokens: 5_000 })
    expect(finishOf(full.events)?.reason).toBe('length')
    expect(finishOf(full.events)?.usage?.totalTokens).toBeWithin(1_000, 1_025)
  })

  test.each(['image', 'file'] as const)('refuses what it cannot read: %s', async (type) => {
    const parts =
      type === 'image'
        ? [{ type, url: 'data:image/png;base64,AA==', detail: null }]
        : [{ type, data: 'data:text/plain;base64,AA==', url: null, filename: 'a.txt' }]
    const items = [{ type: 'message' as const, role: 'user' as const, parts }]
    const { error } = await world.ask({ items })
    expect(error?.kind).toBe('invalid_request')
    expect(error?.message).toContain(`${type}s`)
  })

  test("rejects what its template rejects, with the template's message", async () => {
    const template = `{%- if messages | length > 8 -%}
      {{ raise_exception('No more of this.') }}
    {%- endif -%}
    {%- for message in messages -%}
      {{ message['role'] + ': ' + message['content'] + '\\n' }}
    {%- endfor -%}`
    world.install('impatient', {
      metadata: { 'tokenizer.chat_template': { type: 'string', value: template } },
    })
    const turns = [...'ABCDE'].flatMap((text) => [userMessage(text), assistantMessage(text)])
    const ask = (items: RequestItem[]) => world.ask({ name: 'impatient', maxTokens: 5, items })
    expect((await ask([userMessage('Hello')])).error).toBeNull()
    const { error } = await ask([...turns, userMessage('Hello?')])
    expect(error?.kind).toBe('invalid_request')
    expect(error?.message).toContain('No more of this.')
  })

  test('rejects a model that does not exist', async () => {
    expect((await world.ask({ name: 'nobody' })).error?.kind).toBe('model_not_found')
  })
})

const flags: FunctionTool = {
  type: 'function',
  name: 'set_flags',
  description: 'Sets flags.',
  parameters: {
    type: 'object',
    properties: { on: { type: 'boolean' }, unit: { enum: ['C', 'F'] } },
    required: ['on', 'unit'],
    additionalProperties: false,
  },
  strict: null,
}
const now: FunctionTool = { ...flags, name: 'now', parameters: null }

describe.skipIf(lacksLlama)('tools of a local model', () => {
  let world: LlamaWorld
  beforeAll(() => {
    world = startLlama({ sequencesMax: 1 })
  })
  afterAll(() => world.stop())

  const callsOf = ({ events }: Awaited<ReturnType<LlamaWorld['ask']>>) => {
    const calls: { name: string; input: string }[] = []
    for (const event of events) {
      if (event.type === 'tool-call-start') calls.push({ name: event.call.name, input: '' })
      const call = calls.at(-1)
      if (event.type === 'tool-call-delta' && call) call.input += event.text
    }
    return calls
  }

  test('makes a required call according to its schema', async () => {
    const toolChoice = { type: 'tool', form: 'function', name: 'set_flags' } as const
    const answer = await world.ask({ tools: [now, flags], toolChoice, parallelToolCalls: false })
    expect(answer.error).toBeNull()
    const [call] = callsOf(answer)
    expect(call?.name).toBe('set_flags')
    expect(JSON.parse(call?.input ?? '')).toEqual({
      on: expect.any(Boolean),
      unit: expect.stringMatching(/^[CF]$/),
    })
    expect(finishOf(answer.events)?.reason).toBe('tool-calls')
  })

  test('calls one without parameters with an empty object', async () => {
    const toolChoice = { type: 'required' } as const
    const answer = await world.ask({ tools: [now], toolChoice, parallelToolCalls: false })
    expect(callsOf(answer)).toEqual([{ name: 'now', input: '{}' }])
  })

  test('continues after the result of a call', async () => {
    const call = { type: 'tool-call', callId: 'c', name: 'now', form: 'function' } as const
    const items: RequestItem[] = [
      userMessage('What time is it?'),
      { ...call, arguments: '{}' },
      {
        type: 'tool-result',
        callId: 'c',
        form: 'function',
        parts: [{ type: 'text', text: 'noon' }],
      },
    ]
    const answer = await world.ask({ tools: [now], items, maxTokens: 20 })
    expect(answer.error).toBeNull()
    expect(answer.text.length).toBeGreaterThan(0)
    const without = await world.ask({ tools: [now], items: items.slice(0, 1), maxTokens: 1 })
    const inputOf = ({ events }: typeof answer) => finishOf(events)?.usage?.inputTokens ?? 0
    expect(inputOf(answer)).toBeGreaterThan(inputOf(without) + 'noon'.length)
  })

  test('a truncated call is reported as incomplete', async () => {
    const text = {
      ...flags,
      parameters: { type: 'object', properties: { a: { type: 'string', minLength: 100 } } },
    }
    const toolChoice = { type: 'required' } as const
    const answer = await world.ask({ tools: [text], toolChoice, maxTokens: 30 })
    expect(finishOf(answer.events)?.reason).toBe('length')
    expect(answer.events.findLast(({ type }) => type === 'tool-call-end')).toMatchObject({
      complete: false,
    })
  })
})
