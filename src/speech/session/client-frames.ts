import { type Static, type TSchema, Type } from '@sinclair/typebox'
import { isRecord, type JsonObject, parseJson } from '#lib/json.ts'
import { compileChecker } from '#lib/schema.ts'
import type { AudioFormat, Container } from '#speech/decoders/decoder.ts'
import type { SessionQuery } from './query.ts'
import { SessionError, type SessionErrorCode } from './session-error.ts'

/** The text frames of a client. Unknown fields are no error; they are told once, in a warning. */

const idCharsMax = 128
const vocabularyMax = 256
const wordCharsMax = 128
const metadataMax = 16
const metadataCharsMax = 256
/** So many unknown fields are named, each up to so many characters. */
const unknownFieldsMax = 16
const fieldCharsMax = 64

/** A field that is null counts as not given. */
const maybe = <T extends TSchema>(schema: T) => Type.Optional(Type.Union([schema, Type.Null()]))
const oneOf = <Word extends string>(...words: Word[]) =>
  Type.Union(words.map((word) => Type.Literal(word)))
const text = (charsMax: number) => Type.String({ minLength: 1, maxLength: charsMax })

const audioFields = Type.Object({
  container: maybe(oneOf('auto', 'none', 'ogg', 'webm', 'raw')),
  channels: maybe(Type.Integer({ minimum: 1, maximum: 2 })),
})

const optionFields = Type.Object({
  partials: maybe(Type.Boolean()),
  words: maybe(Type.Boolean()),
  max_partial_hz: maybe(Type.Number({ minimum: 0.1, maximum: 50 })),
  endpointing_ms: maybe(Type.Integer({ minimum: 100, maximum: 10_000 })),
  vocabulary: maybe(Type.Array(text(wordCharsMax), { maxItems: vocabularyMax })),
  flow: maybe(oneOf('none', 'credit')),
  live: maybe(Type.Boolean()),
})

const resumeFields = Type.Object({
  session_id: text(idCharsMax),
  token: text(idCharsMax),
  last_seq: maybe(Type.Integer({ minimum: 0 })),
})

const sessionStart = Type.Object({
  type: maybe(Type.Literal('session_start')),
  protocol: maybe(Type.Literal(1)),
  audio: maybe(audioFields),
  options: maybe(optionFields),
  resume: maybe(resumeFields),
  metadata: maybe(
    Type.Record(
      Type.String({ pattern: '^.{1,64}$' }),
      Type.String({ maxLength: metadataCharsMax }),
      {
        maxProperties: metadataMax,
        additionalProperties: false,
      },
    ),
  ),
})

const control = Type.Union([
  Type.Object({ type: Type.Literal('finalize'), id: maybe(text(idCharsMax)) }),
  Type.Object({ type: Type.Literal('keepalive') }),
  Type.Object({ type: Type.Literal('session_end') }),
])

const startChecker = compileChecker(sessionStart)
const controlChecker = compileChecker(control)

/** The first message of a client, with all defaults. */
export type Handshake = {
  readonly format: AudioFormat
  readonly options: {
    readonly partials: boolean
    readonly words: boolean
    readonly partialsPerSecondMax: number
    readonly endpointingMs: number
    readonly vocabulary: readonly string[]
    readonly credit: boolean
    readonly live: boolean
  }
  readonly resume: ResumeClaim | null
  readonly metadata: Readonly<Record<string, string>>
  /** Paths of fields that mean nothing here. */
  readonly ignored: readonly string[]
}

export type ResumeClaim = {
  readonly sessionId: string
  readonly token: string
  /** The number of the last frame that the client has; 0: none. */
  readonly lastSeq: number
}

export type Control = Static<typeof control>

/** Throws a `SessionError`: `handshake_required` for another message, else `invalid_handshake`. */
export function readHandshake(message: string, query: SessionQuery): Handshake {
  const fields = readFields(message, 'invalid_handshake')
  if (controlChecker.check(fields)) throw handshakeRequired()
  if (!startChecker.check(fields)) {
    const fault = startChecker.firstError(fields)
    throw new SessionError('invalid_handshake', fault?.message ?? 'It cannot be read.', {
      ...(fault?.path ? { param: fault.path } : {}),
    })
  }
  const { audio, options, resume } = fields
  return {
    format: {
      encoding: query.encoding,
      sampleRateHz: query.sampleRateHz,
      container: readContainer(audio?.container ?? 'auto', query),
      channels: audio?.channels === 2 ? 2 : 1,
    },
    options: {
      partials: options?.partials ?? true,
      words: options?.words ?? true,
      partialsPerSecondMax: options?.max_partial_hz ?? 5,
      endpointingMs: options?.endpointing_ms ?? 600,
      vocabulary: options?.vocabulary ?? [],
      credit: options?.flow === 'credit',
      live: options?.live ?? true,
    },
    resume: resume
      ? { sessionId: resume.session_id, token: resume.token, lastSeq: resume.last_seq ?? 0 }
      : null,
    metadata: fields.metadata ?? {},
    ignored: namesOf([...query.ignored, ...unknownFields(fields)]),
  }
}

/** Any message behind the handshake. Throws a `SessionError`: `invalid_message`. */
export function readControl(message: string): Control {
  const fields = readFields(message, 'invalid_message')
  if (controlChecker.check(fields)) return fields
  const fault = controlChecker.firstError(fields)
  throw new SessionError('invalid_message', fault?.message ?? 'It cannot be read.', {
    ...(fault?.path ? { param: fault.path } : {}),
    details: { types: ['finalize', 'keepalive', 'session_end'] },
  })
}

export function handshakeRequired(): SessionError {
  const sentence = 'The first message must be a JSON object of type "session_start".'
  return new SessionError('handshake_required', sentence)
}

function readFields(message: string, code: SessionErrorCode): JsonObject {
  const value = parseJson(message)
  if (isRecord(value)) return value
  throw new SessionError(code, 'A text message must be a JSON object.')
}

function readContainer(container: Container | 'none', { encoding }: SessionQuery): Container {
  const isRight = container === 'auto' || (container === 'none') !== (encoding === 'opus')
  if (isRight) return container === 'none' ? 'auto' : container
  const words = encoding === 'opus' ? ['auto', 'ogg', 'webm', 'raw'] : ['auto', 'none']
  const sentence = `"audio.container" must be one of ${words.join(', ')} for ${encoding}.`
  throw new SessionError('invalid_handshake', sentence, { param: 'audio.container' })
}

function unknownFields(fields: Static<typeof sessionStart>): string[] {
  return [
    ...strangersOf(fields, sessionStart, ''),
    ...strangersOf(fields.audio, audioFields, 'audio.'),
    ...strangersOf(fields.options, optionFields, 'options.'),
    ...strangersOf(fields.resume, resumeFields, 'resume.'),
  ]
}

function strangersOf(
  value: object | null | undefined,
  { properties }: { properties: object },
  prefix: string,
): string[] {
  return Object.keys(value ?? {})
    .filter((name) => !Object.hasOwn(properties, name))
    .map((name) => prefix + name)
}

function namesOf(fields: string[]): string[] {
  return fields.slice(0, unknownFieldsMax).map((name) => name.slice(0, fieldCharsMax))
}
