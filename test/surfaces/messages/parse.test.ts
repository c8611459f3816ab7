import { describe, expect, test } from 'bun:test'
import { AppError } from '#lib/errors.ts'
import { parseCountTokens } from '#surfaces/messages/parse.ts'
import { contextWith, messageItem, parse, refusalOf, refusalOfBody, text, user } from './parsing.ts'

const older = { 'anthropic-version': '2023-06-01' }
const newer = { 'anthropic-version': '2026-10-21' }

describe('the body', () => {
  test('of a plain request parses to the same request as on /v1/responses', () => {
    const { request, ...rest } = parse({})
    const { origin: _, ...plain } = request
    expect<unknown>(plain).toEqual({
      model: 'demo',
      instructions: null,
      items: [messageItem('user', 'Hello')],
      tools: [],
      toolChoice: { type: 'auto' },
      parallelToolCalls: true,
      sampling: {
        temperature: null,
        topP: null,
        topK: null,
        stopSequences: [],
        presencePenalty: null,
        frequencyPenalty: null,
        maxOutputTokens: 100,
        topLogprobs: null,
      },
      format: { type: 'text' },
      verbosity: null,
      reasoning: { effort: null, summary: null },
      promptCacheKey: null,
      safetyIdentifier: null,
      serviceTier: null,
    })
    expect(rest).toEqual({
      stream: false,
      isPromptOnly: false,
      thinkingDisplay: 'summarized',
      needs: { protocol: 'messages', tools: [], refusals: [], isRelayed: true },
      mcp: [],
      webSearch: { tool: null, choice: 'any' },
      ignored: [],
    })
  })

  test('can have unknown fields, and null for absent ones', () => {
    const fields = {
      diagnostics: { previous_message_id: null },
      container: null,
      inference_geo: 'eu',
      context_management: { edits: [] },
      speed: 'fast',
      cache_control: { type: 'ephemeral' },
      system: null,
      tools: null,
      tool_choice: null,
      thinking: null,
      stop_sequences: null,
      stream: null,
      metadata: null,
      output_config: null,
      service_tier: null,
      temperature: null,
    }
    expect<unknown>(parse(fields).request.items).toEqual([messageItem('user', 'Hello')])
  })

  test.each([
    ['an array', [], 'The request body must be an object.'],
    ['no model', { max_tokens: 1, messages: [] }, 'model: is required'],
    ['no messages', { model: 'demo', max_tokens: 1 }, 'messages: is required'],
    ['no max_tokens', { model: 'demo', messages: [] }, 'max_tokens: is required'],
  ])('that has %s is refused', (_, whole, message) => {
    expect(refusalOfBody(whole)).toBe(message)
  })

  test.each([
    [{ model: '' }, 'model: must be a string of 1 to 256 characters'],
    [{ messages: 'Hello' }, 'messages: must be a non-empty array of objects'],
    [{ max_tokens: -1 }, 'max_tokens: must be an integer of 0 or more'],
    [{ max_tokens: 1.5 }, 'max_tokens: must be an integer of 0 or more'],
    [{ max_tokens: '100' }, 'max_tokens: must be an integer of 0 or more'],
    [{ stream: 'true' }, 'stream: must be a boolean'],
    [{ system: 1 }, 'system: must be a string or an array of objects'],
    [{ stop_sequences: ['a', ''] }, 'stop_sequences.1: must be a non-empty string'],
    [
      { stop_sequences: Array(65).fill('a') },
      'stop_sequences: must be an array of at most 64 strings',
    ],
    [{ thinking: { type: 'often' } }, thinkingTypes()],
    [{ thinking: { type: 'enabled' } }, 'thinking.budget_tokens: is required'],
    [{ output_format: { type: 'xml' } }, 'output_format.type: must be json_schema'],
    [
      { output_config: { format: { type: 'json_schema', schema: { type: 'thing' } } } },
      'output_config.format.schema: is not a valid JSON Schema: #/type must be one of string, number, integer, boolean, object, array, null, or a list of them',
    ],
    [{ metadata: { user_id: 1 } }, 'metadata.user_id: must be a string'],
  ])('with %j is refused: %s', (fields, message) => {
    expect(refusalOf(fields)).toBe(message)
  })

  test('with more text than the limit is too large', () => {
    const refused = () => parse({ system: 'x'.repeat(600), messages: [user('y'.repeat(401))] })
    expect(refused).toThrow(AppError)
    expect(refused).toThrow('exceeds the limit of 1000 characters')
  })

  test('with max_tokens 0 generates nothing', () => {
    const { isPromptOnly, request } = parse({ max_tokens: 0 })
    expect([isPromptOnly, request.sampling.maxOutputTokens]).toEqual([true, null])
  })
})

function thinkingTypes() {
  return 'thinking.type: must be one of enabled, adaptive, disabled, between_tools'
}

describe('system', () => {
  test('is joined to one text, without the billing note of the vendor', () => {
    const instructions = (system: unknown) => parse({ system }).request.instructions
    const note = text('x-anthropic-billing-header: cc_version=2; cch=1f;')
    expect(instructions('Be kind.')).toBe('Be kind.')
    expect(instructions([note, text('Be kind.'), text(''), text('Be brief.')])).toBe(
      'Be kind.\n\nBe brief.',
    )
    expect(instructions([{ ...text('Be kind.'), cache_control: { type: 'ephemeral' } }])).toBe(
      'Be kind.',
    )
    expect(instructions([note])).toBeNull()
    expect(instructions('')).toBeNull()
  })

  test('allows text only', () => {
    expect(refusalOf({ system: [text('a'), { type: 'image' }] })).toBe(
      'system.1.type: is "image", but only text is allowed here',
    )
    expect(refusalOf({ system: [{ type: 'text' }] })).toBe('system.0.text: is required')
  })
})

