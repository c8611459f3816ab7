import { type Static, Type } from '@sinclair/typebox'
import { describeObject } from '#api/described.ts'
import type { Frozen } from '#lib/frozen.ts'
import { embeddingRequest, textsMax } from './read-request.ts'

const filled = Type.String({ minLength: 1 })

/** The body of `POST /v1/embeddings` as a whole. */
export const embeddingBody = describeObject(
  embeddingRequest,
  {
    model:
      'A model of mode `embed`, or the built-in `local-hash`, which knows words by their letters.',
    input: Type.Union([filled, Type.Array(filled, { minItems: 1, maxItems: textsMax })], {
      description: 'A text, or texts. Arrays of tokens are refused.',
    }),
    encoding_format: Type.Union([Type.Literal('float'), Type.Literal('base64')], {
      description:
        'Whether a vector is an array of numbers, or base64 of 32-bit little-endian floats.',
      default: 'float',
    }),
    dimensions: 'A length below that of the model, where the model can.',
  },
  { $id: 'EmbeddingRequest' },
)

export const embeddingList = Type.Object(
  {
    object: Type.Literal('list'),
    data: Type.Array(
      Type.Object({
        object: Type.Literal('embedding'),
        index: Type.Integer({ description: 'The place of its text in `input`.' }),
        embedding: Type.Union([Type.Array(Type.Number()), Type.String()], {
          description: 'Numbers, or base64 where that was asked for.',
        }),
      }),
    ),
    model: Type.String({ description: 'The name that was sent.' }),
    usage: Type.Object({
      prompt_tokens: Type.Integer({ description: '0 where the upstream does not count.' }),
      total_tokens: Type.Integer(),
    }),
  },
  { $id: 'EmbeddingList' },
)
export type EmbeddingList = Frozen<Static<typeof embeddingList>>
