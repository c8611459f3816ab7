import { describe, expect, test } from 'bun:test'
import type { GenerationEvent } from '#inference/events.ts'
import type { FunctionTool, GenerationRequest, RequestItem } from '#inference/request.ts'
import { demo, demoModels } from '#inference/upstreams/demo.ts'
import { collectEvents, makeContext, makeRequest, userMessage } from '#test/support/generation.ts'

async function ask(model: string, given: Partial<GenerationRequest> = {}) {
  const { events, error } = await collectEvents(
    demo.generate(makeRequest(given), makeContext({ model })),
  )
  return { events, error, text: textOf(events), types: events.map(({ type }) => type) }
}

function textOf(events: readonly GenerationEvent[]): string {
  return events.map((event) => (event.type === 'text-delta' ? event.text : '')).join('')
}

/** The calls of a response: name and arguments. */
function callsOf(events: readonly GenerationEvent[]) {
  const calls: { name: string; input: string }[] = []
  for (const event of events) {
    if (event.type === 'tool-call-start') calls.push({ name: event.call.name, input: '' })
    const call = calls.at(-1)
    if (event.type === 'tool-call-delta' && call !== undefined) call.input += event.text
  }
  return calls
}

const finishOf = (events: readonly GenerationEvent[]) =>
  events.find((event) => event.type === 'finish')

const weather: FunctionTool = {
  type: 'function',
  name: 'weather',
  description: null,
  parameters: {
    type: 'object',
    properties: {
      city: { type: 'string' },
      unit: { enum: ['C', 'F'] },
      days: { type: 'integer', minimum: 3 },
    },
    required: ['city', 'unit', 'days'],
  },
  strict: null,
}
const clock: FunctionTool = { ...weather, name: 'clock', parameters: null }
const weatherCall = { name: 'weather', input: '{"city":"demo","unit":"C","days":3}' }

const schema = { type: 'object', properties: { answer: { type: 'integer' } }, required: ['answer'] }
const jsonSchema = {
  type: 'json-schema',
  name: 'reply',
  description: null,
  schema,
  strict: null,
} as const

test('every demo model is listed, and no other exists', async () => {
  const listed = await demo.listModels(makeContext())
  expect(listed.map(({ id }) => id)).toEqual(demoModels.map(({ id }) => id))
  expect((await ask('demo-unknown')).error?.kind).toBe('model_not_found')
})

describe('demo', () => {
  test('repeats the prompt word by word', async () => {
    const { events, text, error } = await ask('demo', { items: [userMessage('two words')] })
    expect(error).toBeNull()
    expect(text).toStartWith('You said: two words\n\n')
    const deltas = events.filter((event) => event.type === 'text-delta')
    expect(deltas.length).toBe(text.split(/\s+/).length)
  })

  test('counts words as tokens', async () => {
    const { events, text } = await ask('demo-fast', {
      instructions: 'Be kind.',
      items: [userMessage('two words')],
    })
    const outputTokens = text.split(/\s+/).length
    expect(finishOf(events)?.usage).toEqual({
      inputTokens: 4,
      cachedTokens: 0,
      cacheWriteTokens: 0,
      outputTokens,
      reasoningTokens: 0,
      totalTokens: outputTokens + 4,
    })
  })

  test('stops at the output limit', async () => {
    const { sampling } = makeRequest()
    const { events, text } = await ask('demo-fast', {
      sampling: { ...sampling, maxOutputTokens: 2 },
    })
    expect(text).toBe('You said: ')
    expect(events.at(-2)).toEqual({ type: 'text-end', block: 0, complete: false })
    expect(finishOf(events)).toMatchObject({ reason: 'length', usage: { outputTokens: 2 } })
  })

  test('responds with JSON where the request asks for it', async () => {
    const object = await ask('demo-fast', { format: { type: 'json-object' } })
    expect(JSON.parse(object.text)).toEqual({ answer: expect.stringContaining('You said: Hello') })
    const shaped = await ask('demo-fast', { format: jsonSchema })
    expect(JSON.parse(shaped.text)).toEqual({ answer: 1 })
  })

  test('calls a tool when a call is required', async () => {
    const choice = { type: 'tool', name: 'clock', form: 'function' } as const
    const { events } = await ask('demo-fast', { tools: [weather, clock], toolChoice: choice })
    expect(callsOf(events)).toEqual([{ name: 'clock', input: '{}' }])
    const { text } = await ask('demo-fast', { tools: [weather] })
    expect(text).toStartWith('You said')
  })

  test('calls a tool that the prompt mentions and responds with its result', async () => {
    const tools = [{ ...weather, name: 'getWeather' }, clock]
    const items: RequestItem[] = [userMessage('What is the weather in Oslo?')]
    const asked = await ask('demo-fast', { tools, items })
    expect(callsOf(asked.events)).toEqual([{ ...weatherCall, name: 'getWeather' }])
    const denied = await ask('demo-fast', { tools, items, toolChoice: { type: 'none' } })
    expect(callsOf(denied.events)).toEqual([])
    items.push({ type: 'tool-result', callId: 'c', form: 'function', parts: [] })
    expect(callsOf((await ask('demo-fast', { tools, items })).events)).toEqual([])
  })
})

