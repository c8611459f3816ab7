import { describe, expect, test } from 'bun:test'
import {
  endCallSpan,
  OutputContent,
  startAttemptSpan,
  startCallSpan,
} from '#inference/call-spans.ts'
import type { ModelCall } from '#inference/inference.ts'
import { type CallRecord, OpenCall } from '#inference/open-call.ts'
import type { RequestItem } from '#inference/request.ts'
import { AppError } from '#lib/errors.ts'
import { asRecord, parseJson } from '#lib/json.ts'
import type { Span, SpanAttributes, SpanStart } from '#lib/trace.ts'
import { makeRequest, makeRequestContext, userMessage } from '#test/support/generation.ts'
import { target } from '#test/support/generations.ts'
import { startQueue } from '#test/support/queued-calls.ts'

/** A span that records its attributes, and is its own child. */
function recordingSpan(charsMax: number | null = 1_000) {
  const recorded: {
    name?: string
    kind?: SpanStart['kind']
    attributes: Record<string, SpanAttributes[string]>
    failure?: { type: string; message: string }
    endedAtMs?: number | undefined
  } = { attributes: {} }
  const span: Span = {
    traceparent: '00-a-b-01',
    tracestate: null,
    get span() {
      return span
    },
    startChild(name, start) {
      recorded.name = name
      recorded.kind = start?.kind
      span.set(start?.attributes ?? {})
      return span
    },
    rename: () => {},
    set: (attributes) => Object.assign(recorded.attributes, attributes),
    content: charsMax === null ? null : { charsMax, redact: (text) => text },
    fail(type, message) {
      recorded.failure = { type, message }
    },
    end(endedAtMs) {
      recorded.endedAtMs = endedAtMs
    },
  }
  return { span, recorded }
}

const recordOf = (call: ModelCall, kind: CallRecord['kind'] = 'generate') =>
  new OpenCall(kind, 'asked-name', call).record

function startSpan(call: Partial<ModelCall>, kind?: CallRecord['kind'], charsMax?: number | null) {
  const { span, recorded } = recordingSpan(charsMax)
  const context = { ...makeRequestContext(), trace: span }
  const whole = { context, targets: [], ...call }
  return { started: startCallSpan(recordOf(whole, kind), whole, 0), recorded }
}

/** The items of a request as the span records them. */
function recorded(items: readonly RequestItem[]) {
  const { recorded } = startSpan({ request: makeRequest({ items }) })
  return parseJson(String(recorded.attributes['gen_ai.input.messages']))
}

test.each([
  ['generate', 'chat'],
  ['embed', 'embeddings'],
  ['rerank', 'rerank'],
  ['speak', 'speak'],
  ['count-tokens', 'count_tokens'],
] as const)('the span of %s is named after the operation %s', (kind, operation) => {
  const { recorded } = startSpan({}, kind)
  expect(recorded.name).toBe(`${operation} asked-name`)
  expect(recorded.attributes).toMatchObject({
    'gen_ai.operation.name': operation,
    'gen_ai.request.model': 'asked-name',
  })
})

test('a call without a sampled trace has no span', () => {
  const call = { context: makeRequestContext(), targets: [] }
  expect(startCallSpan(recordOf(call), call, 0)).toBeNull()
})

describe('the span of an attempt', () => {
  /** At an upstream with this address. */
  const attempt = (retries: number, upstream = 'gpu') => {
    const { slot } = startQueue().ask({ upstreams: [upstream] }).granted
    if (slot === null) throw new Error('no slot')
    const { span, recorded } = recordingSpan()
    startAttemptSpan(span, slot, retries)
    return recorded
  }

  test('has the upstream and its address', () => {
    const { name, kind, attributes } = attempt(0)
    expect([name, kind]).toEqual(['attempt gpu', 'client'])
    expect(attributes).toEqual({
      'gen_ai.provider.name': 'openai',
      'gen_ai.request.model': 'upstream-name',
      'sluice.upstream': 'gpu',
      'sluice.operation': 'chat',
      'http.request.resend_count': undefined,
      'server.address': 'gpu.test',
      'server.port': 80,
    })
  })

  test('counts the attempts before it', () => {
    expect(attempt(1).attributes['http.request.resend_count']).toBe(1)
  })
})

describe('the recorded input', () => {
  test('has each message, call and result, and no reasoning', () => {
    const call = { callId: 'call_1', form: 'function' } as const
    const items: RequestItem[] = [
      userMessage('Hi'),
      { type: 'reasoning', summary: [], text: 'Hm.' },
      { type: 'tool-call', ...call, name: 'look', arguments: '{"a":1}' },
      { type: 'tool-result', ...call, parts: [{ type: 'text', text: 'cold' }] },
      {
        type: 'message',
        role: 'user',
        parts: [{ type: 'image', url: 'https://a.example/x.png', detail: null }],
      },
    ]
    expect(recorded(items)).toEqual([
      { role: 'user', parts: [{ type: 'text', content: 'Hi' }] },
      {
        role: 'assistant',
        parts: [{ type: 'tool_call', id: 'call_1', name: 'look', content: '{"a":1}' }],
      },
      { role: 'tool', parts: [{ type: 'text', content: 'cold', id: 'call_1' }] },
      { role: 'user', parts: [{ type: 'image', content: '' }] },
    ])
  })

  test('has the instructions, if there are any', () => {
    const request = makeRequest({ instructions: 'Be kind.' })
    const name = 'gen_ai.system_instructions'
    expect(startSpan({ request }).recorded.attributes[name]).toBe('Be kind.')
    expect(startSpan({ request: makeRequest() }).recorded.attributes[name]).toBeNull()
    expect(startSpan({ request }, 'generate', null).recorded.attributes).not.toHaveProperty([name])
  })
})

