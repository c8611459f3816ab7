import { describe, expect, test } from 'bun:test'
import { createSealerOf } from '#sealing/sealer.ts'
import { sealsOf } from '#sealing/seals.ts'
import { type Compaction, writeCompaction } from '#surfaces/responses/compacted-context.ts'
import { testSeals } from '#test/support/sealing.ts'
import { context, expectInvalid, parse, refusalOf } from './parsing.ts'

const call = { type: 'function_call', call_id: 'c1', name: 'look', arguments: '{}' }
const output = { type: 'function_call_output', call_id: 'c1', output: 'seen' }
const user = (content: string) => ({ role: 'user', content })
const assistant = (content: string) => ({ role: 'assistant', content })
const trigger = { type: 'compaction_trigger' }

const plainOf = (compaction: Partial<Compaction>) =>
  writeCompaction({ summary: 'SUMMARY', instructions: [], questions: [], tail: [], ...compaction })
const compaction = (parts: Partial<Compaction> = {}, seals = testSeals) => ({
  type: 'compaction',
  encrypted_content: seals.compaction.seal(plainOf(parts)),
})

/** The items for the model, one line each. */
const linesOf = (...input: object[]) =>
  parse({ input }).request.items.map((item) => {
    if (!('parts' in item)) return item.type
    const [part] = item.parts
    const text = part !== undefined && 'text' in part ? part.text.split('\n').at(-1) : ''
    return item.type === 'message' ? `${item.role}: ${text}` : item.type
  })

describe('a compaction in the input', () => {
  const question = {
    type: 'message',
    role: 'user',
    parts: [{ type: 'text', text: 'kept' }],
  } as const

  test('replaces everything before it, and the items after it remain', () => {
    const item = compaction({ questions: [question] })
    const after = [assistant('answer'), user('next')]
    const expected = ['developer: SUMMARY', 'user: kept', 'assistant: answer', 'user: next']
    expect(linesOf(user('old'), assistant('old'), call, output, item, ...after)).toEqual(expected)
    expect(linesOf(item, ...after)).toEqual(expected)
    expect(linesOf(user('old'), compaction(), user('between'), item, ...after)).toEqual(expected)
  })

  test('keeps instructions', () => {
    const system = { role: 'system', content: 'Be brief.' }
    expect(linesOf(system, user('old'), compaction(), user('next'))).toEqual([
      'system: Be brief.',
      'developer: SUMMARY',
      'user: next',
    ])
  })

  test('keeps the user messages before it', () => {
    const item = compaction({ questions: null })
    expect(linesOf(user('one'), user('two'), item, user('next'))).toEqual([
      'developer: SUMMARY',
      'user: one',
      'user: two',
      'user: next',
    ])
  })

  test('restores the call of a later output', () => {
    const waiting = { type: 'tool-call', callId: 'c1', name: 'look', arguments: '{}' } as const
    const item = compaction({ tail: [{ ...waiting, form: 'function' }] })
    expect(linesOf(user('old'), call, item, output)).toEqual([
      'developer: SUMMARY',
      'tool-call',
      'tool-result',
    ])
    expect(linesOf(item, output)).toHaveLength(3)
    expect(refusalOf({ input: [compaction(), output] }).message).toContain('no earlier call')
  })

  test('is stored unchanged', () => {
    const item = compaction()
    const { storedInput } = parse({ input: [item, user('next')] })
    expect(storedInput[0]).toEqual({ ...item, id: expect.stringMatching(/^cmp_/) })
  })
})

describe('a compaction that is refused', () => {
  const sealer = createSealerOf(['a-secret-for-tests-of-seals-0123456'])
  const ours = testSeals.compaction.seal(plainOf({}))
  const reasoning = testSeals.reasoning.seal({ text: 'Hm.', payload: null, maker: null })
  test.each([
    ['altered', `${ours.slice(0, -4)}AAAA`],
    ['of another user', sealsOf(sealer, 'somebody else').compaction.seal(plainOf({}))],
    ['sealed for another purpose', reasoning],
    ['of another service', 'gAAAAABpM0Yj'],
    ['sealed by the gateway, but not a compaction', testSeals.compaction.seal('{}')],
  ])('%s', (_, encrypted_content) => {
    const input = [user('old'), { type: 'compaction', encrypted_content }, user('next')]
    expect(refusalOf({ input })).toMatchObject({
      status: 400,
      wireCode: 'invalid_encrypted_content',
      param: 'input[1].encrypted_content',
    })
  })

  test('without content', () => {
    const error = refusalOf({ input: [{ type: 'compaction' }] })
    const param = 'input[0].encrypted_content'
    expectInvalid(error, param, `${param} is required.`)
  })
})

describe('the time of a compaction', () => {
  const rulesOf = (fields: object) => parse(fields).compaction

  test('is now with a trigger at the end; earlier triggers are ignored', () => {
    expect(rulesOf({ input: [user('one'), trigger] })).toEqual({ now: true, threshold: null })
    expect(rulesOf({ input: [user('one'), trigger, compaction(), user('two')] }).now).toBe(false)
    expect(rulesOf({}).now).toBe(false)
    expect(parse({ input: [user('one'), trigger] }).ignoredItems).toEqual([])
  })

  test.each<[unknown, unknown]>([
    [[{ type: 'compaction', compact_threshold: 5_000 }], 5_000],
    [[{ type: 'compaction' }], 'by-model'],
    [[{ type: 'compaction', compact_threshold: null }], 'by-model'],
    [
      [
        { type: 'something_new', size: 1 },
        { type: 'compaction', compact_threshold: 9 },
      ],
      9,
    ],
    [[{ type: 'something_new' }], null],
    [[], null],
    [null, null],
  ])('context_management %j means %p', (context_management, threshold) => {
    expect(rulesOf({ context_management }).threshold).toEqual(threshold as never)
  })

  test.each([
    [{}, 'context_management', 'must be an array of objects'],
    [['x'], 'context_management[0]', 'must be an object'],
    [[{}], 'context_management[0].type', 'is required'],
    ...[0, 1.5, '5000'].map((compact_threshold): [unknown, string, string] => [
      [{ type: 'compaction', compact_threshold }],
      'context_management[0].compact_threshold',
      'must be an integer of 1 or more',
    ]),
  ])('context_management %j is refused', (context_management, param, predicate) => {
    expectInvalid(refusalOf({ context_management }), param, `${param} ${predicate}.`)
  })

  test('the limit of an input includes the content of a compaction', () => {
    const text = 'x'.repeat(context.limits.inputCharsMax)
    const question = { type: 'message', role: 'user', parts: [{ type: 'text', text }] } as const
    const input = [compaction({ questions: [question] }), user('next')]
    expect(refusalOf({ input })).toMatchObject({ status: 413, param: 'input' })
  })
})