describe('demo-reasoning', () => {
  test('reasons, then responds, and counts both', async () => {
    const { events, types } = await ask('demo-reasoning')
    expect(types.indexOf('reasoning-end')).toBeLessThan(types.indexOf('text-start'))
    const usage = finishOf(events)?.usage
    expect(usage?.reasoningTokens).toBeGreaterThan(0)
    expect(usage?.outputTokens).toBeGreaterThan(usage?.reasoningTokens ?? 0)
  })

  test('does not reason with effort none', async () => {
    const { types } = await ask('demo-reasoning', { reasoning: { effort: 'none', summary: null } })
    expect(types).not.toContain('reasoning-start')
  })
})

describe('demo-tools', () => {
  test('calls its tool with arguments that the schema accepts', async () => {
    const { events } = await ask('demo-tools', { tools: [weather] })
    expect(callsOf(events)).toEqual([weatherCall])
    expect(finishOf(events)?.reason).toBe('tool-calls')
  })

  test('makes parallel calls only if the request allows them', async () => {
    const tools = [weather, clock]
    const both = await ask('demo-tools', { tools })
    expect(callsOf(both.events)).toEqual([weatherCall, { name: 'clock', input: '{}' }])
    const ids = both.events.flatMap((event) =>
      event.type === 'tool-call-start' ? [event.call.callId] : [],
    )
    expect(new Set(ids).size).toBe(2)
    const one = await ask('demo-tools', { tools, parallelToolCalls: false })
    expect(callsOf(one.events)).toEqual([weatherCall])
  })

  test('makes at most four calls', async () => {
    const tools = ['a', 'b', 'c', 'd', 'e'].map((name) => ({ ...clock, name }))
    const { events } = await ask('demo-tools', { tools })
    expect(callsOf(events).map(({ name }) => name)).toEqual(['a', 'b', 'c', 'd'])
  })

  test('calls only allowed tools', async () => {
    const tools = [weather, clock]
    const allowed = { type: 'allowed', mode: 'auto', tools: [{ name: 'clock' }] } as const
    const some = await ask('demo-tools', { tools, toolChoice: allowed })
    expect(callsOf(some.events).map(({ name }) => name)).toEqual(['clock'])
    const none = await ask('demo-tools', { tools, toolChoice: { type: 'none' } })
    expect(callsOf(none.events)).toEqual([])
    expect(none.text).toStartWith('You said')
  })

  test('calls custom and namespaced tools', async () => {
    const shell = {
      type: 'custom',
      name: 'sh',
      namespace: 'os',
      description: null,
      grammar: null,
    } as const
    const { events } = await ask('demo-tools', { tools: [shell] })
    expect(events[1]).toMatchObject({
      type: 'tool-call-start',
      call: { name: 'sh', namespace: 'os', form: 'custom' },
    })
    expect(callsOf(events)).toEqual([{ name: 'sh', input: 'input made up by the demo' }])
  })

  test.each([
    [40, ''],
    [41, ' …'],
  ])('quotes %i words of a passage, and shows what it leaves out', async (count, more) => {
    const words = Array.from({ length: count }, (_, at) => `w${at}`)
    const passage = `<passage-1 marker="【1】" file="a.pdf" page="3">\n${words.join(' ')}\n</passage-1>`
    const { text } = await ask('demo', {
      items: [
        { type: 'tool-call', callId: 'c', name: 'search', form: 'function', arguments: '{}' },
        {
          type: 'tool-result',
          callId: 'c',
          form: 'function',
          parts: [{ type: 'text', text: passage }],
        },
      ],
    })
    expect(text).toContain(
      `It says in a.pdf, page 3: "${words.slice(0, 40).join(' ')}${more}" 【1】`,
    )
  })

  test('responds with the result of the call', async () => {
    const items: RequestItem[] = [
      userMessage('Weather?'),
      { type: 'tool-call', callId: 'a', name: 'weather', form: 'function', arguments: '{}' },
      {
        type: 'tool-result',
        callId: 'a',
        form: 'function',
        parts: [{ type: 'text', text: '7 degrees' }],
      },
    ]
    const { text, events } = await ask('demo-tools', { tools: [weather], items })
    expect(text).toBe('The tool returned: 7 degrees')
    expect(finishOf(events)?.reason).toBe('stop')
  })
})

