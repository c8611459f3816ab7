import { canOpen } from '#lib/descriptors.ts'
import type { Log } from '#telemetry/log.ts'
import { cutText } from './cut-text.ts'
import type { CountReport, CountRequest } from './thread-messages.ts'

/** The real tokenizers, in a thread of their own that is started when the first is needed. */
export type Tokenizers = {
  /** Whether a tokenizer is loaded, so that counting costs only the counting. */
  isReady(tokenizer: string): boolean
  /** The tokens of each text; null where the tokenizer cannot tell them. It never rejects. */
  count(tokenizer: string, texts: readonly string[]): Promise<readonly number[] | null>
  close(): void
}

/** What is handed over at once, so that a long request does not hold up the short ones behind it. */
const batchCharsMax = 131_072
/** What may wait for the thread; what is more is not counted here. */
const waitingCharsMax = 16_777_216
/** What a thread opens as it starts, and some more. */
const threadDescriptors = 16
/** A tokenizer that failed is left alone for so long. */
const restMs = 60_000

export function createTokenizers({ log }: { log: Pick<Log, 'warn'> }): Tokenizers {
  const waiting = new Map<number, (report: CountReport) => void>()
  const ready = new Set<string>()
  const restUntilMs = new Map<string, number>()
  let thread: Worker | null = null
  let lastId = 0
  let waitingChars = 0
  let isClosed = false

  const lose = (reason: string) => {
    thread?.terminate()
    thread = null
    ready.clear()
    for (const [id, report] of [...waiting]) report({ id, type: 'failed', reason })
  }
  const start = (): Worker => {
    const started = new Worker(new URL('./tokenizer-thread.ts', import.meta.url))
    started.unref()
    started.onmessage = ({ data }: MessageEvent<CountReport>) => waiting.get(data.id)?.(data)
    started.onerror = ({ message }) => lose(message)
    return started
  }
  const ask = (tokenizer: string, texts: readonly string[]): Promise<CountReport> =>
    new Promise((resolve) => {
      const id = ++lastId
      waiting.set(id, (report) => {
        waiting.delete(id)
        resolve(report)
      })
      // Without descriptors for its thread Bun would end the process.
      if (thread === null && !canOpen(threadDescriptors)) {
        waiting.get(id)?.({ id, type: 'failed', reason: 'there are no descriptors for its thread' })
        return
      }
      thread ??= start()
      const request: CountRequest = { id, tokenizer, texts }
      thread.postMessage(request)
    })
  const countBatches = async (tokenizer: string, texts: readonly string[]) => {
    const tokens = texts.map(() => 0)
    for (const batch of batchesOf(texts)) {
      const report = await ask(
        tokenizer,
        batch.map(({ text }) => text),
      )
      if (report.type === 'failed' && !isClosed) {
        restUntilMs.set(tokenizer, performance.now() + restMs)
        log.warn('a tokenizer does not work', { tokenizer, reason: report.reason })
      }
      if (report.type !== 'counted') return null
      ready.add(tokenizer)
      batch.forEach(({ at }, index) => {
        tokens[at] = (tokens[at] ?? 0) + (report.tokens[index] ?? 0)
      })
    }
    return tokens
  }

  return {
    isReady: (tokenizer) => ready.has(tokenizer),
    async count(tokenizer, texts) {
      if (isClosed || performance.now() < (restUntilMs.get(tokenizer) ?? 0)) return null
      const chars = texts.reduce((sum, text) => sum + text.length, 0)
      if (waitingChars + chars > waitingCharsMax) return null
      waitingChars += chars
      try {
        return await countBatches(tokenizer, texts)
      } finally {
        waitingChars -= chars
      }
    },
    close() {
      isClosed = true
      lose('The server is stopping.')
    },
  }
}

/** A text, or a part of one, by the place of the text. */
type Piece = { readonly at: number; readonly text: string }

function batchesOf(texts: readonly string[]): Piece[][] {
  const batches: Piece[][] = []
  let open: Piece[] = []
  let chars = 0
  texts.forEach((whole, at) => {
    for (const text of cutText(whole, batchCharsMax)) {
      if (open.length > 0 && chars + text.length > batchCharsMax) {
        batches.push(open)
        open = []
        chars = 0
      }
      open.push({ at, text })
      chars += text.length
    }
  })
  return open.length === 0 ? batches : [...batches, open]
}
