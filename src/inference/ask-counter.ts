import { isRecord, type JsonObject, parseJson } from '#lib/json.ts'
import { readText, requestHeaders, requireSuccess } from './http-generation.ts'
import type { AdapterContext } from './upstream.ts'

/** The longest answer that is read: some counters name every token of the prompt. */
const answerBytesMax = 16_777_216
/** What servers answer where there is no such thing: not found, not allowed, not implemented. */
const absentStatuses = [404, 405, 501]

/**
 * POSTs to what an upstream counts tokens with. It makes no model work. An answer that is no JSON
 * object is an empty one, and null means that the upstream has no such counter.
 */
export async function askCounter(
  { upstream, transport, signal }: AdapterContext,
  question: { url: string; body: unknown; headers?: Readonly<Record<string, string>> },
): Promise<JsonObject | null> {
  const answer = await transport.send({
    url: question.url,
    method: 'POST',
    headers: question.headers ?? requestHeaders(upstream, 'application/json'),
    body: JSON.stringify(question.body),
    signal,
  })
  if (absentStatuses.includes(answer.status)) {
    await readText(answer, answerBytesMax)
    return null
  }
  await requireSuccess(answer, upstream)
  const told = parseJson(await readText(answer, answerBytesMax))
  return isRecord(told) ? told : {}
}

/** A number that an upstream told; NaN where it told none. */
export function readCount(value: unknown): number {
  return typeof value === 'number' ? value : Number.NaN
}
