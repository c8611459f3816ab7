import { messageOf } from '#lib/error-message.ts'
import type {
  CallChunk,
  ChatWrapper,
  GenerateOptions,
  GenerateResult,
  Grammar,
  ResponseChunk,
  Sequence,
  Token,
} from './binding.ts'
import { batchTokens, type LoadedModel } from './child-model.ts'
import { gbnfSchema } from './gbnf-schema.ts'
import type { Ending, Piece, Prompt, TokenCounts } from './wire.ts'

export type GenerationOutput = {
  readonly signal: AbortSignal
  /** The prompt is valid. */
  begin(): void
  emit(piece: Piece): void
  /** Resolves when another piece may be sent; rejects when the signal aborts. */
  untilReady(): Promise<void>
}

/** Templates may add a few tokens after the prompt when the generation begins. */
const reservedTokens = 16
/** The number of latest tokens to which the penalties of a request apply. */
const penaltyTokens = 256
/** The longest text of a token; a prompt that exceeds the context at this ratio is not tokenized. */
const charsPerTokenMax = 64
/** The longest error message of a template. */
const messageCharsMax = 300

/** Generates a continuation. Rejects with the signal's reason or the package's error. */
export async function generate(
  loaded: LoadedModel,
  prompt: Prompt,
  output: GenerationOutput,
): Promise<Ending> {
  const chatWrapper = prompt.mustCall ? forceCall(loaded.chatWrapper) : loaded.chatWrapper
  const rendered = render(loaded, prompt)
  if (!Array.isArray(rendered)) return rendered
  const freeTokens = loaded.contextTokens - rendered.length - reservedTokens
  if (freeTokens < 1) return overflow(rendered.length, loaded.contextTokens)
  const grammar = await createGrammar(loaded, prompt)
  if (grammar instanceof Error) return refusal(grammar)
  output.begin()

  const sequence = loaded.acquireSequence(rendered)
  const counts = { input: rendered.length, cached: 0, output: 0, thinking: 0 }
  const removeBackpressure = applyBackpressure(sequence, output, () => counts.output++)
  const chat = new loaded.binding.LlamaChat({ contextSequence: sequence, chatWrapper })
  try {
    counts.cached = await processPrompt(sequence, rendered, output.signal)
    const options = {
      ...optionsOf(prompt, freeTokens),
      ...chunkHandlers(prompt, output, counts),
      ...(grammar === null ? {} : { grammar }),
      signal: output.signal,
    }
    const response = await chat.generateResponse([...prompt.history], options)
    return endingOf(response, prompt, counts)
  } catch (error) {
    // The state of the sequence after a failure is unknown.
    if (!output.signal.aborted) await sequence.adaptStateToTokens([], false)
    throw error
  } finally {
    chat.dispose()
    removeBackpressure()
    loaded.releaseSequence(sequence)
  }
}

export function countPrompt(loaded: LoadedModel, prompt: Prompt): Ending {
  const rendered = render(loaded, prompt)
  return Array.isArray(rendered) ? { type: 'counted', tokens: rendered.length } : rendered
}

/** The tokens of the prompt. Templates throw for a conversation that they do not support. */
function render(loaded: LoadedModel, { history, functions }: Prompt): Token[] | Ending {
  const chars = JSON.stringify(history).length
  const tokensAtLeast = Math.floor(chars / charsPerTokenMax)
  if (tokensAtLeast > loaded.contextTokens) return overflow(tokensAtLeast, loaded.contextTokens)
  try {
    const state = loaded.chatWrapper.generateContextState({
      chatHistory: history,
      ...(functions === null ? {} : { availableFunctions: withGrammarParams(functions) }),
    })
    return state.contextText.tokenize(loaded.model.tokenizer)
  } catch (error) {
    return refusal(error)
  }
}

/** Processes a prompt without its last token; returns how many tokens were cached. */
async function processPrompt(
  sequence: Sequence,
  tokens: Token[],
  signal: AbortSignal,
): Promise<number> {
  const end = tokens.length - 1
  await sequence.adaptStateToTokens(tokens.slice(0, end), false)
  const cached = sequence.nextTokenIndex
  for (let start = cached; start < end; start += batchTokens) {
    signal.throwIfAborted()
    await sequence.evaluateWithoutGeneratingNewTokens(
      tokens.slice(start, Math.min(start + batchTokens, end)),
    )
  }
  signal.throwIfAborted()
  return cached
}

/**
 * Makes a sequence wait before each token until the gateway can accept more pieces. The package emits
 * tokens through callbacks, which cannot delay it; the sequence that it reads from can.
 */
function applyBackpressure(
  sequence: Sequence,
  output: GenerationOutput,
  count: () => void,
): () => void {
  const { evaluate } = sequence
  sequence.evaluate = async function* (tokens, options) {
    const evaluation = evaluate.call(sequence, tokens, options)
    try {
      let replacement: Token | Token[] | undefined
      for (;;) {
        await output.untilReady()
        const next = await evaluation.next(replacement)
        if (next.done) return
        count()
        replacement = yield next.value
      }
    } finally {
      await evaluation.return()
    }
  }
  return () => {
    sequence.evaluate = evaluate
  }
}

