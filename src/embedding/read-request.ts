import { type Static, Type } from '@sinclair/typebox'
import { AppError } from '#lib/errors.ts'
import { isRecord, withoutNulls } from '#lib/json.ts'
import { compileChecker } from '#lib/schema.ts'

/** The body of `POST /v1/embeddings`, as OpenAI defines it; what else is in it is ignored. */
export const embeddingRequest = Type.Object({
  model: Type.String({ minLength: 1, description: 'the name of a model' }),
  input: Type.Unknown({ description: 'a text or an array of texts' }),
  encoding_format: Type.Optional(
    Type.Union([Type.Literal('float'), Type.Literal('base64')], {
      description: '"float" or "base64"',
    }),
  ),
  dimensions: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 65_536, description: 'a whole number from 1' }),
  ),
})

export type EmbeddingRequest = Omit<Static<typeof embeddingRequest>, 'input'> & {
  readonly texts: readonly string[]
}

const checker = compileChecker(embeddingRequest)

/** As many as OpenAI takes. */
export const textsMax = 2_048

export function readEmbeddingRequest(
  body: unknown,
  { inputCharsMax }: { inputCharsMax: number },
): EmbeddingRequest {
  if (!isRecord(body)) throw bad('', 'The request body must be an object.')
  const given = withoutNulls(body)
  if (!checker.check(given)) {
    const field = checker.firstError(given)?.path ?? ''
    const expected = embeddingRequest.properties[field as 'model']?.description
    const isMissing = given[field] === undefined
    throw bad(field, `${field} ${isMissing ? 'is required' : `must be ${expected}`}.`)
  }
  const { input, ...rest } = given
  const texts = readTexts(input)
  if (texts.reduce((sum, text) => sum + text.length, 0) > inputCharsMax) {
    throw bad('input', `input may have ${inputCharsMax} characters.`)
  }
  return { ...rest, texts }
}

function readTexts(input: unknown): string[] {
  const texts = Array.isArray(input) ? input : [input]
  if (texts.length === 0) throw bad('input', 'input must not be empty.')
  if (texts.length > textsMax) throw bad('input', `input may have ${textsMax} texts.`)
  return texts.map((text: unknown, at) => {
    const path = Array.isArray(input) ? `input[${at}]` : 'input'
    if (typeof text === 'number' || Array.isArray(text)) {
      throw bad(path, 'input must be text; tokens belong to a tokenizer that is not known here.')
    }
    if (typeof text !== 'string') throw bad(path, `${path} must be a text.`)
    if (text === '') throw bad(path, `${path} must not be empty.`)
    return text
  })
}

function bad(param: string, sentence: string): AppError {
  return new AppError('invalid_request', sentence, param === '' ? {} : { param })
}
