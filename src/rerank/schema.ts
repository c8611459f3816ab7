import { type Static, Type } from '@sinclair/typebox'
import { createReaders } from '#api/read-object.ts'
import { integerFrom, nonEmptyString, object, optional } from '#api/request-schema.ts'
import type { RerankInput } from '#inference/rerank.ts'
import { AppError } from '#lib/errors.ts'
import type { Frozen } from '#lib/frozen.ts'
import { isRecord } from '#lib/json.ts'

const nonEmptyText = Type.String({ minLength: 1 })

/** The common fields of the APIs of Cohere and Jina. Unknown fields are ignored. */
export const rerankBody = object(
  {
    model: optional(nonEmptyString('A model of mode `rerank`; by default the configured one.')),
    query: nonEmptyString('The query to rank the documents by.'),
    documents: Type.Array(Type.Union([nonEmptyText, Type.Object({ text: nonEmptyText })]), {
      minItems: 1,
      maxItems: 1_000,
      description: 'Texts, or objects with a `text`. Blank texts are refused.',
    }),
    top_n: optional(integerFrom(1, 'The most results; the configuration may set a lower limit.')),
    max_tokens_per_doc: optional(integerFrom(1, 'The model truncates longer documents.')),
    return_documents: optional(
      Type.Boolean({ default: false, description: 'Whether results include their document.' }),
    ),
  },
  { $id: 'RerankRequest' },
)

export type RerankRequest = RerankInput & {
  readonly model: string | null
  readonly returnDocuments: boolean
}

const { readObject } = createReaders(invalid)

/** Throws `rerank_bad_request` with the invalid field as `param`. */
export function readRerankRequest(
  body: unknown,
  { inputCharsMax }: { inputCharsMax: number },
): RerankRequest {
  const fields = readObject(rerankBody, body, '')
  const { model = null, query, top_n: topN = null, return_documents = false } = fields
  if (query.trim() === '') throw invalid('query', 'must be a text that is not blank')
  const documents = fields.documents.map((document, at) => {
    const text = isRecord(document) ? document['text'] : document
    if (typeof text === 'string' && text.trim() !== '') return text
    throw invalid(`documents[${at}]`, 'must be a text that is not blank')
  })
  const chars = documents.reduce((sum, text) => sum + text.length, query.length)
  if (chars > inputCharsMax) {
    throw invalid('documents', `may have ${inputCharsMax} characters in total`)
  }
  const tokensPerDocumentMax = fields.max_tokens_per_doc
  return {
    model,
    query,
    documents,
    returnDocuments: return_documents,
    topN,
    ...(tokensPerDocumentMax === undefined ? {} : { tokensPerDocumentMax }),
  }
}

/** `predicate` completes the sentence that begins with the field. */
function invalid(param: string, predicate: string): AppError {
  if (param === '') return new AppError('rerank_bad_request', `The request body ${predicate}.`)
  return new AppError('rerank_bad_request', `${param} ${predicate}.`, { param })
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