/** A chat wrapper whose prompts end within a function call. */
function forceCall(chatWrapper: ChatWrapper): ChatWrapper {
  const forcing: ChatWrapper = Object.create(chatWrapper)
  forcing.generateContextState = (options) => {
    const { contextText, stopGenerationTriggers } = chatWrapper.generateContextState(options)
    const functionCall = { initiallyEngaged: true, disengageInitiallyEngaged: [] }
    return { contextText, stopGenerationTriggers, functionCall }
  }
  return forcing
}

function optionsOf({ sampling, stopSequences, functions, callsMax }: Prompt, roomTokens: number) {
  const { temperature, topP, topK, seed, thinkingTokens } = sampling
  const { presencePenalty = 0, frequencyPenalty = 0 } = sampling
  const isPenalized = presencePenalty !== 0 || frequencyPenalty !== 0
  const repeatPenalty: GenerateOptions['repeatPenalty'] = isPenalized
    ? { penalty: 1, lastTokens: penaltyTokens, presencePenalty, frequencyPenalty }
    : false
  return {
    temperature,
    seed,
    repeatPenalty,
    maxTokens: Math.min(sampling.maxTokens ?? roomTokens, roomTokens),
    ...(topP === undefined ? {} : { topP }),
    ...(topK === undefined ? {} : { topK }),
    ...(thinkingTokens === undefined ? {} : { budgets: { thoughtTokens: thinkingTokens } }),
    ...(stopSequences.length === 0 ? {} : { customStopTriggers: stopSequences }),
    ...(functions === null
      ? {}
      : { functions: withGrammarParams(functions), maxParallelFunctionCalls: callsMax }),
  }
}

function withGrammarParams(
  functions: NonNullable<Prompt['functions']>,
): Prompt['functions'] & object {
  return Object.fromEntries(
    Object.entries(functions).map(([name, { params, ...rest }]) => [
      name,
      { ...rest, ...(params === undefined ? {} : { params: gbnfSchema(params) }) },
    ]),
  )
}

function chunkHandlers(
  { functions }: Prompt,
  output: GenerationOutput,
  counts: { thinking: number },
) {
  const onResponseChunk = ({ segmentType, text, tokens }: ResponseChunk) => {
    if (segmentType === 'thought') counts.thinking += tokens.length
    if (text !== '') output.emit({ type: segmentType ?? 'text', text })
  }
  if (functions === null) return { onResponseChunk }
  let call = 0
  let hasArguments = false
  /** Whitespace that the grammar permits after the arguments, which are complete without it. */
  let heldSpace = ''
  return {
    onResponseChunk,
    onFunctionCallParamsChunk({ functionName, paramsChunk }: CallChunk) {
      const text = heldSpace + paramsChunk
      heldSpace = text.trim() === '' ? text : ''
      if (heldSpace !== '' || text === '') return
      hasArguments = true
      output.emit({ type: 'call', call, name: functionName, text })
    },
    onFunctionCall({ functionName }: { functionName: string }) {
      if (!hasArguments) output.emit({ type: 'call', call, name: functionName, text: '{}' })
      hasArguments = false
      heldSpace = ''
      call++
    },
  }
}

async function createGrammar(
  loaded: LoadedModel,
  { format }: Prompt,
): Promise<Grammar | null | Error> {
  if (format.type === 'text') return null
  if (format.type === 'json-object') return loaded.llama.getGrammarFor('json')
  try {
    return await loaded.llama.createGrammarForJsonSchema(gbnfSchema(format.schema))
  } catch (error) {
    return new Error('This model cannot be constrained to the output format.', { cause: error })
  }
}

function endingOf(
  { metadata }: GenerateResult,
  { stopSequences }: Prompt,
  tokens: TokenCounts,
): Ending {
  switch (metadata.stopReason) {
    case 'maxTokens':
      return { type: 'finished', reason: 'length', tokens }
    case 'functionCalls':
      return { type: 'finished', reason: 'tool-calls', tokens }
    case 'abort':
      return { type: 'stopped' }
    case 'customStopTrigger': {
      const trigger = metadata.customStopTrigger?.join('')
      const stopSequence = stopSequences.find((text) => text === trigger)
      const field = stopSequence === undefined ? {} : { stopSequence }
      return { type: 'finished', reason: 'stop-sequence', ...field, tokens }
    }
    default:
      return { type: 'finished', reason: 'stop', tokens }
  }
}

function overflow(tokens: number, contextTokens: number): Ending {
  const message = `The input has at least ${tokens} tokens, but the context of this model has ${contextTokens}, including the output.`
  return { type: 'refused', reason: 'overflow', message }
}

function refusal(error: unknown): Ending {
  const message = messageOf(error)
  return { type: 'refused', reason: 'prompt', message: message.slice(0, messageCharsMax) }
}
