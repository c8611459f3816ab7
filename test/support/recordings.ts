import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isRecord, parseJson } from '#lib/json.ts'

/**
 * Real traffic of inference servers. The recordings of the repository were made by `bun run record`.
 * Others, which cannot be part of it, are read where the folder beside the project exists.
 */
export const ownRecordings = join(import.meta.dir, '../recordings')
const sharedRecordings = join(import.meta.dir, '../../../shared/recorded')

/** Tests of particular shared recordings use `test.skipIf(!sharedRecordingsExist)`. */
export const sharedRecordingsExist = existsSync(sharedRecordings)

const roots = sharedRecordingsExist ? [ownRecordings, sharedRecordings] : [ownRecordings]

const ownServers = /^(llama\.cpp|litellm)-/
const ownError = /^(llama\.cpp|litellm)-.*-error-/

export type RecordedProtocol = 'chat-completions' | 'responses' | 'messages'

/** The names of the recorded streams, for `recordedStream`. */
export function recordedStreamNames(protocol: RecordedProtocol): string[] {
  return listNames(protocol, /\.chunks\.txt$|\.sse$/)
}

/** The names of the recorded bodies, for `recordedBody`. */
export function recordedBodyNames(protocol: RecordedProtocol): string[] {
  return listNames(protocol, /\.json$/)
}

/** The names of own recordings that end with an error; a stream ends in `.sse`, a body in `.json`. */
export function recordedErrorNames(protocol: RecordedProtocol): string[] {
  return namesIn(protocol).filter((name) => ownError.test(name))
}

export function isOwnRecording(name: string): boolean {
  return ownServers.test(name)
}

/** The data payloads of a recorded stream in order, without the final `[DONE]`. */
export function recordedPayloads(protocol: RecordedProtocol, name: string): string[] {
  const lines = recordedBody(protocol, name).split('\n')
  const payloads = name.endsWith('.sse')
    ? lines.filter((line) => line.startsWith('data: ')).map((line) => line.slice(6))
    : lines
  return payloads.filter((payload) => payload.trim() !== '' && payload !== '[DONE]')
}

/** A recorded stream as its server sent it. */
export function recordedStream(protocol: RecordedProtocol, name: string): string {
  if (name.endsWith('.sse')) return recordedBody(protocol, name)
  const payloads = recordedPayloads(protocol, name)
  if (protocol === 'chat-completions') return chatStream(payloads)
  return payloads.map((payload) => `event: ${readType(payload)}\ndata: ${payload}\n\n`).join('')
}

export function recordedBody(protocol: RecordedProtocol, name: string): string {
  const paths = roots.map((root) => join(root, protocol, name))
  return readFileSync(paths.find(existsSync) ?? name, 'utf8')
}

/** Payloads (JSON strings, or values to be serialized) as a chat completions stream. */
export function chatStream(payloads: readonly unknown[]): string {
  const texts = payloads.map((payload) =>
    typeof payload === 'string' ? payload : JSON.stringify(payload),
  )
  return [...texts, '[DONE]'].map((text) => `data: ${text}\n\n`).join('')
}

function listNames(protocol: RecordedProtocol, ending: RegExp): string[] {
  return namesIn(protocol).filter((name) => ending.test(name) && !ownError.test(name))
}

function namesIn(protocol: RecordedProtocol): string[] {
  return roots.flatMap((root) => readdirSync(join(root, protocol))).sort()
}

/** One recording contains invalid JSON, preceded by its type. */
function readType(payload: string): string {
  const parsed = parseJson(payload)
  const type = isRecord(parsed) ? parsed['type'] : /"type":"([^"]+)"/.exec(payload)?.[1]
  return typeof type === 'string' ? type : 'message'
}