describe('sampling', () => {
  const given = { temperature: 0.5, top_p: 0.9, top_k: 40, stop_sequences: ['END', ' \n'] }
  const sampling = { temperature: 0.5, topP: 0.9, topK: 40 }

  test('applies in the older dialects, which are the default', () => {
    expect(parse(given, older).request.sampling).toMatchObject(sampling)
    expect(parse(given).request.sampling).toMatchObject(sampling)
    expect(refusalOf({ temperature: 'hot' }, older)).toBe(
      'temperature: must be a number from 0 to 2',
    )
  })

  test('is ignored in the newer dialect and in unknown ones, which are reported', () => {
    const silent = { temperature: null, topP: null, topK: null, stopSequences: ['END', ' \n'] }
    expect(parse(given, newer)).toMatchObject({ request: { sampling: silent }, ignored: [] })
    expect(parse({ temperature: 'hot' }, newer).request.sampling.temperature).toBeNull()
    const unknown = parse(given, { 'anthropic-version': '2031-01-01' })
    expect(unknown).toMatchObject({
      request: { sampling: silent },
      ignored: ['version 2031-01-01'],
    })
  })
})

describe('thinking', () => {
  const reasoning = (fields: object) => parse(fields).request.reasoning
  const enabled = (budget: number) => ({ thinking: { type: 'enabled', budget_tokens: budget } })

  test.each([
    [500, 'low'],
    [4_000, 'low'],
    [10_000, 'medium'],
    [31_999, 'high'],
  ])('within %i tokens is effort %s', (budgetTokens, effort) => {
    expect(reasoning(enabled(budgetTokens))).toEqual({ effort, summary: 'auto', budgetTokens })
  })

  test('has the explicit effort, and none if disabled', () => {
    const named = { ...enabled(500), output_config: { effort: 'max' } }
    expect(reasoning(named)).toMatchObject({ effort: 'max', budgetTokens: 500 })
    expect(reasoning({ output_config: { effort: 'high' } })).toEqual({
      effort: 'high',
      summary: null,
    })
    const adaptive = { type: 'adaptive' }
    expect(reasoning({ thinking: adaptive })).toEqual({ effort: null, summary: 'auto' })
    expect(reasoning({ thinking: { type: 'disabled' } })).toEqual({ effort: 'none', summary: null })
  })

  test('between tools applies only after a tool result', () => {
    const thinking = { type: 'between_tools' }
    const messages = [
      user('Look.'),
      { role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'look', input: {} }] },
      user({ type: 'tool_result', tool_use_id: 'a' }),
    ]
    expect(reasoning({ thinking })).toEqual({ effort: 'none', summary: null })
    expect(reasoning({ thinking, messages })).toEqual({ effort: null, summary: 'auto' })
  })

  test('is returned unless its display is omitted', () => {
    const display = (display: unknown) => parse({ thinking: { type: 'adaptive', display } })
    expect(display('omitted')).toMatchObject({
      thinkingDisplay: 'omitted',
      request: { reasoning: { summary: null } },
    })
    for (const word of ['summarized', null, 'something new']) {
      expect(display(word).thinkingDisplay).toBe('summarized')
    }
  })
})

test('the output schema is read from both fields', () => {
  const format = { type: 'json_schema', schema: { type: 'object', properties: {} } }
  const parsed = {
    type: 'json-schema',
    name: 'answer',
    description: null,
    schema: format.schema,
    strict: true,
  }
  expect<unknown>(parse({ output_config: { format } }).request.format).toEqual(parsed)
  expect<unknown>(parse({ output_format: format }).request.format).toEqual(parsed)
})

describe('the end user', () => {
  const userId = 'user_abc_account__session_0198a000'

  test('is forwarded as a hash, and the session unchanged', () => {
    const { safetyIdentifier, promptCacheKey } = parse({ metadata: { user_id: userId } }).request
    expect(safetyIdentifier).toMatch(/^[0-9a-f]{64}$/)
    expect(promptCacheKey).toBe(safetyIdentifier)
    const session = { 'x-claude-code-session-id': 'a-session' }
    expect(parse({ metadata: { user_id: userId } }, session).request).toMatchObject({
      safetyIdentifier,
      promptCacheKey: 'a-session',
    })
    const long = { 'x-claude-code-session-id': 's'.repeat(65) }
    expect(parse({}, long).request.promptCacheKey).toMatch(/^[0-9a-f]{64}$/)
  })

  test.each([
    ['auto', 'auto'],
    ['standard_only', 'default'],
    ['something new', null],
  ])('and its tier %s is %s', (tier, serviceTier) => {
    expect(parse({ service_tier: tier }).request.serviceTier).toBe(serviceTier)
  })
})

test('an upstream of the same protocol gets the body and the forwarded headers', () => {
  const headers = {
    ...newer,
    'anthropic-beta': 'a-beta-2031-01-01,b',
    'x-claude-code-session-id': 's',
    authorization: 'Bearer x',
    'x-api-key': 'x',
    'anthropic-workspace-id': 'w',
  }
  const origin = parse({ something_new: { a: null } }, headers).request.origin
  expect(origin?.body).toMatchObject({ model: 'demo', something_new: { a: null } })
  expect(origin?.headers).toEqual({
    'anthropic-beta': 'a-beta-2031-01-01,b',
    'anthropic-version': '2026-10-21',
    'x-claude-code-session-id': 's',
  })
})

test('a count requires no max_tokens, and parses the same prompt', () => {
  const { request } = parseCountTokens(
    { model: 'demo', system: 'Be kind.', messages: [user('Hello')], max_tokens: 'many' },
    contextWith(),
  )
  expect(request).toMatchObject({ instructions: 'Be kind.', items: [messageItem('user', 'Hello')] })
})
