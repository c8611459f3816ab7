import type { TokenLogprob } from '#inference/events.ts'
import { isRecord } from '#lib/json.ts'
import type { ChatTokenLogprob } from './wire.ts'

/** The log probabilities of a chunk's text; entries that make no sense are left out. */
export function readLogprobs(logprobs: unknown): TokenLogprob[] {
  if (!isRecord(logprobs) || !Array.isArray(logprobs['content'])) return []
  return logprobs['content'].flatMap((entry: unknown) => {
    const token = readToken(entry)
    if (token === null) return []
    const top = isRecord(entry) && Array.isArray(entry['top_logprobs']) ? entry['top_logprobs'] : []
    return [{ ...token, top: top.flatMap((other: unknown) => readToken(other) ?? []) }]
  })
}

function readToken(entry: unknown): Omit<TokenLogprob, 'top'> | null {
  if (!isRecord(entry)) return null
  const { token, logprob, bytes }: ChatTokenLogprob = entry
  if (typeof token !== 'string' || typeof logprob !== 'number') return null
  return { token, logprob, bytes: readBytes(bytes) ?? [...new TextEncoder().encode(token)] }
}

function readBytes(bytes: unknown): number[] | null {
  return Array.isArray(bytes) && bytes.every((byte) => typeof byte === 'number') ? bytes : null
}
