import type { TokenLogprob } from '#inference/events.ts'
import { isRecord, type JsonObject } from '#lib/json.ts'

/** A string field of an upstream's JSON; empty where it is absent or of another type. */
export function readString(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** A string field that carries data; null where it is absent, empty or of another type. */
export function readText(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null
}

export function readNumber(value: unknown): number | null {
  return typeof value === 'number' ? value : null
}

/** A token count; null where it is absent or not a valid count. */
export function readCount(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : null
}

/** The objects of a list; other entries are skipped. */
export function readRecords(value: unknown): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isRecord) : noRecords
}

const noRecords: readonly JsonObject[] = []

/** The JSON text of tool arguments; some servers send the value itself instead of its text. */
export function readJsonText(value: unknown): string {
  if (typeof value === 'string') return value
  return value === null || value === undefined ? '' : JSON.stringify(value)
}

/** Log probabilities of tokens; entries without a token or a number are skipped. */
export function readLogprobs(value: unknown): TokenLogprob[] {
  return readRecords(value).flatMap((entry) => {
    const token = readToken(entry)
    if (token === null) return []
    const top = readRecords(entry['top_logprobs']).flatMap((other) => readToken(other) ?? [])
    return [{ ...token, top }]
  })
}

function readToken({ token, logprob, bytes }: JsonObject): Omit<TokenLogprob, 'top'> | null {
  if (typeof token !== 'string' || typeof logprob !== 'number') return null
  const isValid = Array.isArray(bytes) && bytes.every((byte) => typeof byte === 'number')
  return { token, logprob, bytes: isValid ? bytes : [...new TextEncoder().encode(token)] }
}

/** More sources than any search returns. */
export const citationsMax = 1_024

/** The name of a target, under which `sealedBy` records who sealed reasoning. */
export function targetName(target: {
  readonly upstream: { readonly name: string }
  readonly model: string
}): string {
  return `${target.upstream.name}/${target.model}`
}
