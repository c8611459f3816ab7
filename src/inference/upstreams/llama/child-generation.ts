import type {
  CallChunk,
  ChatWrapper,
  GenerateAnswer,
  GenerateOptions,
  Grammar,
  ResponseChunk,
  Sequence,
  Token,
} from './binding.ts'
import { batchTokens, type LoadedModel } from './child-model.ts'
import { gbnfSchema } from './gbnf-schema.ts'
import type { Ending, Piece, Prompt, TokenCounts } from './wire.ts'

export type Run = {
  readonly signal: AbortSignal
  /** The prompt is legal. */
  begun(): void
  tell(piece: Piece): void
  /** Resolves when there is room for a piece; rejects when the signal aborts. */
  room(): Promise<void>
}

/** Templates may put a mark or two behind the prompt once the model begins. */
const spareTokens = 16
/** So many of the last tokens count for the penalties of a request. */
const penaltyTokens = 256
/** No token stands for more of a text; a longer prompt would only keep the others waiting. */
const charsPerTokenMax = 64
/** What a template says about a conversation that it does not take. */
const messageCharsMax = 300

/** Makes the model go on. Rejects with the signal's reason, or with what the package failed with. */
export async function generate(loaded: LoadedModel, prompt: Prompt, run: Run): Promise<Ending> {
  const chatWrapper = prompt.mustCall ? demandCall(loaded.chatWrapper) : loaded.chatWrapper
  const rendered = render(loaded, prompt)
  if (!Array.isArray(rendered)) return rendered
  const roomTokens = loaded.contextTokens - rendered.length - spareTokens
  if (roomTokens < 1) return overflow(rendered.length, loaded.contextTokens)
  const grammar = await grammarOf(loaded, prompt)
  if (grammar instanceof Error) return refusal(grammar)
  run.begun()

  const sequence = loaded.takeSequence(rendered)
  const counts = { input: rendered.length, cached: 0, output: 0, thoughts: 0 }
  const unpace = pace(sequence, run, () => counts.output++)
  const chat = new loaded.binding.LlamaChat({ contextSequence: sequence, chatWrapper })
  try {
    counts.cached = await readPrompt(sequence, rendered, run.signal)
    const options = {
      ...optionsOf(prompt, roomTokens),
      ...listeners(prompt, run, counts),
      ...(grammar === null ? {} : { grammar }),
      signal: run.signal,
    }
    const answer = await chat.generateResponse([...prompt.history], options)
    return finished(answer, prompt, counts)
  } catch (error) {
    // What it holds after a failure cannot be told.
    if (!run.signal.aborted) await sequence.adaptStateToTokens([], false)
    throw error
  } finally {
    chat.dispose()
    unpace()
    loaded.giveBack(sequence)
  }
}

export function countPrompt(loaded: LoadedModel, prompt: Prompt): Ending {
  const rendered = render(loaded, prompt)
  return Array.isArray(rendered) ? { type: 'counted', tokens: rendered.length } : rendered
}

/** The prompt as the model reads it. Templates throw at a conversation that they do not take. */
function render(loaded: LoadedModel, { history, functions }: Prompt): Token[] | Ending {
  const chars = JSON.stringify(history).length
  const tokensAtLeast = Math.floor(chars / charsPerTokenMax)
  if (tokensAtLeast > loaded.contextTokens) return overflow(tokensAtLeast, loaded.contextTokens)
  try {
    const state = loaded.chatWrapper.generateContextState({
      chatHistory: history,
      ...(functions === null ? {} : { availableFunctions: paramsInForm(functions) }),
    })
    return state.contextText.tokenize(loaded.model.tokenizer)
  } catch (error) {
    return refusal(error)
  }
}

/** Reads all of a prompt but its last token, and tells how much of it was known. */
async function readPrompt(
  sequence: Sequence,
  tokens: Token[],
  signal: AbortSignal,
): Promise<number> {
  const end = tokens.length - 1
  await sequence.adaptStateToTokens(tokens.slice(0, end), false)
  const cached = sequence.nextTokenIndex
  for (let at = cached; at < end; at += batchTokens) {
    signal.throwIfAborted()
    await sequence.evaluateWithoutGeneratingNewTokens(
      tokens.slice(at, Math.min(at + batchTokens, end)),
    )
  }
  signal.throwIfAborted()
  return cached
}

