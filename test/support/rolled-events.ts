import type { FinishReason, GenerationEvent, Usage } from '#inference/events.ts'
import { AppError } from '#lib/errors.ts'
import type { createDice } from './dice.ts'

/** Random generations of every kind that the grammar of events allows. */

const blocksMax = 5
const piecesMax = 4

type Dice = ReturnType<typeof createDice>

const texts = ['', 'one ', 'zwei ', '三\u2028', '"\\\n', '😀', '\ud83d', 'data: x\n\n']
const logprob = { token: 'x', logprob: -0.5, bytes: [120], top: [] }

/** A valid generation, up to and including its terminal event. */
export function rollGeneration(dice: Dice): GenerationEvent[] {
  const events: GenerationEvent[] = [{ type: 'generation-start' }]
  const ending = dice.upTo(4) === 0 ? failed : finish(pick(dice, reasons))
  const isCut = ending.type === 'error' || cuts.has(ending.reason)
  const blocks = dice.upTo(blocksMax + 1)
  for (let block = 0; block < blocks; block++) {
    const complete = !isCut || block < blocks - 1
    events.push(
      ...pick(dice, [rollText, rollReasoning, rollCall, rollHosted])(dice, block, complete),
    )
  }
  return [...events, ending]
}

const reasons: readonly FinishReason[] = [
  'stop',
  'stop-sequence',
  'length',
  'tool-calls',
  'content-filter',
  'invalid-output',
]
const cuts: ReadonlySet<FinishReason> = new Set(['length', 'content-filter'])

type Terminal = Extract<GenerationEvent, { type: 'finish' | 'error' }>

const failed: Terminal = {
  type: 'error',
  error: new AppError('upstream_error', 'It broke.', { param: 'x' }),
}

/** The token counts of a server that reports cached and reasoning tokens separately. */
const usage: Usage = {
  inputTokens: 1,
  cachedTokens: 2,
  cacheWriteTokens: 3,
  outputTokens: 4,
  reasoningTokens: 5,
  totalTokens: 6,
}

function finish(reason: FinishReason): Terminal {
  const counted = reason === 'length' ? null : usage
  const stopSequence = reason === 'stop-sequence' ? { stopSequence: 'END' } : {}
  return { type: 'finish', reason, rawReason: null, usage: counted, ...stopSequence }
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
  const add = (text: string): GenerationEvent => ({ type: 'tool-call-delta', block, text })
  return [
    { type: 'tool-call-start', block, call },
    ...(form === 'custom' ? rollPieces(dice, add) : rollJson(dice, complete).map(add)),
    { type: 'tool-call-end', block, complete },
  ]
}

function rollHosted(dice: Dice, block: number, complete: boolean): GenerationEvent[] {
  const type = pick(dice, ['web_search_call', 'mcp_call', 'shell_call', 'image_generation_call'])
  const stages = ['in_progress', 'searching', 'generating', 'made_up', 'completed']
  const fields: Readonly<Record<string, object>> = {
    shell_call: { call_id: `call_${block}` },
    mcp_call: { server_label: 's', name: 'n', arguments: '' },
  }
  const head = { type, ...fields[type] }
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

/** An object in pieces, or its beginning. */
function rollJson(dice: Dice, complete: boolean): string[] {
  const json = JSON.stringify({ [pick(dice, texts)]: pick(dice, texts), deep: [{}] })
  const cut = dice.upTo(json.length)
  return complete ? [json.slice(0, cut), json.slice(cut)] : [json.slice(0, cut)]
}

function rollPieces(dice: Dice, make: (text: string) => GenerationEvent): GenerationEvent[] {
  return Array.from({ length: dice.upTo(piecesMax + 1) }, () => make(pick(dice, texts)))
}

function pick<T>(dice: Dice, choices: readonly T[]): T {
  const choice = choices[dice.upTo(choices.length)]
  if (choice === undefined) throw new Error('no choice')
  return choice
}
