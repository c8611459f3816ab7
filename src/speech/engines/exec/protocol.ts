import { isRecord, type JsonObject, parseJson } from '#lib/json.ts'
import { EngineError, type EngineErrorKind, type Span, type Word } from '#speech/engine.ts'
import { meanConfidence } from '#speech/engines/words.ts'

/**
 * The output of a program of kind `exec`: one JSON object per line, times in seconds of the audio
 * that it received.
 *
 *     {"type":"ready"}                              once, before it receives audio
 *     {"type":"partial","text":"go","audio_s":1.2}  replaces the partial before
 *     {"type":"final","text":"go on","audio_s":2.4,"words":[
 *        {"word":"go","start":1.1,"end":1.3,"confidence":0.9}, ...]}
 *     {"type":"progress","audio_s":2.6}             at least once per 500 ms of audio
 *     {"type":"finalized"}                          the response to a finalize frame
 *     {"type":"error","code":"limit","message":""}  fatal; codes: busy, refused, limit, broken
 *     {"type":"done"}                               all results of the audio were printed
 *
 * `audio_s` is the audio processed so far: all results for earlier audio were printed before. A
 * final may omit `words` and `confidence`, may have `start` and `end` (as a partial may), and has
 * `speech_final: false` if the speaker did not pause. Lines of other types are ignored.
 */
export type ExecMessage =
  | { readonly type: 'ready' | 'finalized' | 'done' | 'other' }
  | ({ readonly type: 'partial'; readonly audioMs: number | null } & Span)
  | ({
      readonly type: 'final'
      readonly audioMs: number | null
      readonly words: readonly Word[]
      readonly confidence: number | null
      readonly speechFinal: boolean
    } & Span)
  | { readonly type: 'progress'; readonly audioMs: number }
  | { readonly type: 'error'; readonly kind: EngineErrorKind; readonly message: string }

const quotedCharsMax = 200

/** Throws an `EngineError` of kind `broken` for a line that is not a message. */
export function readMessage(line: string): ExecMessage {
  const value = parseJson(line)
  if (!isRecord(value)) throw malformed(line)
  switch (value['type']) {
    case 'ready':
    case 'finalized':
    case 'done':
      return { type: value['type'] }
    case 'partial':
      return { type: 'partial', audioMs: readMs(value, 'audio_s', line), ...readSpan(value, line) }
    case 'final':
      return readFinal(value, line)
    case 'progress':
      return { type: 'progress', audioMs: requireMs(value, 'audio_s', line) }
    case 'error':
      return { type: 'error', kind: readErrorKind(value['code']), message: quoted(line) }
    default:
      return { type: 'other' }
  }
}

function readFinal(value: JsonObject, line: string): ExecMessage {
  const words = readWords(value['words'], line)
  const { text, startMs, endMs } = readSpan(value, line)
  return {
    type: 'final',
    audioMs: readMs(value, 'audio_s', line),
    text,
    startMs: startMs ?? words.at(0)?.startMs ?? null,
    endMs: endMs ?? words.at(-1)?.endMs ?? null,
    words,
    confidence: clampConfidence(value['confidence']) ?? meanConfidence(words),
    speechFinal: value['speech_final'] !== false,
  }
}

function readSpan(value: JsonObject, line: string): Span {
  const { text } = value
  if (typeof text !== 'string') throw malformed(line)
  return {
    text: text.trim(),
    startMs: readMs(value, 'start', line),
    endMs: readMs(value, 'end', line),
  }
}

function readWords(value: unknown, line: string): Word[] {
  if (value === undefined || value === null) return []
  if (!Array.isArray(value)) throw malformed(line)
  return value.map((item: unknown) => {
    if (!isRecord(item) || typeof item['word'] !== 'string') throw malformed(line)
    return {
      word: item['word'],
      startMs: requireMs(item, 'start', line),
      endMs: requireMs(item, 'end', line),
      confidence: clampConfidence(item['confidence']),
    }
  })
}

function requireMs(value: JsonObject, field: string, line: string): number {
  const ms = readMs(value, field, line)
  if (ms === null) throw malformed(line)
  return ms
}

function readMs(value: JsonObject, field: string, line: string): number | null {
  const seconds = value[field]
  if (seconds === undefined || seconds === null) return null
  if (typeof seconds !== 'number' || !(seconds >= 0)) throw malformed(line)
  return Math.round(seconds * 1000)
}

function clampConfidence(value: unknown): number | null {
  return typeof value === 'number' ? Math.min(1, Math.max(0, value)) : null
}

function readErrorKind(code: unknown): EngineErrorKind {
  return code === 'busy' || code === 'refused' || code === 'limit' ? code : 'broken'
}

function malformed(line: string): EngineError {
  return new EngineError('broken', `the program printed an invalid message: ${quoted(line)}`)
}

function quoted(line: string): string {
  return line.length > quotedCharsMax ? `${line.slice(0, quotedCharsMax)}...` : line
}

/**
 * The input of a program with `framed = true`: frames of 4 bytes little-endian content length, 1 byte
 * type, and the content. Unknown types are to be skipped.
 *
 *     0  options   JSON: {"language":"en","vocabulary":["..."],"endpointing_ms":600}; once, first
 *     1  audio     samples: mono, 16 bit little-endian
 *     2  finalize  empty: print finals of all audio so far, then {"type":"finalized"}
 *     3  end       empty: print the remaining finals, then {"type":"done"}, and exit
 *
 * A program without frames reads bare samples; the end of its input is the end of the audio.
 */
const frameTypes = { options: 0, audio: 1, finalize: 2, end: 3 } as const

const headerBytes = 5

export function encodeFrame(
  type: keyof typeof frameTypes,
  content: Uint8Array = new Uint8Array(0),
): Uint8Array {
  const bytes = new Uint8Array(headerBytes + content.length)
  new DataView(bytes.buffer).setUint32(0, content.length, true)
  bytes[4] = frameTypes[type]
  bytes.set(content, headerBytes)
  return bytes
}
