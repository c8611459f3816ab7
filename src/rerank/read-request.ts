import type { RerankInput } from '#inference/rerank.ts'
import { AppError } from '#lib/errors.ts'
import { isRecord, withoutNulls } from '#lib/json.ts'

/** The body of `POST /v1/rerank`: what Cohere and Jina take; what else is in it is ignored. */
export type RerankBody = RerankInput & {
  readonly model: string | null
  readonly returnDocuments: boolean
}

export const documentsMax = 1_000

/** Throws `rerank_bad_request` that names the field at fault. */
export function readRerankRequest(
  body: unknown,
  { inputCharsMax }: { inputCharsMax: number },
): RerankBody {
  if (!isRecord(body)) throw bad('', 'The request body must be an object.')
  const fields = withoutNulls(body)
  const { model = null, query, return_documents: returnDocuments = false } = fields
  if (model !== null && (typeof model !== 'string' || model === '')) {
    throw bad('model', 'model must be the name of a model.')
  }
  if (typeof query !== 'string' || query.trim() === '') {
    throw bad('query', 'query must be a text that is not blank.')
  }
  if (typeof returnDocuments !== 'boolean') {
    throw bad('return_documents', 'return_documents must be true or false.')
  }
  const documents = readDocuments(fields['documents'])
  const chars = documents.reduce((sum, text) => sum + text.length, query.length)
  if (chars > inputCharsMax) throw bad('documents', `All may have ${inputCharsMax} characters.`)
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
    throw bad('documents', 'documents must be a list that is not empty.')
  }
  if (value.length > documentsMax) throw bad('documents', `At most ${documentsMax} documents.`)
  return value.map((document: unknown, at) => {
    const text = isRecord(document) ? document['text'] : document
    if (typeof text === 'string' && text.trim() !== '') return text
    throw bad(`documents[${at}]`, 'A document must be a text that is not blank.')
  })
}

function readCount(value: unknown, param: string): number | null {
  if (value === undefined) return null
  if (typeof value === 'number' && Number.isInteger(value) && value >= 1) return value
  throw bad(param, `${param} must be a whole number from 1.`)
}

function bad(param: string, sentence: string): AppError {
  return new AppError('rerank_bad_request', sentence, param === '' ? {} : { param })
}