describe('the end', () => {
  const usage = {
    inputTokens: 5,
    cachedTokens: 4,
    cacheWriteTokens: 3,
    outputTokens: 2,
    reasoningTokens: 1,
    totalTokens: 7,
  }
  const end = (given: Partial<CallRecord>, output?: OutputContent) => {
    const { span, recorded } = recordingSpan()
    const record = recordOf({ context: makeRequestContext(), targets: [] })
    endCallSpan(span, { ...record, ...given }, output ?? null)
    return recorded
  }

  test('has what the record has', () => {
    const served = target('https://api.mistral.ai/v1')
    const recorded = end({
      target: served,
      usage,
      outcome: 'completed',
      firstEventMs: 500,
      retries: 2,
      hedged: true,
      queuedMs: 30,
      endedAtMs: 900,
    })
    expect(recorded).toEqual({
      attributes: {
        'gen_ai.provider.name': 'mistral_ai',
        'gen_ai.response.model': 'upstream-name',
        'gen_ai.usage.input_tokens': 5,
        'gen_ai.usage.output_tokens': 2,
        'gen_ai.usage.cache_read.input_tokens': 4,
        'gen_ai.usage.cache_creation.input_tokens': 3,
        'gen_ai.usage.reasoning.output_tokens': 1,
        'gen_ai.response.time_to_first_chunk': 0.5,
        'sluice.retries': 2,
        'sluice.hedged': true,
        'sluice.queue_ms': 30,
        'sluice.outcome': 'completed',
      },
      endedAtMs: 900,
    })
  })

  test('has nothing that did not happen', () => {
    const none = { cachedTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 }
    const { attributes } = end({ usage: { ...usage, ...none } })
    const given = Object.entries(attributes).filter(([, value]) => value !== undefined)
    expect(Object.fromEntries(given)).toEqual({
      'gen_ai.usage.input_tokens': 5,
      'gen_ai.usage.output_tokens': 2,
      'sluice.retries': 0,
      'sluice.outcome': 'cancelled',
    })
  })

  test('has no output where contents are not recorded', () => {
    const { span, recorded } = recordingSpan(null)
    const output = new OutputContent(span)
    output.add([{ type: 'text-delta', block: 0, text: 'Hi' }])
    endCallSpan(span, recordOf({ context: makeRequestContext(), targets: [] }), output)
    expect(output.message().parts).toEqual([{ type: 'text', content: '' }])
    expect(recorded.attributes).not.toHaveProperty(['gen_ai.output.messages'])
    expect(recorded.attributes).not.toHaveProperty(['gen_ai.response.finish_reasons'])
  })

  test('of a failure has its kind', () => {
    const error = new AppError('upstream_error', 'It failed.')
    expect(end({ error }).failure).toEqual({ type: 'upstream_error', message: 'It failed.' })
  })

  test('has the output up to about the limit, and how it ended', () => {
    const output = new OutputContent(recordingSpan(4).span)
    const text = { type: 'text-delta', block: 0 } as const
    output.add([{ ...text, text: 'H' }])
    output.add([
      { type: 'tool-call-start', block: 1, call: { callId: 'c', name: 'look', form: 'function' } },
      { ...text, text: 'more' },
    ])
    output.add([{ type: 'finish', reason: 'stop', rawReason: 'stop', usage: null }])
    const { attributes } = end({}, output)
    expect(parseJson(String(attributes['gen_ai.output.messages']))).toEqual([
      { role: 'assistant', parts: [{ type: 'text', content: 'H[look] ' }] },
    ])
    expect(attributes['gen_ai.response.finish_reasons']).toEqual(['stop'])
  })

  test('has the arguments of calls', () => {
    const output = new OutputContent(recordingSpan(4).span)
    output.add([{ type: 'tool-call-delta', block: 0, text: '{"a":1}' }])
    output.add([{ type: 'text-delta', block: 1, text: '!' }])
    output.add([{ type: 'text-delta', block: 1, text: '?' }])
    expect(output.message().parts).toEqual([{ type: 'text', content: '{"a":1}!' }])
  })
})

test.each([
  ['https://x.openai.azure.com/v1', 'chat', 'azure.ai.openai'],
  ['https://api.anthropic.com/v1', 'chat', 'anthropic'],
  ['https://api.deepseek.com', 'chat', 'deepseek'],
  ['https://api.groq.com/openai/v1', 'chat', 'groq'],
  ['https://api.x.ai/v1', 'chat', 'x_ai'],
  ['https://api.perplexity.ai', 'chat', 'perplexity'],
  ['https://api.cohere.ai/v1', 'chat', 'cohere'],
  ['https://api.cohere.com/v1', 'chat', 'cohere'],
  ['https://generativelanguage.googleapis.com/v1', 'chat', 'gcp.gen_ai'],
  ['https://bedrock.eu-central-1.amazonaws.com/v1', 'chat', 'aws.bedrock'],
  ['https://notanthropic.com/v1', 'chat', 'openai'],
  ['http://127.0.0.1:8000/v1', 'responses', 'openai'],
  ['http://127.0.0.1:8000/v1', 'messages', 'anthropic'],
  ['', 'llama', 'sluice.llama'],
  ['', 'demo', 'sluice.demo'],
] as const)('the provider of %s with the protocol %s is %s', (baseUrl, kind, provider) => {
  const { span, recorded } = recordingSpan()
  const record = recordOf({ context: makeRequestContext(), targets: [] })
  const served = target(baseUrl)
  const upstream = { ...served.upstream, kind }
  endCallSpan(span, { ...record, target: { ...served, upstream } }, null)
  expect(asRecord(recorded.attributes)['gen_ai.provider.name']).toBe(provider)
})
