import { expect, test } from 'bun:test'
import type { GenerationEvent } from '#inference/events.ts'
import { createGrammar } from '#inference/grammar.ts'
import { AppError } from '#lib/errors.ts'
import { doneFrame } from '#surfaces/responses/frames.ts'
import { noHistory } from '#surfaces/responses/history.ts'
import { parseCreateResponse } from '#surfaces/responses/parse.ts'
import { createResponseRenderer } from '#surfaces/responses/render.ts'
import { normalise } from '#test/support/answer-content.ts'
import { createDice } from '#test/support/dice.ts'
import { checkStream } from '#test/support/response-frames.ts'
import { openSeal, testSeals } from '#test/support/sealing.ts'

/** Whatever the grammar of events allows becomes a legal stream, with signs of life anywhere. */

const generations = 3_000
const blocksMax = 5
const piecesMax = 4

type Dice = ReturnType<typeof createDice>

const texts = ['', 'one ', 'zwei ', '三\u2028', '"\\\n', '😀', '\ud83d', 'data: x\n\n']
const logprob = { token: 'x', logprob: -0.5, bytes: [120], top: [] }

/** A generation that the grammar allows, up to and with its terminal event. */
function roll(dice: Dice): GenerationEvent[] {
  const events: GenerationEvent[] = [{ type: 'generation-start' }]
  const endings = [finish('stop'), finish('tool-calls'), finish('length'), failed] as const
  const ending = pick(dice, endings)
  const isCut = ending === failed || (ending.type === 'finish' && ending.reason === 'length')
  const blocks = dice.upTo(blocksMax + 1)
  for (let block = 0; block < blocks; block++) {
    const complete = !isCut || block < blocks - 1
    events.push(
      ...pick(dice, [rollText, rollReasoning, rollCall, rollHosted])(dice, block, complete),
    )
  }
  return [...events, ending]
}

const failed: GenerationEvent = {
  type: 'error',
  error: new AppError('upstream_error', 'It broke.', { param: 'x' }),
}

function finish(reason: 'stop' | 'tool-calls' | 'length'): GenerationEvent {
  const usage = {
    inputTokens: 1,
    cachedTokens: 2,
    cacheWriteTokens: 3,
    outputTokens: 4,
    reasoningTokens: 5,
    totalTokens: 6,
  }
  return { type: 'finish', reason, rawReason: null, usage: reason === 'length' ? null : usage }
}

function rollText(dice: Dice, block: number, complete: boolean): GenerationEvent[] {
  const form = pick(dice, ['answer', 'refusal'] as const)
  const phase = pick(dice, [{}, { phase: 'commentary' }])
  const citations = [
    { kind: 'url', url: 'https://example.org', title: 'T', startIndex: 0, endIndex: 1 },
    { kind: 'file', fileId: 'f', filename: 'n', index: 2 },
  ] as const
  const inner = rollPieces(dice, (text): GenerationEvent => {
    if (form === 'refusal' || dice.upTo(4) > 0) return { type: 'text-delta', block, text }
    return pick<GenerationEvent>(dice, [
      { type: 'citation', block, citation: pick(dice, citations) },
      { type: 'text-delta', block, text, logprobs: [logprob] },
    ])
  })
  return [
    { type: 'text-start', block, form, ...phase },
    ...inner,
    { type: 'text-end', block, complete },
  ]
}

function rollReasoning(dice: Dice, block: number, complete: boolean): GenerationEvent[] {
  let part = 0
  const inner = rollPieces(dice, (text): GenerationEvent => {
    part += dice.upTo(2)
    return { type: 'reasoning-delta', block, part, text }
  })
  return [
    { type: 'reasoning-start', block, ...pick(dice, [{}, { form: 'summary' as const }]) },
    ...inner,
    { type: 'reasoning-end', block, complete, ...pick(dice, [{}, { sealed: 's' }]) },
  ]
}

function rollCall(dice: Dice, block: number, complete: boolean): GenerationEvent[] {
  const form = pick(dice, ['function', 'custom'] as const)
  const namespace = pick(dice, [{}, { namespace: 'n' }])
  const call = { callId: `call_${block}`, name: 'get', form, ...namespace }
  return [
    { type: 'tool-call-start', block, call },
    ...rollPieces(dice, (text): GenerationEvent => ({ type: 'tool-call-delta', block, text })),
    { type: 'tool-call-end', block, complete },
  ]
}

