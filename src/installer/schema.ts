import { type Static, Type } from '@sinclair/typebox'
import { isRecord, withoutNulls } from '#lib/json.ts'
import { compileChecker } from '#lib/schema.ts'
import { refused, refusedBySchema, refusedField } from '#lib/unprocessable.ts'
import type { InstallWish, LinePage } from './installer.ts'
import { modelName, nameOf } from './names.ts'
import type { Source } from './sources/source.ts'

/** What `/v1/model-installer` is asked. */

const sourceKinds = ['hub', 'url', 'oci', 'local', 'upstream'] as const
type SourceKind = (typeof sourceKinds)[number]

export const installBody = Type.Object(
  {
    model: Type.String({
      description:
        'Which model: `org/name` of the hub, a URL, a reference of a registry (`registry/name:tag`), a path of this machine, or the name that an upstream knows.',
      minLength: 1,
      maxLength: 4_096,
    }),
    source: Type.Optional(
      Type.Union(
        sourceKinds.map((kind) => Type.Literal(kind)),
        {
          description:
            'Where it comes from. Without it: `upstream` where an upstream is named, `url` where `model` is one, else `hub`.',
        },
      ),
    ),
    upstream: Type.Optional(
      Type.String({
        description:
          'The configured upstream that is to bring the model to itself, by `/api/pull` as Ollama has it.',
        minLength: 1,
        maxLength: 256,
      }),
    ),
    revision: Type.Optional(
      Type.String({
        description: 'Of the hub: a branch, a tag or a commit. `main` without it.',
        minLength: 1,
        maxLength: 256,
      }),
    ),
    files: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: 256 }), {
        description:
          'Of the hub: which files, as globs. Without them, all of the types that models consist of.',
        minItems: 1,
        maxItems: 32,
      }),
    ),
    name: Type.Optional(
      Type.String({
        description:
          'The name to install it under: `name` or `org/name` of letters, digits, `.`, `_` and `-`. Without it, one is made of where the model comes from.',
        minLength: 1,
        maxLength: 193,
      }),
    ),
    sha256: Type.Optional(
      Type.String({
        description: 'Of a URL: the SHA-256 that the file must have, in hex.',
        pattern: '^[0-9A-Fa-f]{64}$',
      }),
    ),
    allow_unsafe: Type.Optional(
      Type.Boolean({
        description: 'Whether to take files that can run code when they are loaded (pickle).',
        default: false,
      }),
    ),
  },
  { additionalProperties: false },
)

const linesDefault = 500
const linesMax = 1_000

const afterSeq = Type.Optional(
  Type.Integer({ description: 'Only the lines after this one.', minimum: 0, default: 0 }),
)
export const linesQuery = Type.Object({
  after_seq: afterSeq,
  limit: Type.Optional(
    Type.Integer({
      description: 'Lines of one answer.',
      minimum: 1,
      maximum: linesMax,
      default: linesDefault,
    }),
  ),
})
export const eventsQuery = Type.Object({ after_seq: afterSeq })

const checker = compileChecker(installBody)

type InstallBody = Static<typeof installBody>

/** What a body asks for; throws an `AppError` of status 422. */
export function readInstall(body: unknown): InstallWish {
  if (!isRecord(body)) throw refused('', 'The body must be an object.')
  const given = withoutNulls(body)
  if (!checker.check(given)) throw refusedBySchema(checker.firstError(given))
  const kind = given.source ?? kindOf(given)
  refuseForeignFields(given, kind)
  const source = sourceOf[kind](given)
  if (given.name !== undefined && !modelName.test(given.name)) {
    throw refusedField('name', 'must be "name" or "org/name" of letters, digits, ".", "_" and "-"')
  }
  const model = given.name ?? nameOf(source)
  return { model, source, allowsUnsafe: given.allow_unsafe ?? false }
}

function kindOf({ upstream, model }: InstallBody): SourceKind {
  if (upstream !== undefined) return 'upstream'
  return /^https?:\/\//i.test(model) ? 'url' : 'hub'
}

/** Fields that mean something to one kind alone. */
const ownFields = {
  upstream: 'upstream',
  revision: 'hub',
  files: 'hub',
  sha256: 'url',
} as const satisfies Partial<Record<keyof InstallBody, SourceKind>>

function refuseForeignFields(given: InstallBody, kind: SourceKind): void {
  for (const [field, owner] of Object.entries(ownFields)) {
    if (!(field in given) || owner === kind) continue
    throw refusedField(field, `goes with the source "${owner}", and this one is "${kind}"`)
  }
  // It keeps them itself, under its own names.
  if (kind === 'upstream' && given.name !== undefined) {
    throw refusedField('name', 'cannot be given to a model that an upstream keeps')
  }
}

const sourceOf: Readonly<Record<SourceKind, (given: InstallBody) => Source>> = {
  hub: ({ model, revision = 'main', files = [] }) => {
    if (!modelName.test(model)) throw badSource('A model of the hub is called "org/name".')
    return { kind: 'hub', repository: model, revision, files }
  },
  url: ({ model, sha256 }) => {
    if (!URL.canParse(model)) throw badSource('"model" is no URL.')
    return { kind: 'url', url: model, sha256: sha256?.toLowerCase() ?? null }
  },
  oci: ({ model }) => ({ kind: 'oci', reference: model }),
  local: ({ model }) => ({ kind: 'local', path: model }),
  upstream: ({ model, upstream }) => {
    if (upstream === undefined) throw refusedField('upstream', 'is required by this source')
    return { kind: 'upstream', upstream, model }
  },
}

function badSource(sentence: string) {
  return refused('model', sentence, 'bad_source')
}

type Query = Readonly<Record<string, string | undefined>>

/** Throws an `AppError` of status 422, as the next one does. */
export function readLinePage(query: Query): LinePage {
  return {
    afterSeq: readAfterSeq(query),
    limit: readCount(query, 'limit', [1, linesMax, linesDefault]),
  }
}

export function readAfterSeq(query: Query): number {
  return readCount(query, 'after_seq', [0, seqMax, 0])
}

/** The largest number of the database's integers. */
const seqMax = 2_147_483_647

function readCount(
  query: Query,
  name: string,
  [min, max, otherwise]: readonly [number, number, number],
): number {
  const text = query[name]
  if (text === undefined) return otherwise
  const value = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN
  if (value >= min && value <= max) return value
  throw refusedField(name, `must be a whole number from ${min} to ${max}`)
}
