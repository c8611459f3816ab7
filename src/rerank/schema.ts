import { type Static, Type } from '@sinclair/typebox'
import { withNulls } from '#api/described.ts'
import type { RerankInput } from '#inference/rerank.ts'
import { AppError } from '#lib/errors.ts'
import type { Frozen } from '#lib/frozen.ts'
import { isRecord, withoutNulls } from '#lib/json.ts'

const documentsMax = 1_000

const nonEmptyString = () => Type.String({ minLength: 1 })

export const rerankBody = withNulls(
  Type.Object(
    {
      model: Type.Optional(
        Type.String({
          minLength: 1,
          description: 'A model of mode `rerank`; by default the configured one.',
        }),
      ),
      query: Type.String({ minLength: 1, description: 'The query to rank the documents by.' }),
      documents: Type.Array(
        Type.Union([nonEmptyString(), Type.Object({ text: nonEmptyString() })]),
        {
          minItems: 1,
          maxItems: documentsMax,
          description: 'Texts, or objects with a `text`. Blank texts are refused.',
        },
      ),
      top_n: Type.Optional(
        Type.Integer({
          minimum: 1,
          description: 'The most results; the configuration may set a lower limit.',
        }),
      ),
      max_tokens_per_doc: Type.Optional(
        Type.Integer({ minimum: 1, description: 'The model truncates longer documents.' }),
      ),
      return_documents: Type.Optional(
        Type.Boolean({ default: false, description: 'Whether results include their document.' }),
      ),
    },
    { $id: 'RerankRequest', additionalProperties: true },
  ),
)

/** The common fields of the APIs of Cohere and Jina. Unknown fields are ignored. */
export type RerankRequest = RerankInput & {
  readonly model: string | null
  readonly returnDocuments: boolean
}

/** Throws `rerank_bad_request` with the invalid field as `param`. */
export function readRerankRequest(
  body: unknown,
  { inputCharsMax }: { inputCharsMax: number },
): RerankRequest {
  if (!isRecord(body)) throw invalid('', 'The request body must be an object.')
  const fields = withoutNulls(body)
  const { model = null, query, return_documents: returnDocuments = false } = fields
  if (model !== null && (typeof model !== 'string' || model === '')) {
    throw invalid('model', 'model must be the name of a model.')
  }
  if (typeof query !== 'string' || query.trim() === '') {
    throw invalid('query', 'query must be a text that is not blank.')
  }
  if (typeof returnDocuments !== 'boolean') {
    throw invalid('return_documents', 'return_documents must be true or false.')
  }
  const documents = readDocuments(fields['documents'])
  const chars = documents.reduce((sum, text) => sum + text.length, query.length)
  if (chars > inputCharsMax) {
    throw invalid('documents', `The documents may have ${inputCharsMax} characters in total.`)
  }
  const tokensPerDocumentMax = readCount(fields['max_tokens_per_doc'], 'max_tokens_per_doc')
  return {
    model,
    query,
    documents,
    returnDocuments,
    topN: readCount(fields['top_n'], 'top_n'),
    ...(tokensPerDocumentMax === null ? {} : { tokensPerDocumentMax }),
  }
}

function readDocuments(value: unknown): string[] {
  if (!Array.isArray(value) || value.length === 0) {
    throw invalid('documents', 'documents must be a list that is not empty.')
  }
  if (value.length > documentsMax) throw invalid('documents', `At most ${documentsMax} documents.`)
  return value.map((document: unknown, at) => {
    const text = isRecord(document) ? document['text'] : document
    if (typeof text === 'string' && text.trim() !== '') return text
    throw invalid(`documents[${at}]`, 'A document must be a text that is not blank.')
  })
}

function readCount(value: unknown, param: string): number | null {
  if (value === undefined) return null
  if (typeof value === 'number' && Number.isInteger(value) && value >= 1) return value
  throw invalid(param, `${param} must be a whole number from 1.`)
}

function invalid(param: string, message: string): AppError {
  return new AppError('rerank_bad_request', message, param === '' ? {} : { param })
}

export const rerankResponse = Type.Object(
  {
    id: Type.String(),
    object: Type.Literal('rerank'),
    model: Type.String({ description: 'The model that was called.' }),
    results: Type.Array(
      Type.Object({
        index: Type.Integer({ description: 'The index of the document in the request.' }),
        relevance_score: Type.Number(),
        document: Type.Optional(
          Type.Object(
            { text: Type.String() },
            { description: 'Only with `return_documents`; never null.' },
          ),
        ),
      }),
      { description: 'The best first; equal scores in the order of the request.' },
    ),
    usage: Type.Object({
      total_tokens: Type.Integer({ description: '0 if the upstream reports no usage.' }),
    }),
    meta: Type.Object({
      billed_units: Type.Object({
        search_units: Type.Integer({ description: 'One per started 100 documents.' }),
      }),
    }),
  },
  { $id: 'RerankResponse' },
)
export type RerankResponse = Frozen<Static<typeof rerankResponse>>
