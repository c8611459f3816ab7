import { isRecord, type JsonObject, parseJson } from '#lib/json.ts'
import { EngineError, type EngineErrorKind, type Word } from '#speech/engine.ts'

/**
 * What a program of kind `exec` prints: one JSON object a line, times in seconds of the audio that
 * it was given.
 *
 *     {"type":"ready"}                              once, before it is given audio
 *     {"type":"partial","text":"go","audio_s":1.2}  replaces the partial before
 *     {"type":"final","text":"go on","audio_s":2.4,"words":[
 *        {"word":"go","start":1.1,"end":1.3,"confidence":0.9}, ...]}
 *     {"type":"progress","audio_s":2.6}             at least once for every 500 ms of audio
 *     {"type":"finalized"}                          the answer to a finalize frame
 *     {"type":"error","code":"limit","message":""}  it gives up; codes: busy, refused, limit, broken
 *     {"type":"done"}                               everything before the end has been said
 *
 * `audio_s` says how much audio it has taken in: what it had to say about audio before that was
 * said in lines before this one. A final may leave out `words` and `confidence`, may say `start`
 * and `end` (as a partial may), and says `speech_final: false` where nobody paused. Lines of other
 * types are skipped.
 */
export type ExecMessage =
  | { readonly type: 'ready' | 'finalized' | 'done' | 'other' }
  | ({ readonly type: 'partial'; readonly audioMs: number | null } & ExecSpan)
  | ({
      readonly type: 'final'
      readonly audioMs: number | null
      readonly words: readonly Word[]
      readonly confidence: number | null
      readonly speechFinal: boolean
    } & ExecSpan)
  | { readonly type: 'progress'; readonly audioMs: number }
  | { readonly type: 'error'; readonly kind: EngineErrorKind; readonly message: string }

type ExecSpan = {
  readonly text: string
  readonly startMs: number | null
  readonly endMs: number | null
}

const quotedCharsMax = 200
const errorKinds: ReadonlySet<string> = new Set<EngineErrorKind>(['busy', 'refused', 'limit'])

/** Throws an `EngineError` of kind `broken` for what is no message. */
export function readMessage(line: string): ExecMessage {
  const value = parseJson(line)
  if (!isRecord(value)) throw malformed(line)
  switch (value['type']) {
    case 'ready':
    case 'finalized':
    case 'done':
      return { type: value['type'] }
    case 'partial':
      return { type: 'partial', audioMs: msOf(value, 'audio_s', line), ...spanOf(value, line) }
    case 'final':
      return finalOf(value, line)
    case 'progress':
      return { type: 'progress', audioMs: neededMs(value, 'audio_s', line) }
    case 'error':
      return { type: 'error', kind: errorKindOf(value['code']), message: quoted(line) }
    default:
      return { type: 'other' }
  }
}

function finalOf(value: JsonObject, line: string): ExecMessage {
  const words = wordsOf(value['words'], line)
  const span = spanOf(value, line)
  return {
    type: 'final',
    audioMs: msOf(value, 'audio_s', line),
    text: span.text,
    startMs: span.startMs ?? words.at(0)?.startMs ?? null,
    endMs: span.endMs ?? words.at(-1)?.endMs ?? null,
    words,
    confidence: shareOf(value['confidence']) ?? meanConfidence(words),
    speechFinal: value['speech_final'] !== false,
  }
}

function spanOf(value: JsonObject, line: string): ExecSpan {
  const { text } = value
  if (typeof text !== 'string') throw malformed(line)
  return {
    text: text.trim(),
    startMs: msOf(value, 'start', line),
    endMs: msOf(value, 'end', line),
  }
}

function wordsOf(value: unknown, line: string): Word[] {
  if (value === undefined || value === null) return []
  if (!Array.isArray(value)) throw malformed(line)
  return value.map((item: unknown) => {
    if (!isRecord(item) || typeof item['word'] !== 'string') throw malformed(line)
    return {
      word: item['word'],
      startMs: neededMs(item, 'start', line),
      endMs: neededMs(item, 'end', line),
      confidence: shareOf(item['confidence']),
    }
  })
}

function neededMs(value: JsonObject, field: string, line: string): number {
  const ms = msOf(value, field, line)
  if (ms === null) throw malformed(line)
  return ms
}

function msOf(value: JsonObject, field: string, line: string): number | null {
  const seconds = value[field]
  if (seconds === undefined || seconds === null) return null
  if (typeof seconds !== 'number' || !(seconds >= 0)) throw malformed(line)
  return Math.round(seconds * 1000)
}

function shareOf(value: unknown): number | null {
  return typeof value === 'number' ? Math.min(1, Math.max(0, value)) : null
}

function meanConfidence(words: readonly Word[]): number | null {
  const known = words.flatMap(({ confidence }) => (confidence === null ? [] : [confidence]))
  if (known.length === 0) return null
  return known.reduce((sum, confidence) => sum + confidence, 0) / known.length
}

function errorKindOf(code: unknown): EngineErrorKind {
  return typeof code === 'string' && isErrorKind(code) ? code : 'broken'
}

function isErrorKind(code: string): code is EngineErrorKind {
  return errorKinds.has(code)
}

function malformed(line: string): EngineError {
  return new EngineError('broken', `the program printed what is no message: ${quoted(line)}`)
}

function quoted(line: string): string {
  return line.length > quotedCharsMax ? `${line.slice(0, quotedCharsMax)}...` : line
}
