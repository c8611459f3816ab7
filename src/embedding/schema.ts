import { type Static, Type } from '@sinclair/typebox'
import { describeObject } from '#api/described.ts'
import { AppError } from '#lib/errors.ts'
import type { Frozen } from '#lib/frozen.ts'
import { isRecord, withoutNulls } from '#lib/json.ts'
import { compileChecker } from '#lib/schema.ts'

/** The body of `POST /v1/embeddings`, as OpenAI defines it. Unknown fields are ignored. */
const requestFields = Type.Object({
  model: Type.String({ minLength: 1, description: 'the name of a model' }),
  input: Type.Unknown({ description: 'a string or an array of strings' }),
  encoding_format: Type.Optional(
    Type.Union([Type.Literal('float'), Type.Literal('base64')], {
      description: '"float" or "base64"',
    }),
  ),
  dimensions: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 65_536, description: 'a whole number from 1' }),
  ),
})

/** The same limit as OpenAI's. */
const textsMax = 2_048

const nonEmptyString = Type.String({ minLength: 1 })

export const embeddingBody = describeObject(
  requestFields,
  {
    model:
      'A model of mode `embed`, or the built-in `local-hash`, which compares words by their letters.',
    input: Type.Union(
      [nonEmptyString, Type.Array(nonEmptyString, { minItems: 1, maxItems: textsMax })],
      { description: 'A text, or several texts. Arrays of tokens are refused.' },
    ),
    encoding_format: Type.Union([Type.Literal('float'), Type.Literal('base64')], {
      description: '`float`: arrays of numbers. `base64`: 32-bit little-endian floats.',
      default: 'float',
    }),
    dimensions: "A shorter length than the model's own, if the model supports it.",
  },
  { $id: 'EmbeddingRequest' },
)

export type EmbeddingRequest = Omit<Static<typeof requestFields>, 'input'> & {
  readonly texts: readonly string[]
}

const checker = compileChecker(requestFields)

/** Throws `invalid_request` with the invalid field as `param`. */
export function readEmbeddingRequest(
  body: unknown,
  { inputCharsMax }: { inputCharsMax: number },
): EmbeddingRequest {
  if (!isRecord(body)) throw invalid('', 'The request body must be an object.')
  const fields = withoutNulls(body)
  if (!checker.check(fields)) {
    const field = checker.firstError(fields)?.path ?? ''
    const expected = requestFields.properties[field as 'model']?.description
    const isMissing = fields[field] === undefined
    throw invalid(field, `${field} ${isMissing ? 'is required' : `must be ${expected}`}.`)
  }
  const { input, ...rest } = fields
  const texts = readTexts(input)
  if (texts.reduce((sum, text) => sum + text.length, 0) > inputCharsMax) {
    throw invalid('input', `input may have ${inputCharsMax} characters.`)
  }
  return { ...rest, texts }
}

function readTexts(input: unknown): string[] {
  const texts = Array.isArray(input) ? input : [input]
  if (texts.length === 0) throw invalid('input', 'input must not be empty.')
  if (texts.length > textsMax) throw invalid('input', `input may have ${textsMax} texts.`)
  return texts.map((text: unknown, at) => {
    const param = Array.isArray(input) ? `input[${at}]` : 'input'
    if (typeof text === 'number' || Array.isArray(text)) {
      throw invalid(param, 'input must be text; arrays of tokens are not supported.')
    }
    if (typeof text !== 'string') throw invalid(param, `${param} must be a string.`)
    if (text === '') throw invalid(param, `${param} must not be empty.`)
    return text
  })
}

function invalid(param: string, message: string): AppError {
  return new AppError('invalid_request', message, param === '' ? {} : { param })
}

export const embeddingList = Type.Object(
  {
    object: Type.Literal('list'),
    data: Type.Array(
      Type.Object({
        object: Type.Literal('embedding'),
        index: Type.Integer({ description: 'The index of its text in `input`.' }),
        embedding: Type.Union([Type.Array(Type.Number()), Type.String()], {
          description: 'Numbers, or base64 if requested.',
        }),
      }),
    ),
    model: Type.String({ description: 'The model of the request.' }),
    usage: Type.Object({
      prompt_tokens: Type.Integer({ description: '0 if the upstream reports no usage.' }),
      total_tokens: Type.Integer(),
    }),
  },
  { $id: 'EmbeddingList' },
)
export type EmbeddingList = Frozen<Static<typeof embeddingList>>
