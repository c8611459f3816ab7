import { AppError } from '#lib/errors.ts'
import { asRecord, isRecord, type JsonObject } from '#lib/json.ts'
import { isAllowedType, unsafeFile } from './file-types.ts'
import { askJson } from './json-answer.ts'
import { type Layer, layersOf } from './oci-layers.ts'
import { type OciReference, readReference } from './oci-reference.ts'
import type { Origin } from './origin.ts'
import { refusalOf } from './refusal.ts'
import { badSource, noFiles } from './select-files.ts'
import type { RemoteFile, Resolved, Source, SourceContext } from './source.ts'

type OciSource = Extract<Source, { kind: 'oci' }>

const manifestTypes = [
  'application/vnd.oci.image.manifest.v1+json',
  'application/vnd.docker.distribution.manifest.v2+json',
]
const indexTypes = [
  'application/vnd.oci.image.index.v1+json',
  'application/vnd.docker.distribution.manifest.list.v2+json',
]

/** The files that a manifest in a registry names, each by its digest. */
export async function resolveOci(
  { origin }: { origin: Origin },
  source: OciSource,
  context: SourceContext,
): Promise<Resolved> {
  const place = readReference(source.reference)
  const { digest, manifest } = await manifestOf(origin, place, context.signal)
  const layers = layersOf(manifest)
  if (layers.length === 0) throw noFiles('The reference names no files of a model.')
  const fit = layers.filter(({ path }) => isAllowedType(path, context.allowsUnsafe))
  if (fit.length === 0) throw unsafeFile(layers[0]?.path ?? '')
  if (fit.length < layers.length) {
    context.say('info', `${layers.length - fit.length} files are of other types and are left out.`)
  }
  return { revision: digest, files: fit.map((layer) => remoteFile(layer, place)) }
}

type Manifest = { digest: string; manifest: JsonObject }

/** An index is followed where only one manifest of it can be meant. */
async function manifestOf(
  origin: Origin,
  place: OciReference,
  signal: AbortSignal,
): Promise<Manifest> {
  const first = await askManifest(origin, place, signal)
  if (!isIndex(first.manifest)) return first
  const entries = listOf(first.manifest['manifests']).filter(isModel)
  const [entry] = entries
  if (entry === undefined || entries.length > 1) {
    throw badSource('The reference names several manifests; name one of them by its digest.')
  }
  const digest = String(entry['digest'])
  const one = readReference(`${new URL(place.base).host}/${nameOf(place)}@${digest}`)
  const second = await askManifest(origin, one, signal)
  if (isIndex(second.manifest)) throw badSource('The reference names an index within an index.')
  return second
}

async function askManifest(
  origin: Origin,
  { base, reference, digest }: OciReference,
  signal: AbortSignal,
): Promise<Manifest> {
  const headers = { accept: [...manifestTypes, ...indexTypes].join(', ') }
  const url = new URL(`${base}/manifests/${reference}`)
  const answer = await askJson(origin, url, { headers, signal })
  if (answer.status !== 200) throw refusalOf(answer)
  const found = `sha256:${new Bun.CryptoHasher('sha256').update(answer.bytes).digest('hex')}`
  if (digest !== null && digest !== found) {
    throw new AppError('upstream_invalid_answer', 'The registry answered with another manifest.', {
      code: 'hash_mismatch',
    })
  }
  return { digest: found, manifest: asRecord(answer.value) }
}

function remoteFile({ path, bytes, digest }: Layer, { base }: OciReference): RemoteFile {
  const url = `${base}/blobs/${digest}`
  return { path, bytes, sha256: digest.slice('sha256:'.length), from: { url } }
}

function isIndex(manifest: JsonObject): boolean {
  return indexTypes.includes(String(manifest['mediaType'])) || Array.isArray(manifest['manifests'])
}

/** Beside manifests, indexes hold statements about how they were made. */
function isModel(entry: JsonObject): boolean {
  const isStatement = asRecord(entry['annotations'])['vnd.docker.reference.type'] !== undefined
  return (
    !isStatement &&
    (entry['mediaType'] === undefined || manifestTypes.includes(String(entry['mediaType'])))
  )
}

function nameOf({ base }: OciReference): string {
  return new URL(base).pathname.slice('/v2/'.length)
}

function listOf(value: unknown): JsonObject[] {
  return Array.isArray(value) ? value.filter(isRecord) : []
}
