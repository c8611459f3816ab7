import { describe, expect, test } from 'bun:test'
import type { GenerationRequest, Tool, ToolChoice } from '#inference/request.ts'
import type { UpstreamQuirks } from '#inference/upstream.ts'
import { asRecord } from '#lib/json.ts'
import { makeRequest, userMessage } from '#test/support/generation.ts'
import { bodyOf } from './requests.ts'

const plain: ReturnType<typeof bodyOf> = {
  model: 'm',
  max_tokens: 32_000,
  messages: [{ role: 'user', content: [{ type: 'text', text: 'Hello' }] }],
}
const schema = { type: 'object', properties: { a: { type: 'integer' } } }
const look: Tool = {
  type: 'function',
  name: 'look',
  description: 'Looks.',
  parameters: schema,
  strict: true,
}
const wireLook = { name: 'look', description: 'Looks.', input_schema: schema }
const patch: Tool = {
  type: 'custom',
  name: 'patch',
  namespace: 'files',
  description: null,
  grammar: null,
}

test('a minimal request sends the input, `stream` and the default max_tokens', () => {
  expect(bodyOf({})).toEqual(plain)
  expect(bodyOf({}, { defaultMaxTokens: 500 })['max_tokens']).toBe(500)
})

test('every supported field is sent under its name', () => {
  const sampling: GenerationRequest['sampling'] = {
    temperature: 0,
    topP: 0.5,
    topK: 7,
    stopSequences: ['END'],
    presencePenalty: 1,
    frequencyPenalty: 1,
    maxOutputTokens: 100,
    topLogprobs: 2,
  }
  expect(bodyOf({ sampling, verbosity: 'low' })).toEqual({
    ...plain,
    max_tokens: 100,
    temperature: 0,
    top_p: 0.5,
    top_k: 7,
    stop_sequences: ['END'],
  })
})

test('user identifiers are sent only to vendors', () => {
  const given = { safetyIdentifier: 'someone', serviceTier: 'default', promptCacheKey: 'key' }
  expect(bodyOf(given)).toEqual(plain)
  expect(bodyOf(given, { vendorFields: true })).toEqual({
    ...plain,
    metadata: { user_id: 'someone' },
    service_tier: 'standard_only',
    cache_control: { type: 'ephemeral' },
  })
  expect(bodyOf({ serviceTier: 'flex' }, { vendorFields: true })).toEqual(plain)
})

describe('tools', () => {
  test('are sent as functions, including custom tools', () => {
    expect(bodyOf({ tools: [look, patch] })).toEqual({
      ...plain,
      tools: [
        wireLook,
        {
          name: 'files__patch',
          input_schema: {
            type: 'object',
            properties: { input: { type: 'string' } },
            required: ['input'],
          },
        },
      ],
    })
  })

  test('are strict where the upstream is', () => {
    expect(bodyOf({ tools: [look] }, { strictTools: true })['tools']).toEqual([
      { ...wireLook, strict: true },
    ])
  })

  test.each<[ToolChoice, boolean, unknown]>([
    [{ type: 'auto' }, true, undefined],
    [{ type: 'auto' }, false, { type: 'auto', disable_parallel_tool_use: true }],
    [{ type: 'none' }, false, { type: 'none' }],
    [{ type: 'required' }, true, { type: 'any' }],
    [{ type: 'required' }, false, { type: 'any', disable_parallel_tool_use: true }],
    [{ type: 'tool', form: 'function', name: 'look' }, true, { type: 'tool', name: 'look' }],
    [
      { type: 'tool', form: 'custom', name: 'patch', namespace: 'files' },
      false,
      { type: 'tool', name: 'files__patch', disable_parallel_tool_use: true },
    ],
    [{ type: 'allowed', mode: 'auto', tools: [look] }, true, { type: 'auto' }],
    [{ type: 'allowed', mode: 'required', tools: [look] }, true, { type: 'any' }],
  ])('the choice %j, in parallel: %p', (toolChoice, parallelToolCalls, choice) => {
    const body = bodyOf({ tools: [look, patch], toolChoice, parallelToolCalls })
    expect(body['tool_choice']).toEqual(choice)
    const offered = toolChoice.type === 'allowed' ? ['look'] : ['look', 'files__patch']
    expect(body['tools']).toMatchObject(offered.map((name) => ({ name })))
  })

  test('no tool_choice is sent without tools', () => {
    expect(bodyOf({ toolChoice: { type: 'none' }, parallelToolCalls: false })).toEqual(plain)
  })
})

