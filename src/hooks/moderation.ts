import { createHash } from 'node:crypto'
import { type Static, Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { asRecord, parseJson } from '#lib/json.ts'
import { createLru } from '#lib/lru.ts'
import { limitBody } from '#outbound/limit-body.ts'
import type { Check, CreateHook, HookText } from './hook.ts'

const optionsSchema = Type.Object(
  {
    upstream: Type.String({ minLength: 1 }),
    model: Type.String({ default: 'omni-moderation-latest', minLength: 1 }),
    /** The categories that are refused; empty: whatever the endpoint flags. */
    categories: Type.Array(Type.String({ minLength: 1 }), { default: [] }),
    input: Type.Boolean({ default: true }),
    output: Type.Boolean({ default: true }),
  },
  { additionalProperties: false },
)
type Options = Static<typeof optionsSchema>

/** Longer texts are checked in pieces. */
const pieceCharsMax = 20_000
const piecesPerRequestMax = 32
const answerBytesMax = 1_048_576
/** Allowed texts: a conversation repeats its history with each turn. */
const allowedMax = 10_000

/** Asks a moderation endpoint (`POST /v1/moderations` of OpenAI) about requests and whole outputs. */
export const createModeration: CreateHook = (given, tools) => {
  const options = readOptions(given)
  const { baseUrl, key, headers } = tools.upstream(options.upstream)
  const allowed = createLru<string, true>(allowedMax)

  async function flagsOf(input: readonly string[], signal: AbortSignal): Promise<string[]> {
    const response = await tools.fetch(`${baseUrl}/moderations`, {
      method: 'POST',
      headers: {
        ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
        ...headers,
        'content-type': 'application/json',
      },
      body: JSON.stringify({ model: options.model, input }),
      signal,
    })
    if (!response.ok) throw new Error(`the moderation endpoint answered ${response.status}`)
    const limited = limitBody(response, { bytesMax: answerBytesMax, signal, end() {} })
    const { results } = asRecord(parseJson(await limited.text()))
    if (!Array.isArray(results) || results.length !== input.length) {
      throw new Error('the moderation endpoint did not answer every input')
    }
    return results.flatMap((result) => readFlags(result, options.categories))
  }

  const checkAs = (what: string): Check => {
    return async (texts, signal) => {
      const pieces = [...piecesOf(texts)].map((text) => ({ text, hash: hashOf(text) }))
      const unknown = pieces.filter(({ hash }) => allowed.get(hash) === undefined)
      for (let at = 0; at < unknown.length; at += piecesPerRequestMax) {
        const asked = unknown.slice(at, at + piecesPerRequestMax)
        const flags = await flagsOf(
          asked.map(({ text }) => text),
          signal,
        )
        if (flags.length > 0) {
          return { refuse: `The ${what} was refused: ${[...new Set(flags)].join(', ')}.` }
        }
        for (const { hash } of asked) allowed.set(hash, true)
      }
      return undefined
    }
  }
  const checks = {
    ...(options.input ? { before: checkAs('request') } : {}),
    ...(options.output ? { after: checkAs('output') } : {}),
  }
  return { begin: () => checks }
}

function readOptions(given: unknown): Options {
  const options: unknown = Value.Default(optionsSchema, Value.Clone(given))
  if (Value.Check(optionsSchema, options)) return options
  const first = Value.Errors(optionsSchema, options).First()
  throw new TypeError(`options${first?.path ?? ''}: ${first?.message ?? 'not valid'}`)
}

/** The categories of a result that count; none: the text is allowed. Throws for what is no result. */
function readFlags(result: unknown, categories: readonly string[]): string[] {
  const { flagged, categories: found } = asRecord(result)
  if (typeof flagged !== 'boolean') throw new Error('the moderation endpoint sent no verdict')
  const names = Object.entries(asRecord(found))
    .filter(([, isFound]) => isFound === true)
    .map(([name]) => name)
  if (categories.length > 0) return names.filter((name) => categories.includes(name))
  if (!flagged) return []
  return names.length > 0 ? names : ['flagged']
}

/** Each piece once, in the order of the texts. */
function piecesOf(texts: readonly HookText[]): Set<string> {
  const pieces = new Set<string>()
  for (const { text } of texts) {
    for (let at = 0; at < text.length; at += pieceCharsMax) {
      const piece = text.slice(at, at + pieceCharsMax).toWellFormed()
      if (piece.trim() !== '') pieces.add(piece)
    }
  }
  return pieces
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('base64')
}
