import { type Static, Type } from '@sinclair/typebox'
import { createReaders } from '#api/read-object.ts'
import {
  expecting,
  integer,
  nonEmptyString,
  object,
  optional,
  type ShallowStatic,
} from '#api/request-schema.ts'
import { AppError } from '#lib/errors.ts'
import type { Frozen } from '#lib/frozen.ts'
import { compileChecker } from '#lib/schema.ts'
import { decodeTokens } from './token-texts.ts'

/** The same limit as OpenAI's. */
const textsMax = 2_048

/** Of one text; OpenAI's models read 8,191. */
const tokensMax = 131_072

const nonEmptyText = Type.String({ minLength: 1 })
const tokens = Type.Array(Type.Integer({ minimum: 0 }), { minItems: 1, maxItems: tokensMax })

/** The body of `POST /v1/embeddings`, as OpenAI defines it. Unknown fields are ignored. */
export const embeddingBody = object(
  {
    model: nonEmptyString(
      'A model of mode `embed`, or the built-in `local-hash`, which compares words by their letters.',
    ),
    input: expecting(
      'a non-empty string, an array of strings, or arrays of tokens',
      Type.Union(
        [
          nonEmptyText,
          Type.Array(nonEmptyText, { minItems: 1, maxItems: textsMax }),
          tokens,
          Type.Array(tokens, { minItems: 1, maxItems: textsMax }),
        ],
        {
          description:
            'A text, or several texts, each also as an array of tokens of `cl100k_base`, which is decoded.',
        },
      ),
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
  readonly inputs: readonly (string | readonly number[])[]
}

const { readObject } = createReaders(invalid)

/** Throws `invalid_request` with the invalid field as `param`. */
export function readEmbeddingRequest(body: unknown): EmbeddingRequest {
  const { input, ...rest } = readObject(embeddingBody, body, '')
  if (typeof input === 'string') return { ...rest, inputs: [input] }
  if (typeof input[0] === 'number') return { ...rest, inputs: [readTokens(input, 'input')] }
  if (input.length > textsMax) throw invalid('input', `may have ${textsMax} texts`)
  return { ...rest, inputs: input.map((text, at) => readInput(text, `input[${at}]`)) }
}

/** The texts of a request; throws `invalid_request`. */
export async function readTexts(
  { inputs }: EmbeddingRequest,
  { inputCharsMax }: { inputCharsMax: number },
): Promise<readonly string[]> {
  const texts: string[] = []
  let chars = 0
  for (const [at, input] of inputs.entries()) {
    const param = inputs.length === 1 ? 'input' : `input[${at}]`
    const text = typeof input === 'string' ? input : await decodeTokens(input, param)
    chars += text.length
    if (chars > inputCharsMax) throw invalid('input', `may have ${inputCharsMax} characters`)
    texts.push(text)
  }
  return texts
}

function readInput(text: unknown, param: string): string | readonly number[] {
  if (Array.isArray(text)) return readTokens(text, param)
  if (typeof text !== 'string') throw invalid(param, 'must be a string or an array of tokens')
  if (text === '') throw invalid(param, 'must not be empty')
  return text
}

const tokensChecker = compileChecker(tokens)

function readTokens(value: readonly unknown[], param: string): readonly number[] {
  if (tokensChecker.check(value)) return value
  throw invalid(param, `must have 1 to ${tokensMax} tokens, which are integers of 0 or more`)
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
