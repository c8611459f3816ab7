import { refusedField } from '#lib/unprocessable.ts'
import { percentDecoded } from '#lib/url.ts'
import type { InstalledModel } from './library.ts'
import type { ResolvedSource, Source } from './sources/source.ts'
import type { Download } from './store.ts'

/** `name` or `org/name`, in characters that are valid in every file system and URL. */
export const modelName = /^[A-Za-z0-9][A-Za-z0-9._-]{0,95}(?:\/[A-Za-z0-9][A-Za-z0-9._-]{0,95})?$/

const modelFile = /\.(gguf|safetensors|onnx)$/i

/** The default name of a model; throws an `AppError` of status 422 if the source gives none. */
export function defaultName(source: Source): string {
  const name = plainName(source)
  // The models of an upstream keep their names.
  if (source.kind === 'upstream' || modelName.test(name)) return name
  throw refusedField('name', 'is required: the source does not give one')
}

function plainName(source: Source): string {
  switch (source.kind) {
    case 'hub':
      return source.repository
    case 'url':
      return fromPath(percentDecoded(new URL(source.url).pathname))
    case 'local':
      return fromPath(source.path)
    case 'oci':
      return fromReference(source.reference)
    case 'upstream':
      return `${source.upstream}/${source.model}`
  }
}

function fromPath(path: string): string {
  const last = path.split('/').findLast((part) => part !== '') ?? ''
  return clean(last.replace(modelFile, ''))
}

/** `registry/library/model:tag` → `model-tag`; `registry/org/model:latest` → `org/model`. */
function fromReference(reference: string): string {
  const [repository = '', tag = 'latest'] = splitReference(reference)
  const parts = repository.split('/').slice(1)
  // Of a digest, as much as tells versions apart.
  const shortTag = tag.replace(/sha256:([0-9a-f]{12})[0-9a-f]*$/, '$1')
  const last = clean(parts.at(-1) ?? '') + (tag === 'latest' ? '' : `-${clean(shortTag)}`)
  const organisation = parts.at(-2)
  if (organisation === undefined || organisation === 'library') return last
  return `${clean(organisation)}/${last}`
}

/** The repository, and the tag or digest. The colon of a port does not start a tag. */
function splitReference(reference: string): string[] {
  const [, repository = reference, rest] = /^(.*?)(?:[:@]([^/]*))?$/.exec(reference) ?? []
  return rest === undefined ? [repository] : [repository, rest]
}

function clean(text: string): string {
  return text.replace(/[^A-Za-z0-9._-]+/g, '-').replace(/^[^A-Za-z0-9]+|-+$/g, '')
}

/** A readable source without the parts of a URL that may be secret. */
export function describeSource(source: Source): string {
  const at = 'revision' in source ? `@${source.revision}` : ''
  return `${originOf(source)}${at}`
}

export function taskSource(task: Download['task']): string {
  return task.kind === 'install' ? describeSource(task.source) : task.source
}

/** The source without its revision. */
function originOf(source: Source): string {
  switch (source.kind) {
    case 'hub':
      return `hub:${source.repository}`
    case 'url': {
      const { origin, pathname } = new URL(source.url)
      return `url:${origin}${pathname}`
    }
    case 'oci':
      return `oci:${source.reference}`
    case 'local':
      return `local:${source.path}`
    case 'upstream':
      return `upstream:${source.upstream}/${source.model}`
  }
}

/** Whether a model was installed from this source, in any revision. */
export function isFromSource(installed: InstalledModel, source: Source): boolean {
  const origin = originOf(source)
  return installed.source === origin || installed.source.startsWith(`${origin}@`)
}

/** Whether the installed files are those of the source, according to its hashes and revision. */
export function isCurrent(installed: InstalledModel, { revision, files }: ResolvedSource): boolean {
  const hashes = new Map(installed.files.map(({ path, sha256 }) => [withoutVersion(path), sha256]))
  if (hashes.size !== files.length) return false
  // Damaged since, or installed without a published hash.
  if (!installed.isVerified && files.some(({ sha256 }) => sha256 !== null)) return false
  const isSameRevision = revision !== null && revision === installed.revision
  return files.every(({ path, sha256 }) => {
    const known = hashes.get(path)
    return known !== undefined && (sha256 === null ? isSameRevision : sha256 === known)
  })
}

/** The path of an installed file without the folder of its download. */
export function withoutVersion(path: string): string {
  return path.slice(path.indexOf('/') + 1)
}
