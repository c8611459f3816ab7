import type { CancelSignal } from '#lib/cancellation.ts'
import type { JsonObject } from '#lib/json.ts'
import type { ChatFunction, ChatItem } from './wire.ts'

/** The parts of the package that Sluice uses. It is not a dependency, so its types are unavailable. */
export type Binding = {
  getLlama(options: {
    build: 'never'
    skipDownload: true
    progressLogs: false
    gpu: 'auto' | false
    maxThreads: number
    logLevel: 'error'
    logger: (level: string, message: string) => void
  }): Promise<Llama>
  readonly InsufficientMemoryError: new () => Error
  resolveChatWrapper(model: Model): ChatWrapper
  readonly LlamaChat: new (options: {
    contextSequence: Sequence
    chatWrapper: ChatWrapper
  }) => LlamaChat
}

export type Llama = {
  /** The GPU backend in use. */
  readonly gpu: string | false
  dispose(): Promise<void>
  loadModel(options: { modelPath: string }): Promise<Model>
  createGrammarForJsonSchema(schema: JsonObject): Promise<Grammar>
  getGrammarFor(type: 'json'): Promise<Grammar>
}

export type Model = {
  readonly tokenizer: Tokenizer
  readonly trainContextSize: number
  createContext(options: {
    sequences: number
    contextSize: { max: number }
    batchSize: number
    threads: number
  }): Promise<Context>
}

type Context = {
  /** The context size of each sequence, in tokens. */
  readonly contextSize: number
  getSequence(): Sequence
}

export type Token = number & { readonly __token: never }
type Tokenizer = { readonly __tokenizer: never }
export type Grammar = { readonly __grammar: never }

type Evaluation = AsyncGenerator<Token, void, Token | Token[] | undefined>

export type Sequence = {
  readonly nextTokenIndex: number
  evaluate(tokens: Token[], options?: object): Evaluation
  evaluateWithoutGeneratingNewTokens(tokens: Token[]): Promise<void>
  /** Keeps the common prefix of its state and the tokens. */
  adaptStateToTokens(tokens: Token[], allowShift: boolean): Promise<void>
  compareContextTokens(tokens: Token[]): { firstDifferentIndex: number }
}

export type ChatWrapper = {
  generateContextState(options: ContextStateOptions): ContextState
}

type ContextStateOptions = {
  chatHistory: readonly ChatItem[]
  availableFunctions?: Readonly<Record<string, ChatFunction>>
}

type ContextState = {
  contextText: { tokenize(tokenizer: Tokenizer): Token[] }
  stopGenerationTriggers: readonly unknown[]
  functionCall?: { initiallyEngaged: boolean; disengageInitiallyEngaged: readonly unknown[] }
}

type LlamaChat = {
  generateResponse(history: ChatItem[], options: GenerateOptions): Promise<GenerateResult>
  dispose(): void
}

export type GenerateOptions = {
  signal: CancelSignal
  maxTokens: number
  temperature: number
  topP?: number
  topK?: number
  seed: number
  repeatPenalty:
    | false
    | { penalty: 1; lastTokens: number; presencePenalty: number; frequencyPenalty: number }
  budgets?: { thoughtTokens: number }
  customStopTriggers?: readonly string[]
  grammar?: Grammar
  functions?: Readonly<Record<string, ChatFunction>>
  maxParallelFunctionCalls?: number
  onResponseChunk(chunk: ResponseChunk): void
  onFunctionCallParamsChunk?(chunk: CallChunk): void
  onFunctionCall?(call: { functionName: string }): void
}

export type ResponseChunk = {
  readonly segmentType?: 'thought' | 'comment'
  readonly text: string
  readonly tokens: readonly Token[]
}

export type CallChunk = {
  readonly functionName: string
  readonly paramsChunk: string
}

export type GenerateResult = {
  readonly metadata: {
    readonly stopReason:
      | 'eogToken'
      | 'stopGenerationTrigger'
      | 'customStopTrigger'
      | 'functionCalls'
      | 'maxTokens'
      | 'abort'
    readonly customStopTrigger?: readonly unknown[]
  }
}