function rollHosted(dice: Dice, block: number, complete: boolean): GenerationEvent[] {
  const type = pick(dice, ['web_search_call', 'mcp_call', 'shell_call', 'image_generation_call'])
  const stages = ['in_progress', 'searching', 'generating', 'made_up', 'completed']
  const head = { type, ...(type === 'shell_call' ? { call_id: `call_${block}` } : {}) }
  const done = { ...head, status: 'completed', action: { type: 'search' } }
  return [
    { type: 'hosted-tool-start', block, item: { ...head, status: 'in_progress' } },
    ...rollPieces(
      dice,
      (): GenerationEvent => ({ type: 'hosted-tool-progress', block, stage: pick(dice, stages) }),
    ),
    { type: 'hosted-tool-end', block, item: complete ? done : null },
  ]
}

function rollPieces(dice: Dice, make: (text: string) => GenerationEvent): GenerationEvent[] {
  return Array.from({ length: dice.upTo(piecesMax + 1) }, () => make(pick(dice, texts)))
}

function pick<T>(dice: Dice, choices: readonly T[]): T {
  const choice = choices[dice.upTo(choices.length)]
  if (choice === undefined) throw new Error('no choice')
  return choice
}

const { echo } = parseCreateResponse(
  { model: 'm', input: 'x' },
  {
    limits: { inputCharsMax: 10, inputItemsMax: 1, toolsMax: 1 },
    history: noHistory,
    seals: testSeals,
  },
)
const open = (stream: boolean, includeSealed: boolean) =>
  createResponseRenderer({
    id: 'resp_test',
    createdAt: new Date(0),
    echo,
    includeSealed,
    reasoningSeal: openSeal,
    stream,
    framesBefore: 0,
    now: () => new Date(0),
  })

/** Whether there is anything to seal: what a model itself thought, or the payload of its upstream. */
function isSealable(events: readonly GenerationEvent[]): boolean {
  const raw = new Set<number>()
  for (const event of events) {
    if (event.type === 'reasoning-start' && event.form === undefined) raw.add(event.block)
  }
  return events.some(
    (event) =>
      'sealed' in event ||
      (event.type === 'reasoning-delta' && event.text !== '' && raw.has(event.block)),
  )
}

/** Events in batches of any size, and signs of life between them, as a silent upstream causes. */
function write(dice: Dice, events: readonly GenerationEvent[], includeSealed: boolean): string {
  const renderer = open(true, includeSealed)
  let wire = dice.upTo(2) === 0 ? renderer.open() : ''
  for (let at = 0; at < events.length; ) {
    if (wire !== '' && dice.upTo(4) === 0) wire += renderer.heartbeat()
    const next = at + 1 + dice.upTo(3)
    wire += renderer.push(events.slice(at, next))
    at = next
  }
  return wire + doneFrame
}

test('every generation is a legal stream, and its end is what is answered without one', () => {
  for (let seed = 0; seed < generations; seed++) {
    const dice = createDice(seed)
    const events = roll(dice)
    const grammar = createGrammar()
    for (const event of events) grammar.check(event)
    grammar.end()

    const includeSealed = dice.upTo(2) === 0
    const { response } = checkStream(write(dice, events, includeSealed))
    expect(JSON.stringify(response).includes('encrypted_content')).toBe(
      includeSealed && isSealable(events),
    )
    const folded = open(false, includeSealed)
    folded.push(events)
    expect(normalise(JSON.stringify(folded.result()))).toBe(normalise(JSON.stringify(response)))
  }
})

test('a failure without any event is a whole stream too', () => {
  const error = new AppError('upstream_overloaded', 'Full.')
  for (const opened of [true, false]) {
    const renderer = open(true, false)
    const wire = opened ? renderer.open() + renderer.heartbeat() : ''
    const { response } = checkStream(wire + renderer.fail(error) + doneFrame)
    expect(response).toMatchObject({
      status: 'failed',
      output: [],
      error: { code: 'upstream_overloaded', message: 'Full.', type: 'upstream_error', param: null },
    })
  }
})
