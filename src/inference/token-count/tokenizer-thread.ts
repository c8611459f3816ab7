/**
 * A worker thread that counts with real tokenizers. A vocabulary takes a third of a second to load
 * and 100 MB to hold, and a long text takes its time, so neither happens on the serving thread.
 */
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { cutRuns } from './cut-text.ts'
import { builtInTokenizer, type CountReport, type CountRequest } from './thread-messages.ts'

/** What a tokenizer remembers of texts holds on to them, so it is made to forget now and then. */
const charsUntilForgotten = 8_388_608

type TextCounter = { count(text: string): number; forget(): void }

declare const self: Worker

const loaded = new Map<string, Promise<TextCounter>>()
let charsRemembered = 0

self.onmessage = async ({ data }: MessageEvent<CountRequest>) => {
  const { id, tokenizer, texts } = data
  try {
    report(count(id, await load(tokenizer), texts))
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    report({ id, type: 'failed', reason })
  }
}

function count(id: number, counter: TextCounter, texts: readonly string[]): CountReport {
  try {
    return { id, type: 'counted', tokens: texts.map(counter.count) }
  } catch {
    return { id, type: 'uncountable' }
  } finally {
    charsRemembered += texts.reduce((chars, text) => chars + text.length, 0)
    if (charsRemembered >= charsUntilForgotten) {
      charsRemembered = 0
      counter.forget()
    }
  }
}

function report(message: CountReport): void {
  self.postMessage(message)
}

function load(tokenizer: string): Promise<TextCounter> {
  const known = loaded.get(tokenizer)
  if (known !== undefined) return known
  const loading = tokenizer === builtInTokenizer ? loadBuiltIn() : loadFile(tokenizer)
  loaded.set(tokenizer, loading)
  // A file that could not be read may be there the next time.
  loading.catch(() => loaded.delete(tokenizer))
  return loading
}

async function loadBuiltIn(): Promise<TextCounter> {
  const { countTokens, clearMergeCache } = await import('gpt-tokenizer/encoding/o200k_base')
  // A text that spells a special token is still a text.
  const options = { disallowedSpecial: new Set<string>() }
  return {
    count: (text) =>
      cutRuns(text).reduce((tokens, piece) => tokens + countTokens(piece, options), 0),
    forget: clearMergeCache,
  }
}

async function loadFile(path: string): Promise<TextCounter> {
  const { Tokenizer } = await import('@huggingface/tokenizers')
  const settingsPath = join(dirname(path), 'tokenizer_config.json')
  const settings = existsSync(settingsPath) ? await Bun.file(settingsPath).json() : {}
  const tokenizer = new Tokenizer(await Bun.file(path).json(), settings)
  const options = { add_special_tokens: false }
  return { count: (text) => tokenizer.encode(text, options).ids.length, forget() {} }
}
