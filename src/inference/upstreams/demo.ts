import type { EventBatch, GenerationEvent, Usage } from '#inference/events.ts'
import type { GenerationRequest } from '#inference/request.ts'
import type { Adapter, AdapterContext } from '#inference/upstream.ts'
import type { CancelSignal } from '#lib/cancellation.ts'
import { sleep } from '#lib/deadline.ts'
import { AppError } from '#lib/errors.ts'
import {
  type DemoBlock,
  type DemoPlan,
  planAnswer,
  planReasoning,
  planTools,
  readPrompt,
  readText,
  textBlock,
  toWords,
} from './demo-plan.ts'

/** A built-in model that demonstrates one behaviour. It counts words as tokens. */
export type DemoModel = {
  readonly id: string
  readonly description: string
  readonly capabilities?: readonly string[]
  /** The pause between two words; `wordPauseMs` where absent. */
  readonly pauseMs?: number
  readonly plan: (request: GenerationRequest) => DemoPlan
}

const wordPauseMs = 30
/** At one word every half second, just below ten minutes, the longest generation. */
const longWords = 1_198
const longPauseMs = 500
const quietSecondsDefault = 120
const quietSecondsMax = 3_600
/** The words of truncated output. */
const truncatedWords = 12

export const demoModels: readonly DemoModel[] = [
  {
    id: 'demo',
    description: 'Repeats the prompt word by word, calls tools that it mentions, and quotes files.',
    capabilities: ['tools', 'json'],
    plan: planAnswer,
  },
  {
    id: 'demo-fast',
    description: 'Repeats the prompt without a pause.',
    capabilities: ['tools', 'json'],
    pauseMs: 0,
    plan: planAnswer,
  },
  {
    id: 'demo-reasoning',
    description: 'Reasons before it responds.',
    capabilities: ['reasoning', 'tools', 'json'],
    plan: planReasoning,
  },
  {
    id: 'demo-tools',
    description: 'Calls its tools and responds with their results.',
    capabilities: ['tools', 'json'],
    plan: planTools,
  },
  {
    id: 'demo-long',
    description: 'Counts for ten minutes.',
    pauseMs: longPauseMs,
    plan: () => ({
      blocks: [textBlock(Array.from({ length: longWords }, (_, index) => index + 1).join(' '))],
    }),
  },
  {
    id: 'demo-quiet',
    description:
      'Pauses in the middle: for two minutes, or for 40 s if the prompt contains "quiet 40".',
    plan: planQuiet,
  },
  {
    id: 'demo-fail',
    description: 'Fails before its first output.',
    plan: () => ({ blocks: [], failure: failure('before its first word') }),
  },
  {
    id: 'demo-fail-midway',
    description: 'Fails after a few words.',
    plan: () => ({
      blocks: [textBlock('These words arrive, and then')],
      failure: failure('in the middle of its answer'),
    }),
  },
  {
    id: 'demo-refusal',
    description: 'Refuses.',
    plan: () => ({
      blocks: [textBlock('I will not answer that, because I am a demo.', 'refusal')],
    }),
  },
  {
    id: 'demo-length',
    description: 'Stops at the output limit.',
    plan: (request) => {
      const text = `You said: ${readPrompt(request)}\nThis is longer than the limit, and it ends in the`
      const pieces = toWords(text).slice(0, truncatedWords)
      return { blocks: [{ type: 'text', form: 'answer', pieces }], isTruncated: true }
    },
  },
]

/** The built-in upstream: every behaviour of a model, for first steps and for tests. */
export const demo: Adapter = {
  generate,
  listModels: async () =>
    demoModels.map(({ id, capabilities = [] }) => ({
      id,
      created: null,
      ownedBy: 'sluice',
      contextWindow: null,
      capabilities,
    })),
}

