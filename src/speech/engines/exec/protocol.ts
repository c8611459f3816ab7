import { type Static, type TSchema, Type } from '@sinclair/typebox'
import { isRecord, parseJson } from '#lib/json.ts'
import { compileChecker } from '#lib/schema.ts'
import { EngineError, type EngineErrorKind } from '#speech/engine.ts'

const optional = <T extends TSchema>(schema: T) => Type.Optional(Type.Union([schema, Type.Null()]))
const bare = <Name extends string>(type: Name) => Type.Object({ type: Type.Literal(type) })
const seconds = Type.Number({ minimum: 0 })
const textFields = {
  text: Type.String(),
  start: optional(seconds),
  end: optional(seconds),
  audio_s: optional(seconds),
}
const word = Type.Object({
  word: Type.String(),
  start: seconds,
  end: seconds,
  confidence: Type.Optional(Type.Unknown()),
})

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
const message = Type.Union([
  bare('ready'),
  Type.Object({ type: Type.Literal('partial'), ...textFields }),
  Type.Object({
    type: Type.Literal('final'),
    ...textFields,
    words: optional(Type.Array(word)),
    confidence: Type.Optional(Type.Unknown()),
    speech_final: Type.Optional(Type.Unknown()),
  }),
  Type.Object({ type: Type.Literal('progress'), audio_s: seconds }),
  bare('finalized'),
  bare('done'),
])

export type ExecMessage = Static<typeof message>

const messageTypes: unknown[] = message.anyOf.map(({ properties }) => properties.type.const)
const checker = compileChecker(message)
const quotedCharsMax = 200

/** Null for a message of another type. Throws an `EngineError` for an error or an invalid line. */
export function readMessage(line: string): ExecMessage | null {
  const value = parseJson(line)
  if (checker.check(value)) return value
  const quoted = line.length > quotedCharsMax ? `${line.slice(0, quotedCharsMax)}...` : line
  if (!isRecord(value) || messageTypes.includes(value['type'])) {
    throw new EngineError('broken', `the program printed an invalid message: ${quoted}`)
  }
  if (value['type'] === 'error') throw new EngineError(kindOf(value['code']), quoted)
  return null
}

function kindOf(code: unknown): EngineErrorKind {
  return code === 'busy' || code === 'refused' || code === 'limit' ? code : 'broken'
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
