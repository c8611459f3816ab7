import { type Static, Type } from '@sinclair/typebox'
import { isRecord, withoutNulls } from '#lib/json.ts'
import { compileChecker } from '#lib/schema.ts'
import { refused, refusedBySchema, refusedField } from '#lib/unprocessable.ts'
import type { InstallRequest } from './installer.ts'
import { defaultName, modelName } from './names.ts'
import { parseReference } from './sources/oci.ts'
import type { Source } from './sources/source.ts'

/** Requests of `/v1/model-installer`. */

const sourceKinds = ['hub', 'url', 'oci', 'local', 'upstream'] as const
type SourceKind = (typeof sourceKinds)[number]

export const installBody = Type.Object(
  {
    model: Type.String({
      description:
        'The model: `org/name` of the hub, a URL, a registry reference (`registry/name:tag`, `registry/name@sha256:…`, also of the hub: `hf.co/org/name:Q4_K_M`), a path on this machine, or a model name of an upstream.',
      minLength: 1,
      maxLength: 4_096,
    }),
    source: Type.Optional(
      Type.Union(
        sourceKinds.map((kind) => Type.Literal(kind)),
        {
          description:
            'Default: `upstream` if an upstream is given, `url` if `model` is a URL, `oci` if it has a registry, a tag or a digest, else `hub`.',
        },
      ),
    ),
    upstream: Type.Optional(
      Type.String({
        description:
          'The configured upstream that downloads the model to itself by `/api/pull`, as Ollama does.',
        minLength: 1,
        maxLength: 256,
      }),
    ),
    revision: Type.Optional(
      Type.String({
        description: 'Hub only: a branch, tag or commit. Default: `main`.',
        minLength: 1,
        maxLength: 256,
      }),
    ),
    files: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: 256 }), {
        description: 'Hub only: globs that select files. Default: all files of known model types.',
        minItems: 1,
        maxItems: 32,
      }),
    ),
    name: Type.Optional(
      Type.String({
        description:
          'The name to install the model under: `name` or `org/name` of letters, digits, `.`, `_` and `-`. Default: derived from the source.',
        minLength: 1,
        maxLength: 193,
      }),
    ),
    sha256: Type.Optional(
      Type.String({
        description: 'URL only: the expected SHA-256 of the file, in hex.',
        pattern: '^[0-9A-Fa-f]{64}$',
      }),
    ),
    allow_unsafe: Type.Optional(
      Type.Boolean({
        description: 'Accept files that can run code when loaded (pickle).',
        default: false,
      }),
    ),
  },
  { additionalProperties: false },
)

/** The largest integer of the database. */
const seqMax = 2_147_483_647

const afterSeq = Type.Integer({
  description: 'The number of the last line received.',
  minimum: 0,
  maximum: seqMax,
  default: 0,
})
export const linesQuery = Type.Object({
  after_seq: afterSeq,
  limit: Type.Integer({
    description: 'Lines per response.',
    minimum: 1,
    maximum: 1_000,
    default: 500,
  }),
})
export const eventsQuery = Type.Object({ after_seq: afterSeq })

const checker = compileChecker(installBody)

type InstallBody = Static<typeof installBody>

/** Validates and reads a body; throws an `AppError` of status 422. */
export function readInstall(body: unknown): InstallRequest {
  if (!isRecord(body)) throw refused('', 'The body must be an object.')
  const given = withoutNulls(body)
  if (!checker.check(given)) throw refusedBySchema(checker.firstError(given))
  const kind = given.source ?? kindOf(given)
  rejectForeignFields(given, kind)
  const source = sourceOf[kind](given)
  if (given.name !== undefined && !modelName.test(given.name)) {
    throw refusedField('name', 'must be "name" or "org/name" of letters, digits, ".", "_" and "-"')
  }
  const model = given.name ?? defaultName(source)
  return { model, source, allowsUnsafe: given.allow_unsafe ?? false }
}

function kindOf({ upstream, model }: InstallBody): SourceKind {
  if (upstream !== undefined) return 'upstream'
  if (/^https?:\/\//i.test(model)) return 'url'
  if (hubReference(model) !== null) return 'hub'
  return isReference(model) ? 'oci' : 'hub'
}

const referenceScheme = /^(?:oci|docker):\/\//i

/** With a scheme, a digest, a tag, or a registry before a name of at least two parts. */
function isReference(model: string): boolean {
  return (
    referenceScheme.test(model) ||
    /^[a-z0-9[][^\s]*(?:@sha256:|:[\w.-]+$)/i.test(model) ||
    /^(?:localhost|[\w-]+(?:\.[\w-]+)+)(?::\d+)?\/[^/]+\/./i.test(model) ||
    /^(?:localhost|[\w.-]+:\d+|\[[0-9a-f:.]+\](?::\d+)?)\/./i.test(model)
  )
}

/** The repository of the hub that a reference of container tools names, and its quantisation. */
function hubReference(model: string): { repository: string; quantisation: string | null } | null {
  const plain = model.replace(referenceScheme, '')
  const found = /^(?:hf\.co|huggingface\.co)\/([^/:@]+\/[^/:@]+)(?::([\w.-]+))?$/i.exec(plain)
  if (found === null) return null
  const [, repository = '', tag = 'latest'] = found
  return { repository, quantisation: tag === 'latest' ? null : tag }
}

/** `Q4_K_M` → `*[qQ]4_[kK]_[mM]*.gguf`: tags are written in any case. */
function globOf(quantisation: string): string {
  const letters = quantisation.replace(
    /[a-z]/gi,
    (letter) => `[${letter.toLowerCase()}${letter.toUpperCase()}]`,
  )
  return `*${letters}*.gguf`
}

/** Fields of one source kind. */
const ownFields = {
  upstream: 'upstream',
  revision: 'hub',
  files: 'hub',
  sha256: 'url',
} as const satisfies Partial<Record<keyof InstallBody, SourceKind>>

function rejectForeignFields(given: InstallBody, kind: SourceKind): void {
  for (const [field, owner] of Object.entries(ownFields)) {
    if (!(field in given) || owner === kind) continue
    throw refusedField(field, `is only allowed for the source "${owner}", not for "${kind}"`)
  }
  // Models of an upstream keep their names.
  if (kind === 'upstream' && given.name !== undefined) {
    throw refusedField('name', 'is not allowed for models of an upstream')
  }
}

const sourceOf: Readonly<Record<SourceKind, (given: InstallBody) => Source>> = {
  hub: ({ model, revision = 'main', files }) => {
    const { repository, quantisation } = hubReference(model) ?? { repository: model }
    if (!modelName.test(repository)) throw badSource('A hub model is named "org/name".')
    const globs = quantisation ? [globOf(quantisation)] : []
    return { kind: 'hub', repository, revision, files: files ?? globs }
  },
  url: ({ model, sha256 }) => {
    if (!URL.canParse(model)) throw badSource('"model" is not a URL.')
    return { kind: 'url', url: model, sha256: sha256?.toLowerCase() ?? null }
  },
  oci: (given) => {
    if (hubReference(given.model) !== null) return sourceOf.hub(given)
    const reference = given.model.replace(referenceScheme, '')
    parseReference(reference)
    return { kind: 'oci', reference }
  },
  local: ({ model }) => ({ kind: 'local', path: model }),
  upstream: ({ model, upstream }) => {
    if (upstream === undefined) throw refusedField('upstream', 'is required for this source')
    return { kind: 'upstream', upstream, model }
  },
}

function badSource(message: string) {
  return refused('model', message, 'bad_source')
}
