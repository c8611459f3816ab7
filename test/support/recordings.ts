import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isRecord, parseJson } from '#lib/json.ts'

/**
 * Real traffic of inference servers, which is not part of the repository. Tests that need it use
 * `test.skipIf(!recordingsExist)`.
 */
const root = join(import.meta.dir, '../../../shared/recorded')

export const recordingsExist = existsSync(root)

export type RecordedProtocol = 'chat-completions' | 'responses' | 'messages'

/** The names of the recorded streams, for `recordedStream`. */
export function recordedStreamNames(protocol: RecordedProtocol): string[] {
  return listNames(protocol, /\.chunks\.txt$|\.sse$/)
}

/** The names of the recorded bodies, for `recordedBody`. */
export function recordedBodyNames(protocol: RecordedProtocol): string[] {
  return listNames(protocol, /\.json$/)
}

/** The data payloads of a recorded stream in order, without the final `[DONE]`. */
export function recordedPayloads(protocol: RecordedProtocol, name: string): string[] {
  const lines = readFileSync(join(root, protocol, name), 'utf8').split('\n')
  const payloads = name.endsWith('.sse')
    ? lines.filter((line) => line.startsWith('data: ')).map((line) => line.slice(6))
    : lines
  return payloads.filter((payload) => payload.trim() !== '' && payload !== '[DONE]')
}

/** A recorded stream as its server sent it. */
export function recordedStream(protocol: RecordedProtocol, name: string): string {
  const payloads = recordedPayloads(protocol, name)
  if (protocol === 'chat-completions') return chatStream(payloads)
  return payloads.map((payload) => `event: ${readType(payload)}\ndata: ${payload}\n\n`).join('')
}

export function recordedBody(protocol: RecordedProtocol, name: string): string {
  return readFileSync(join(root, protocol, name), 'utf8')
}

/** Payloads (JSON strings, or values to be serialized) as a chat completions stream. */
export function chatStream(payloads: readonly unknown[]): string {
  const texts = payloads.map((payload) =>
    typeof payload === 'string' ? payload : JSON.stringify(payload),
  )
  return [...texts, '[DONE]'].map((text) => `data: ${text}\n\n`).join('')
}

function listNames(protocol: RecordedProtocol, ending: RegExp): string[] {
  if (!recordingsExist) return []
  return readdirSync(join(root, protocol))
    .filter((name) => ending.test(name))
    .sort()
}

/** One recording contains invalid JSON, preceded by its type. */
function readType(payload: string): string {
  const parsed = parseJson(payload)
  const type = isRecord(parsed) ? parsed['type'] : /"type":"([^"]+)"/.exec(payload)?.[1]
  return typeof type === 'string' ? type : 'message'
}
