import { refusedField } from '#lib/unprocessable.ts'
import type { InstalledModel } from './installed.ts'
import type { Resolved, Source } from './sources/source.ts'

/** `name` or `org/name`, in signs that every file system and URL takes. */
export const modelName = /^[A-Za-z0-9][A-Za-z0-9._-]{0,95}(?:\/[A-Za-z0-9][A-Za-z0-9._-]{0,95})?$/

const modelFile = /\.(gguf|safetensors|onnx)$/i

/** The name of a model whose caller gave none; throws an `AppError` of status 422. */
export function nameOf(source: Source): string {
  const name = plainName(source)
  // An upstream names its models itself, and keeps them itself.
  if (source.kind === 'upstream' || modelName.test(name)) return name
  throw refusedField('name', 'is needed: none can be made of where the model comes from')
}

function plainName(source: Source): string {
  switch (source.kind) {
    case 'hub':
      return source.repository
    case 'url':
      return fromPath(decode(new URL(source.url).pathname))
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
  const [place = '', tag = 'latest'] = splitReference(reference)
  const parts = place.split('/').slice(1)
  const last = clean(parts.at(-1) ?? '') + (tag === 'latest' ? '' : `-${clean(tag)}`)
  const organisation = parts.at(-2)
  if (organisation === undefined || organisation === 'library') return last
  return `${clean(organisation)}/${last}`
}

/** The place, and the tag or digest; the colon of a port is none of a tag. */
function splitReference(reference: string): string[] {
  const [, place = reference, rest] = /^(.*?)(?:[:@]([^/]*))?$/.exec(reference) ?? []
  return rest === undefined ? [place] : [place, rest]
}

function clean(text: string): string {
  return text.replace(/[^A-Za-z0-9._-]+/g, '-').replace(/^[^A-Za-z0-9]+|-+$/g, '')
}

function decode(path: string): string {
  try {
    return decodeURIComponent(path)
  } catch {
    return path
  }
}

/** Where a model comes from, for people: what may be secret in a URL is left out. */
export function describeSource(source: Source): string {
  const at = 'revision' in source ? `@${source.revision}` : ''
  return `${originOf(source)}${at}`
}

/** The same without what says which state of it is meant. */
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

/** Whether what is installed comes from the same place, in whichever state. */
export function isOfOrigin(installed: InstalledModel, source: Source): boolean {
  const origin = originOf(source)
  return installed.source === origin || installed.source.startsWith(`${origin}@`)
}

/** Whether what is installed is, as far as can be known, what the source has now. */
export function isCurrent(installed: InstalledModel, { revision, files }: Resolved): boolean {
  const hashes = new Map(installed.files.map(({ path, sha256 }) => [inVersion(path), sha256]))
  if (hashes.size !== files.length) return false
  // It was damaged since, or nobody had vouched for it then.
  if (!installed.isVerified && files.some(({ sha256 }) => sha256 !== null)) return false
  const isSameState = revision !== null && revision === installed.revision
  return files.every(({ path, sha256 }) => {
    const known = hashes.get(path)
    return known !== undefined && (sha256 === null ? isSameState : sha256 === known)
  })
}

/** Files lie in a folder of their download; the source knows them without it. */
export function inVersion(path: string): string {
  return path.slice(path.indexOf('/') + 1)
}
