/**
 * A worker thread that runs real tokenizers. Loading a vocabulary takes a third of a second and
 * 100 MB, and counting a long text takes noticeable time, so neither happens on the serving thread.
 */

import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { messageOf } from '#lib/error-message.ts'
import { cutRuns } from './cut-text.ts'
import { builtInTokenizer, type CountReport, type CountRequest } from './tokenizers.ts'

/** Tokenizers cache pieces of texts; the caches are cleared after this many characters. */
const cacheCharsMax = 8_388_608

type TextCounter = { count(text: string): number; clearCache(): void }

declare const self: Worker

const loaded = new Map<string, Promise<TextCounter>>()
let cachedChars = 0

self.onmessage = async ({ data }: MessageEvent<CountRequest>) => {
  const { id, tokenizer, texts } = data
  try {
    report(count(id, await load(tokenizer), texts))
  } catch (error) {
    const reason = messageOf(error)
    report({ id, type: 'failed', reason })
  }
}

function count(id: number, counter: TextCounter, texts: readonly string[]): CountReport {
  try {
    return { id, type: 'counted', tokens: texts.map(counter.count) }
  } catch {
    return { id, type: 'uncountable' }
  } finally {
    cachedChars += texts.reduce((chars, text) => chars + text.length, 0)
    if (cachedChars >= cacheCharsMax) {
      cachedChars = 0
      counter.clearCache()
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
  // A failed load is retried by the next request.
  loading.catch(() => loaded.delete(tokenizer))
  return loading
}

async function loadBuiltIn(): Promise<TextCounter> {
  const { countTokens, clearMergeCache } = await import('gpt-tokenizer/encoding/o200k_base')
  // Special tokens in a text are counted as plain text.
  const options = { disallowedSpecial: new Set<string>() }
  return {
    count: (text) =>
      cutRuns(text).reduce((tokens, piece) => tokens + countTokens(piece, options), 0),
    clearCache: clearMergeCache,
  }
}

async function loadFile(path: string): Promise<TextCounter> {
  const { Tokenizer } = await import('@huggingface/tokenizers')
  const settingsPath = join(dirname(path), 'tokenizer_config.json')
  const settings = existsSync(settingsPath) ? await Bun.file(settingsPath).json() : {}
  const tokenizer = new Tokenizer(await Bun.file(path).json(), settings)
  const options = { add_special_tokens: false }
  return { count: (text) => tokenizer.encode(text, options).ids.length, clearCache() {} }
}
