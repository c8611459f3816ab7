import { type Static, type TSchema, Type } from '@sinclair/typebox'
import { isRecord, type JsonObject, parseJson } from '#lib/json.ts'
import { compileChecker, type SchemaFault } from '#lib/schema.ts'
import type { AudioFormat, Container } from '#speech/decoders/decoder.ts'
import type { SessionQuery } from './query.ts'
import { SessionError, type SessionErrorCode, sessionError } from './session-error.ts'

/** The text frames of a client. Unknown fields are not an error; one warning names them. */

const idCharsMax = 128
const vocabularyMax = 256
const wordCharsMax = 128
const metadataMax = 16
const metadataCharsMax = 256
/** Limits of the warning about unknown fields. */
const unknownFieldsMax = 16
const fieldCharsMax = 64
/** A path contains names of the client. */
const paramCharsMax = 128
const messageCharsMax = 256

/** A field that is null counts as absent. */
const optional = <T extends TSchema>(schema: T) => Type.Optional(Type.Union([schema, Type.Null()]))
const oneOf = <Value extends string>(...values: Value[]) =>
  Type.Union(values.map((value) => Type.Literal(value)))
const text = (charsMax: number) => Type.String({ minLength: 1, maxLength: charsMax })

const audioFields = Type.Object({
  container: optional(oneOf('auto', 'none', 'ogg', 'webm', 'raw')),
  channels: optional(Type.Integer({ minimum: 1, maximum: 2 })),
})

const optionFields = Type.Object({
  partials: optional(Type.Boolean()),
  words: optional(Type.Boolean()),
  max_partial_hz: optional(Type.Number({ minimum: 0.1, maximum: 50 })),
  endpointing_ms: optional(Type.Integer({ minimum: 100, maximum: 10_000 })),
  vocabulary: optional(Type.Array(text(wordCharsMax), { maxItems: vocabularyMax })),
  flow: optional(oneOf('none', 'credit')),
  live: optional(Type.Boolean()),
})

const resumeFields = Type.Object({
  session_id: text(idCharsMax),
  token: text(idCharsMax),
  last_seq: optional(Type.Integer({ minimum: 0 })),
})

const sessionStart = Type.Object({
  type: optional(Type.Literal('session_start')),
  protocol: optional(Type.Literal(1)),
  audio: optional(audioFields),
  options: optional(optionFields),
  resume: optional(resumeFields),
  metadata: optional(
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
  Type.Object({ type: Type.Literal('finalize'), id: optional(text(idCharsMax)) }),
  Type.Object({ type: Type.Literal('keepalive') }),
  Type.Object({ type: Type.Literal('session_end') }),
])

const controlTypes = control.anyOf.map(({ properties }) => properties.type.const)
const unknownControl = {
  path: 'type',
  message: `"type" must be one of ${controlTypes.join(', ')}.`,
}
const startChecker = compileChecker(sessionStart)
const controlChecker = compileChecker(control)

export type Handshake = ReturnType<typeof readHandshake>
export type ResumeRequest = NonNullable<Handshake['resume']>
export type Control = Static<typeof control>

/**
 * The first message of a client, with defaults applied. Throws a `SessionError`: `handshake_required` for
 * another message, else `invalid_handshake`.
 */
export function readHandshake(message: string, query: SessionQuery) {
  const fields = readFields(message, 'invalid_handshake')
  if (controlChecker.check(fields)) throw sessionError('handshake_required')
  if (!startChecker.check(fields)) {
    throw invalid('invalid_handshake', startChecker.firstError(fields))
  }
  const { audio, options, resume } = fields
  return {
    format: {
      encoding: query.encoding,
      sampleRateHz: query.sampleRateHz,
      container: readContainer(audio?.container ?? 'auto', query),
      channels: audio?.channels === 2 ? 2 : 1,
    } satisfies AudioFormat,
    options: {
      partials: options?.partials ?? true,
      words: options?.words ?? true,
      partialsPerSecondMax: options?.max_partial_hz ?? 5,
      endpointingMs: options?.endpointing_ms ?? 600,
      vocabulary: options?.vocabulary ?? [],
      credit: options?.flow === 'credit',
      /** Whether `audio_ack` is sent without flow control by credit. */
      progress: false,
      live: options?.live ?? true,
    },
    // `lastSeq`: the number of the last frame that the client received; 0: none.
    resume: resume
      ? { sessionId: resume.session_id, token: resume.token, lastSeq: resume.last_seq ?? 0 }
      : null,
    metadata: fields.metadata ?? {},
    /** Paths of unknown fields. */
    ignored: [...query.ignored, ...unknownFields(fields)]
      .slice(0, unknownFieldsMax)
      .map((name) => name.slice(0, fieldCharsMax)),
  }
}

/** Any message after the handshake. Throws a `SessionError`: `invalid_message`. */
export function readControl(message: string): Control {
  const fields = readFields(message, 'invalid_message')
  if (controlChecker.check(fields)) return fields
  const isKnown = controlTypes.some((type) => type === fields['type'])
  const fault = isKnown ? controlChecker.firstError(fields) : unknownControl
  throw invalid('invalid_message', fault, { types: controlTypes })
}

function invalid(
  code: SessionErrorCode,
  fault: Pick<SchemaFault, 'path' | 'message'> | null,
  details = {},
): SessionError {
  const { message = 'The message is not valid.', path = '' } = fault ?? {}
  const param = path.slice(0, paramCharsMax)
  return new SessionError(code, message.slice(0, messageCharsMax), {
    details,
    ...(param && { param }),
  })
}

function readFields(message: string, code: SessionErrorCode): JsonObject {
  const value = parseJson(message)
  if (isRecord(value)) return value
  throw new SessionError(code, 'A text message must be a JSON object.')
}

function readContainer(container: Container | 'none', { encoding }: SessionQuery): Container {
  const isValid = container === 'auto' || (container === 'none') !== (encoding === 'opus')
  if (isValid) return container === 'none' ? 'auto' : container
  const values = encoding === 'opus' ? ['auto', 'ogg', 'webm', 'raw'] : ['auto', 'none']
  const message = `"audio.container" must be one of ${values.join(', ')} for ${encoding}.`
  throw new SessionError('invalid_handshake', message, { param: 'audio.container' })
}

function unknownFields(fields: Static<typeof sessionStart>): string[] {
  return [
    ...unknownNames(fields, sessionStart, ''),
    ...unknownNames(fields.audio, audioFields, 'audio.'),
    ...unknownNames(fields.options, optionFields, 'options.'),
    ...unknownNames(fields.resume, resumeFields, 'resume.'),
  ]
}

function unknownNames(
  value: object | null | undefined,
  { properties }: { properties: object },
  prefix: string,
): string[] {
  return Object.keys(value ?? {})
    .filter((name) => !Object.hasOwn(properties, name))
    .map((name) => prefix + name)
}
