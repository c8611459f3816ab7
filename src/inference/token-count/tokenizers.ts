import { canOpen } from '#lib/descriptors.ts'
import { threadProgram } from '#lib/own-program.ts'
import { orAfter } from '#lib/time-limit.ts'
import type { Log } from '#telemetry/log.ts'
import { cutText } from './cut-text.ts'
import {
  type ClassTokens,
  charsOf,
  type MeasuredRequest,
  type MeasuredText,
  tokenizedTokens,
} from './measured-text.ts'

/** OpenAI's vocabulary of 200,000 entries, the closest to most newer ones. */
export const builtInTokenizer = 'o200k'

/** What the worker thread of `tokenizer-thread.ts` receives. */
export type CountRequest = {
  id: number
  /** `builtInTokenizer`, or the path of a `tokenizer.json`. */
  tokenizer: string
  texts: readonly string[]
}

export type CountReport =
  | { id: number; type: 'counted'; tokens: readonly number[] }
  /** The tokenizer works, but cannot count these texts. */
  | { id: number; type: 'uncountable' }
  | { id: number; type: 'failed'; reason: string }

/** Real tokenizers, in a worker thread that is started on first use. */
export type Tokenizers = {
  /** Whether a tokenizer is loaded. */
  isReady(tokenizer: string): boolean
  /** The tokens of each text; null when the tokenizer fails. Never rejects. */
  count(tokenizer: string, texts: readonly string[]): Promise<readonly number[] | null>
  close(): void
}

/** Long requests are sent in batches, so that they do not block short ones. */
const batchCharsMax = 131_072
/** Characters that may wait for the thread; requests beyond it are not counted. */
const queuedCharsMax = 16_777_216
/** File descriptors that a thread opens at its start, with a reserve. */
const threadDescriptors = 16
/** A tokenizer that failed is not used for this long. */
const failurePauseMs = 60_000

export function createTokenizers({ log }: { log: Pick<Log, 'warn'> }): Tokenizers {
  const pending = new Map<number, (report: CountReport) => void>()
  const ready = new Set<string>()
  const pausedUntilMs = new Map<string, number>()
  let thread: Worker | null = null
  let lastId = 0
  let queuedChars = 0
  let isClosed = false

  const terminate = (reason: string) => {
    thread?.terminate()
    thread = null
    ready.clear()
    for (const [id, report] of [...pending]) report({ id, type: 'failed', reason })
  }
  const startThread = (): Worker => {
    const started = new Worker(threadProgram(new URL('./tokenizer-thread.ts', import.meta.url)))
    started.unref()
    started.onmessage = ({ data }: MessageEvent<CountReport>) => pending.get(data.id)?.(data)
    started.onerror = ({ message }) => terminate(message)
    return started
  }
  const requestCount = (tokenizer: string, texts: readonly string[]): Promise<CountReport> =>
    new Promise((resolve) => {
      const id = ++lastId
      pending.set(id, (report) => {
        pending.delete(id)
        resolve(report)
      })
      // Bun ends the process when it cannot open descriptors for a thread.
      if (thread === null && !canOpen(threadDescriptors)) {
        pending.get(id)?.({ id, type: 'failed', reason: 'no file descriptors for its thread' })
        return
      }
      thread ??= startThread()
      const request: CountRequest = { id, tokenizer, texts }
      thread.postMessage(request)
    })
  const countBatches = async (tokenizer: string, texts: readonly string[]) => {
    const tokens = texts.map(() => 0)
    for (const batch of batchesOf(texts)) {
      const report = await requestCount(
        tokenizer,
        batch.map(({ text }) => text),
      )
      if (report.type === 'failed' && !isClosed) {
        pausedUntilMs.set(tokenizer, performance.now() + failurePauseMs)
        log.warn('tokenizer failed', { tokenizer, reason: report.reason })
      }
      if (report.type !== 'counted') return null
      ready.add(tokenizer)
      batch.forEach(({ textIndex }, index) => {
        tokens[textIndex] = (tokens[textIndex] ?? 0) + (report.tokens[index] ?? 0)
      })
    }
    return tokens
  }

  return {
    isReady: (tokenizer) => ready.has(tokenizer),
    async count(tokenizer, texts) {
      if (isClosed || performance.now() < (pausedUntilMs.get(tokenizer) ?? 0)) return null
      const chars = texts.reduce((sum, text) => sum + text.length, 0)
      if (queuedChars + chars > queuedCharsMax) return null
      queuedChars += chars
      try {
        return await countBatches(tokenizer, texts)
      } finally {
        queuedChars -= chars
      }
    },
    close() {
      isClosed = true
      terminate('The server is stopping.')
    },
  }
}

/** A text or a part of one. */
type Piece = { readonly textIndex: number; readonly text: string }

function batchesOf(texts: readonly string[]): Piece[][] {
  const batches: Piece[][] = []
  let batch: Piece[] = []
  let chars = 0
  texts.forEach((whole, textIndex) => {
    for (const text of cutText(whole, batchCharsMax)) {
      if (batch.length > 0 && chars + text.length > batchCharsMax) {
        batches.push(batch)
        batch = []
        chars = 0
      }
      batch.push({ textIndex, text })
      chars += text.length
    }
  })
  return batch.length === 0 ? batches : [...batches, batch]
}

/** With less time than this, no upstream is asked and no tokenizer is loaded. */
export const slowCountMinMs = 50
/** Characters that a loaded tokenizer counts within a millisecond or two. */
const quickCharsMax = 16_384

/** The tokens of a request; null when they cannot be counted within `limitMs`. Never rejects. */
export async function countByTokenizer(
  { tokenizers, tokenizer }: { tokenizers: Tokenizers; tokenizer: string },
  measured: MeasuredRequest,
  limitMs: number,
): Promise<ClassTokens | null> {
  const missing = measured.texts.filter(({ counts }) => !counts.tokens?.has(tokenizer))
  if (missing.length > 0) {
    const isSlow = !tokenizers.isReady(tokenizer) || charsOf(missing) > quickCharsMax
    if (limitMs <= 0 || (limitMs < slowCountMinMs && isSlow)) return null
    // A result that is late for this request is cached for the next one.
    const counting = countMissing(tokenizers, tokenizer, missing)
    if (!(await orAfter(counting, limitMs, false))) return null
  }
  return tokenizedTokens(measured, tokenizer)
}

async function countMissing(
  tokenizers: Tokenizers,
  tokenizer: string,
  missing: readonly MeasuredText[],
): Promise<boolean> {
  const tokens = await tokenizers.count(
    tokenizer,
    missing.map(({ text }) => text),
  )
  if (tokens === null) return false
  missing.forEach(({ counts }, at) => {
    counts.tokens ??= new Map()
    counts.tokens.set(tokenizer, tokens[at] ?? 0)
  })
  return true
}