describe('the others', () => {
  test('demo-refusal refuses', async () => {
    const { events } = await ask('demo-refusal')
    expect(events[1]).toEqual({ type: 'text-start', block: 0, form: 'refusal' })
    expect(finishOf(events)?.reason).toBe('stop')
  })

  test('demo-length is truncated', async () => {
    const { events } = await ask('demo-length')
    expect(events.at(-2)).toEqual({ type: 'text-end', block: 0, complete: false })
    expect(finishOf(events)).toMatchObject({ reason: 'length', usage: { outputTokens: 12 } })
  })

  test('demo-fail fails before any event', async () => {
    const { events, error } = await ask('demo-fail')
    expect(events).toEqual([])
    expect(error?.kind).toBe('upstream_error')
  })

  test('demo-fail-midway fails after some output', async () => {
    const { text, error } = await ask('demo-fail-midway')
    expect(text).toBe('These words arrive, and then')
    expect(error?.kind).toBe('upstream_error')
  })

  test('demo-quiet pauses for the requested time', async () => {
    const { text } = await ask('demo-quiet', { items: [userMessage('Be quiet 0.05, please')] })
    expect(text).toBe('Quiet for 0.05 seconds.')
  })

  test('demo-long counts without gaps', async () => {
    const model = demoModels.find(({ id }) => id === 'demo-long')
    const [block] = model?.plan(makeRequest()).blocks ?? []
    const numbers = block?.pieces.map(Number) ?? []
    expect(numbers).toEqual(Array.from({ length: numbers.length }, (_, index) => index + 1))
    const durationMs = (numbers.length - 1) * (model?.pauseMs ?? 0)
    expect(durationMs).toBeWithin(590_000, 600_000)
  })
})

test('an abort ends a pause immediately, with its reason, and clears the timer', async () => {
  // A remaining timer would keep this process alive for an hour.
  const script = `
    import { demo } from '#inference/upstreams/demo.ts'
    import { makeContext, makeRequest, userMessage } from '#test/support/generation.ts'
    const controller = new AbortController()
    const request = makeRequest({ items: [userMessage('quiet 3600')] })
    const context = makeContext({ model: 'demo-quiet', signal: controller.signal })
    try {
      for await (const [event] of demo.generate(request, context)) {
        if (event?.type === 'text-delta') setTimeout(() => controller.abort(new Error('gone')), 10)
      }
    } catch (error) {
      process.stdout.write(String(error))
    }`
  const child = Bun.spawn([process.execPath, '-e', script], {
    cwd: `${import.meta.dir}/../../..`,
    stdout: 'pipe',
    stderr: 'inherit',
  })
  expect(await new Response(child.stdout).text()).toBe('Error: gone')
  expect(await child.exited).toBe(0)
})