async function* generate(
  request: GenerationRequest,
  context: AdapterContext,
): AsyncGenerator<EventBatch, void, void> {
  const model = demoModels.find(({ id }) => id === context.model)
  if (model === undefined) {
    throw new AppError('model_not_found', `No such demo model: ${context.model}.`)
  }
  const plan = model.plan(request)
  if (plan.failure !== undefined && plan.blocks.length === 0) throw plan.failure
  yield [{ type: 'generation-start' }]
  const wordsMax = request.sampling.maxOutputTokens ?? Number.POSITIVE_INFINITY
  const output = { words: 0, reasoningWords: 0 }
  const pace = createPace(context.signal)
  for (const [index, block] of plan.blocks.entries()) {
    for (const [position, piece] of block.pieces.entries()) {
      const isOut = output.words >= wordsMax
      if (isOut && position > 0) yield [closeBlock(block, index, false)]
      if (isOut) {
        yield [finish(request, output, 'length')]
        return
      }
      if (position === 0) yield [openBlock(block, index)]
      await pace(('pauseMs' in block ? block.pauseMs : model.pauseMs) ?? wordPauseMs)
      output.words++
      if (block.type === 'reasoning') output.reasoningWords++
      yield [addToBlock(block, index, piece)]
    }
    if (plan.failure !== undefined) throw plan.failure
    yield [closeBlock(block, index, plan.isTruncated !== true)]
  }
  const hasCalls = plan.blocks.some(({ type }) => type === 'tool-call')
  yield [finish(request, output, plan.isTruncated ? 'length' : hasCalls ? 'tool-calls' : 'stop')]
}

/** Waits between words, scheduled from the first one, so that long output does not drift. */
function createPace(signal: CancelSignal): (pauseMs: number) => Promise<void> {
  let dueAtMs: number | null = null
  return async (pauseMs) => {
    signal.throwIfAborted()
    const nowMs = performance.now()
    dueAtMs = dueAtMs === null ? nowMs : dueAtMs + pauseMs
    if (dueAtMs > nowMs) await sleep(dueAtMs - nowMs, signal)
  }
}

function planQuiet(request: GenerationRequest): DemoPlan {
  const match = /quiet\s+(\d+(?:\.\d+)?)/i.exec(readPrompt(request))
  const seconds = Math.min(Number(match?.[1] ?? quietSecondsDefault), quietSecondsMax)
  const pieces = ['Quiet for ', `${seconds} seconds.`]
  return { blocks: [{ type: 'text', form: 'answer', pieces, pauseMs: seconds * 1000 }] }
}

function openBlock(block: DemoBlock, index: number): GenerationEvent {
  if (block.type === 'text') return { type: 'text-start', block: index, form: block.form }
  if (block.type === 'reasoning') return { type: 'reasoning-start', block: index }
  return { type: 'tool-call-start', block: index, call: block.call }
}

function addToBlock(block: DemoBlock, index: number, text: string): GenerationEvent {
  if (block.type === 'reasoning') return { type: 'reasoning-delta', block: index, part: 0, text }
  return { type: `${block.type}-delta`, block: index, text }
}

function closeBlock({ type }: DemoBlock, index: number, complete: boolean): GenerationEvent {
  return { type: `${type}-end`, block: index, complete }
}

function finish(
  request: GenerationRequest,
  output: { words: number; reasoningWords: number },
  reason: 'stop' | 'length' | 'tool-calls',
): GenerationEvent {
  const usage: Usage = {
    inputTokens: countInput(request),
    cachedTokens: 0,
    cacheWriteTokens: 0,
    outputTokens: output.words,
    reasoningTokens: output.reasoningWords,
    totalTokens: countInput(request) + output.words,
  }
  return { type: 'finish', reason, rawReason: null, usage }
}

function countInput(request: GenerationRequest): number {
  const texts = request.items.map((item) => {
    if (item.type === 'tool-call') return item.arguments
    if (item.type === 'native') return ''
    return item.type === 'reasoning' ? item.text : readText(item.parts)
  })
  return [request.instructions ?? '', ...texts].reduce(
    (count, text) => count + toWords(text).length,
    0,
  )
}

function failure(when: string): AppError {
  return new AppError('upstream_error', `The demo upstream failed ${when}, as requested.`)
}