describe('the output format', () => {
  const format: GenerationRequest['format'] = {
    type: 'json-schema',
    name: 'reply',
    description: 'A reply.',
    schema,
    strict: true,
  }

  test('is enforced by an upstream that supports it', () => {
    const { output_config: config, system } = bodyOf({ format }, { outputFormat: true })
    expect(config).toEqual({ format: { type: 'json_schema', schema } })
    expect(system).toBeUndefined()
  })

  test('is otherwise requested after the instructions', () => {
    const { output_config: config, system } = bodyOf({ format, instructions: 'Be kind.' })
    expect(config).toBeUndefined()
    expect(system).toStartWith('Be kind.\n\nAnswer with JSON alone')
    expect(system).toContain('A reply.')
    expect(system).toEndWith(JSON.stringify(schema))
    const object = bodyOf({ format: { type: 'json-object' } }, { outputFormat: true })
    expect(object['system']).toStartWith('Answer with JSON alone')
  })
})

describe('thinking', () => {
  type Thinking = Partial<GenerationRequest['reasoning']> & { maxOutputTokens?: number }
  const ask = (
    { maxOutputTokens, ...reasoning }: Thinking,
    quirks: Partial<UpstreamQuirks> = {},
    more: Partial<GenerationRequest> = {},
  ) => {
    const sampling = { ...makeRequest().sampling, maxOutputTokens: maxOutputTokens ?? null }
    const given = { effort: null, summary: null, ...reasoning }
    const { thinking, output_config } = bodyOf({ reasoning: given, sampling, ...more }, quirks)
    return { thinking, effort: asRecord(output_config)['effort'] }
  }
  const budget = (tokens: number) => ({
    thinking: { type: 'enabled' as const, budget_tokens: tokens },
    effort: undefined,
  })
  const nothing = { thinking: undefined, effort: undefined }

  test('is requested as a token budget', () => {
    expect(ask({})).toEqual(nothing)
    expect(ask({ effort: 'none' })).toEqual({ thinking: { type: 'disabled' }, effort: undefined })
    expect(ask({ effort: 'minimal' })).toEqual(budget(1_024))
    expect(ask({ effort: 'medium' })).toEqual(budget(8_192))
    expect(ask({ effort: 'max' })).toEqual(budget(30_976))
    expect(ask({ effort: 'low', budgetTokens: 5_000 })).toEqual(budget(5_000))
    expect(ask({ budgetTokens: 500 })).toEqual(budget(1_024))
  })

  test('leaves tokens for the output, or is not requested', () => {
    expect(ask({ effort: 'high', maxOutputTokens: 3_000 })).toEqual(budget(1_976))
    expect(ask({ effort: 'high', maxOutputTokens: 2_000 })).toEqual(nothing)
  })

  test('is requested as an effort', () => {
    const adaptive = { thinking: 'adaptive' } as const
    expect(ask({ effort: 'max' }, adaptive)).toEqual({
      thinking: { type: 'adaptive' },
      effort: 'max',
    })
    expect(ask({ effort: 'minimal', summary: 'auto' }, adaptive)).toEqual({
      thinking: { type: 'adaptive', display: 'summarized' },
      effort: 'low',
    })
    expect(ask({ effort: 'high' }, { thinking: 'none' })).toEqual(nothing)
  })

  test('is not enabled with a forced call', () => {
    const forced = { tools: [look], toolChoice: { type: 'required' } } as const
    expect(ask({ effort: 'high' }, {}, forced)).toEqual(nothing)
    expect(ask({ effort: 'high' }, { thinking: 'adaptive' }, forced)).toEqual({
      thinking: undefined,
      effort: 'high',
    })
  })

  test('is not enabled in the middle of a turn that began without it', () => {
    const call = {
      type: 'tool-call',
      callId: 'one',
      name: 'look',
      form: 'function',
      arguments: '{}',
    } as const
    const result = { type: 'tool-result', callId: 'one', form: 'function', parts: [] } as const
    const thought = {
      type: 'reasoning',
      summary: [],
      text: 'Hm',
      sealed: 'sig',
      sealedBy: 'upstream/m',
    } as const
    const turn = (...items: GenerationRequest['items']) => ({ tools: [look], items })
    const [hi, ho] = [userMessage('Hi'), userMessage('Ho')]
    expect(ask({ effort: 'low' }, {}, turn(hi, call, result))).toEqual(nothing)
    expect(ask({ effort: 'low' }, {}, turn(hi, thought, call, result))).toEqual(budget(2_048))
    const answer = { type: 'message', role: 'assistant', parts: [{ type: 'text', text: 'A' }] }
    const over = turn(hi, call, result, answer as GenerationRequest['items'][number], ho)
    expect(ask({ effort: 'low' }, {}, over)).toEqual(budget(2_048))
  })
})
