import { type Static, Type } from '@sinclair/typebox'
import { createReaders } from '#api/read-object.ts'
import {
  integer,
  nonEmptyString,
  object,
  optional,
  type ShallowStatic,
} from '#api/request-schema.ts'
import { AppError } from '#lib/errors.ts'
import type { Frozen } from '#lib/frozen.ts'

/** The same limit as OpenAI's. */
const textsMax = 2_048

const nonEmptyText = Type.String({ minLength: 1 })

/** The body of `POST /v1/embeddings`, as OpenAI defines it. Unknown fields are ignored. */
export const embeddingBody = object(
  {
    model: nonEmptyString(
      'A model of mode `embed`, or the built-in `local-hash`, which compares words by their letters.',
    ),
    input: Type.Union(
      [nonEmptyText, Type.Array(nonEmptyText, { minItems: 1, maxItems: textsMax })],
      { description: 'A text, or several texts. Arrays of tokens are refused.' },
    ),
    encoding_format: optional(
      Type.Union([Type.Literal('float'), Type.Literal('base64')], {
        description: '`float`: arrays of numbers. `base64`: 32-bit little-endian floats.',
        default: 'float',
      }),
    ),
    dimensions: optional(
      integer(1, 65_536, "A shorter length than the model's own, if the model supports it."),
    ),
  },
  { $id: 'EmbeddingRequest' },
)

export type EmbeddingRequest = Omit<ShallowStatic<typeof embeddingBody>, 'input'> & {
  readonly texts: readonly string[]
}

const { readObject } = createReaders(invalid)

/** Throws `invalid_request` with the invalid field as `param`. */
export function readEmbeddingRequest(
  body: unknown,
  { inputCharsMax }: { inputCharsMax: number },
): EmbeddingRequest {
  const { input, ...rest } = readObject(embeddingBody, body, '')
  const texts = typeof input === 'string' ? [input] : input.map(readText)
  if (texts.reduce((sum, text) => sum + text.length, 0) > inputCharsMax) {
    throw invalid('input', `may have ${inputCharsMax} characters`)
  }
  return { ...rest, texts }
}

function readText(text: unknown, at: number): string {
  const param = `input[${at}]`
  if (typeof text === 'number' || Array.isArray(text)) {
    throw invalid(param, 'must be text; arrays of tokens are not supported')
  }
  if (typeof text !== 'string') throw invalid(param, 'must be a string')
  if (text === '') throw invalid(param, 'must not be empty')
  return text
}

/** `predicate` completes the sentence that begins with the field. */
function invalid(param: string, predicate: string): AppError {
  if (param === '') return new AppError('invalid_request', `The request body ${predicate}.`)
  return new AppError('invalid_request', `${param} ${predicate}.`, { param })
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