/**
 * Makes a sequence wait before each token until there is room for what comes of it. The package tells
 * tokens by callbacks, which cannot hold it up; the sequence that we give it can.
 */
function pace(sequence: Sequence, run: Run, count: () => void): () => void {
  const { evaluate } = sequence
  sequence.evaluate = async function* (tokens, options) {
    const evaluation = evaluate.call(sequence, tokens, options)
    try {
      let replacement: Token | Token[] | undefined
      for (;;) {
        await run.room()
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

/** A way to write prompts after which the model has nothing else to do than to call. */
function demandCall(chatWrapper: ChatWrapper): ChatWrapper {
  const demanding: ChatWrapper = Object.create(chatWrapper)
  demanding.generateContextState = (options) => {
    const { contextText, stopGenerationTriggers } = chatWrapper.generateContextState(options)
    const functionCall = { initiallyEngaged: true, disengageInitiallyEngaged: [] }
    return { contextText, stopGenerationTriggers, functionCall }
  }
  return demanding
}

function optionsOf({ sampling, stopTexts, functions, callsMax }: Prompt, roomTokens: number) {
  const { temperature, topP, topK, seed, thoughtTokens } = sampling
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
    ...(thoughtTokens === undefined ? {} : { budgets: { thoughtTokens } }),
    ...(stopTexts.length === 0 ? {} : { customStopTriggers: stopTexts }),
    ...(functions === null
      ? {}
      : { functions: paramsInForm(functions), maxParallelFunctionCalls: callsMax }),
  }
}

function paramsInForm(functions: NonNullable<Prompt['functions']>): Prompt['functions'] & object {
  return Object.fromEntries(
    Object.entries(functions).map(([name, { params, ...rest }]) => [
      name,
      { ...rest, ...(params === undefined ? {} : { params: gbnfSchema(params) }) },
    ]),
  )
}

function listeners({ functions }: Prompt, run: Run, counts: { thoughts: number }) {
  const onResponseChunk = ({ segmentType, text, tokens }: ResponseChunk) => {
    if (segmentType === 'thought') counts.thoughts += tokens.length
    if (text !== '') run.tell({ type: segmentType ?? 'text', text })
  }
  if (functions === null) return { onResponseChunk }
  let call = 0
  let hasArguments = false
  /** The grammar lets a model put empty space behind its arguments, which are complete without. */
  let heldSpace = ''
  return {
    onResponseChunk,
    onFunctionCallParamsChunk({ functionName, paramsChunk }: CallChunk) {
      const text = heldSpace + paramsChunk
      heldSpace = text.trim() === '' ? text : ''
      if (heldSpace !== '' || text === '') return
      hasArguments = true
      run.tell({ type: 'call', call, name: functionName, text })
    },
    onFunctionCall({ functionName }: { functionName: string }) {
      if (!hasArguments) run.tell({ type: 'call', call, name: functionName, text: '{}' })
      hasArguments = false
      heldSpace = ''
      call++
    },
  }
}

async function grammarOf(loaded: LoadedModel, { form }: Prompt): Promise<Grammar | null | Error> {
  if (form.type === 'text') return null
  if (form.type === 'json-object') return loaded.llama.getGrammarFor('json')
  try {
    return await loaded.llama.createGrammarForJsonSchema(gbnfSchema(form.schema))
  } catch (error) {
    return new Error('The form of the answer cannot be demanded of this model.', { cause: error })
  }
}

function finished(
  { metadata }: GenerateAnswer,
  { stopTexts }: Prompt,
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
      const stopText = stopTexts.find((text) => text === metadata.customStopTrigger?.join(''))
      const which = stopText === undefined ? {} : { stopText }
      return { type: 'finished', reason: 'stop-sequence', ...which, tokens }
    }
    default:
      return { type: 'finished', reason: 'stop', tokens }
  }
}

function overflow(tokens: number, contextTokens: number): Ending {
  const message = `The input has at least ${tokens} tokens, and the context of this model ${contextTokens}, answer included.`
  return { type: 'refused', reason: 'overflow', message }
}

function refusal(error: unknown): Ending {
  const message = error instanceof Error ? error.message : String(error)
  return { type: 'refused', reason: 'prompt', message: message.slice(0, messageCharsMax) }
}
