import { type Static, Type } from '@sinclair/typebox'
import { withNulls } from '#api/described.ts'
import type { Frozen } from '#lib/frozen.ts'
import { documentsMax } from './read-request.ts'

const filled = () => Type.String({ minLength: 1 })

/** The body of `POST /v1/rerank`; `read-request.ts` reads it field by field. */
export const rerankBody = withNulls(
  Type.Object(
    {
      model: Type.Optional(
        Type.String({
          minLength: 1,
          description: 'A model of mode `rerank`; absent: the one of the configuration.',
        }),
      ),
      query: Type.String({ minLength: 1, description: 'What the documents are to answer.' }),
      documents: Type.Array(Type.Union([filled(), Type.Object({ text: filled() })]), {
        minItems: 1,
        maxItems: documentsMax,
        description: 'Texts, or objects with one. Blank ones are refused.',
      }),
      top_n: Type.Optional(
        Type.Integer({
          minimum: 1,
          description: 'The most results; the configuration may hold them lower.',
        }),
      ),
      max_tokens_per_doc: Type.Optional(
        Type.Integer({ minimum: 1, description: 'How much of each document the model reads.' }),
      ),
      return_documents: Type.Optional(
        Type.Boolean({ default: false, description: 'Whether results repeat their document.' }),
      ),
    },
    { $id: 'RerankRequest', additionalProperties: true },
  ),
)

export const rerankAnswer = Type.Object(
  {
    id: Type.String(),
    object: Type.Literal('rerank'),
    model: Type.String({ description: 'The model that was asked.' }),
    results: Type.Array(
      Type.Object({
        index: Type.Integer({ description: 'The place of the document in the request.' }),
        relevance_score: Type.Number(),
        document: Type.Optional(
          Type.Object(
            { text: Type.String() },
            { description: 'Only with `return_documents`; never null.' },
          ),
        ),
      }),
      { description: 'The best first; where scores are the same, in the order of the request.' },
    ),
    usage: Type.Object({
      total_tokens: Type.Integer({ description: '0 where the upstream does not count.' }),
    }),
    meta: Type.Object({
      billed_units: Type.Object({
        search_units: Type.Integer({ description: 'One for every 100 documents begun.' }),
      }),
    }),
  },
  { $id: 'RerankAnswer' },
)
export type RerankAnswer = Frozen<Static<typeof rerankAnswer>>
