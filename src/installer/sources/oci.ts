import { AppError } from '#lib/errors.ts'
import { asRecord, isRecord, type JsonObject } from '#lib/json.ts'
import { addressOfHost, isPublicAddress } from '#outbound/addresses.ts'
import { isAllowedType, unsafeFile, validatePath } from './file-rules.ts'
import type { Origin } from './origin.ts'
import { fetchJson, statusError } from './origin-response.ts'
import { badSource, noFiles } from './select-files.ts'
import type { ResolvedSource, Source, SourceContext } from './source.ts'

type OciSource = Extract<Source, { kind: 'oci' }>

const manifestTypes = [
  'application/vnd.oci.image.manifest.v1+json',
  'application/vnd.docker.distribution.manifest.v2+json',
]
const indexTypes = [
  'application/vnd.oci.image.index.v1+json',
  'application/vnd.docker.distribution.manifest.list.v2+json',
]

/** The files of a manifest in a container registry, each with its digest. */
export async function resolveOci(
  origin: Origin,
  source: OciSource,
  context: SourceContext,
): Promise<ResolvedSource> {
  const reference = parseReference(source.reference)
  const { digest, manifest } = await findManifest(origin, reference, context.signal)
  const layers = layersOf(manifest)
  if (layers.length === 0) throw noFiles('The reference names no model files.')
  const allowed = layers.filter(({ path }) => isAllowedType(path, context.allowsUnsafe))
  if (allowed.length === 0) throw unsafeFile(layers[0]?.path ?? '')
  if (allowed.length < layers.length) {
    context.logLine('info', `Skipping ${layers.length - allowed.length} files of other types.`)
  }
  return {
    revision: digest,
    files: allowed.map((layer) => ({
      path: layer.path,
      bytes: layer.bytes,
      sha256: layer.digest.slice('sha256:'.length),
      from: { url: `${reference.repositoryUrl}/blobs/${layer.digest}` },
    })),
  }
}

type OciReference = {
  /** `https://registry/v2/some/name` */
  readonly repositoryUrl: string
  /** A tag or digest. */
  readonly reference: string
  readonly digest: string | null
}

const referenceCharsMax = 512
const namePattern =
  /^[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*(?:\/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*$/
const hostPattern = /^(?:[a-z0-9.-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?$/i
const tagPattern = /^\w[\w.-]{0,127}$/
const digestPattern = /^sha256:[0-9a-f]{64}$/

/** Parses `registry.example.com/some/name:tag` or `…@sha256:…`. */
export function parseReference(text: string): OciReference {
  const [, host = '', rest = ''] = /^([^/]+)\/(.+)$/.exec(text) ?? []
  const [, name = '', tag, digest] = /^([^:@]+)(?::([^@]+))?(?:@(.+))?$/.exec(rest) ?? []
  // Without a dot or port it is the first part of a name, without a registry.
  const isHost = hostPattern.test(host) && (host === 'localhost' || /[.:]/.test(host))
  const isValid =
    isHost &&
    text.length <= referenceCharsMax &&
    namePattern.test(name) &&
    (tag === undefined || tagPattern.test(tag)) &&
    (digest === undefined || digestPattern.test(digest))
  const registry = isValid ? URL.parse(`https://${host}`) : null
  if (registry === null) {
    throw badSource(
      'A reference has the form "registry/name:tag" or "registry/name@sha256:…", such as "registry.ollama.ai/library/llama3.2:1b".',
    )
  }
  return {
    repositoryUrl: `${schemeOf(registry)}//${registry.host}/v2/${name}`,
    reference: digest ?? tag ?? 'latest',
    digest: digest ?? null,
  }
}

/** Registries at private addresses use plain HTTP, as in container tools. */
function schemeOf({ hostname }: URL): 'http:' | 'https:' {
  const address = addressOfHost(hostname)
  const isPrivate = hostname === 'localhost' || (address !== null && !isPublicAddress(address))
  return isPrivate ? 'http:' : 'https:'
}

type Manifest = { digest: string; manifest: JsonObject }

/** Follows an index that holds exactly one manifest of a model. */
async function findManifest(
  origin: Origin,
  reference: OciReference,
  signal: AbortSignal,
): Promise<Manifest> {
  const found = await fetchManifest(origin, reference, signal)
  if (!isIndex(found.manifest)) return found
  const listed: unknown = found.manifest['manifests']
  const entries = Array.isArray(listed) ? listed.filter(isRecord).filter(isModelManifest) : []
  const [entry] = entries
  if (entry === undefined || entries.length > 1) {
    throw badSource('The reference names several manifests; select one by its digest.')
  }
  const digest = String(entry['digest'])
  if (!digestPattern.test(digest)) throw badSource('The index of the registry is invalid.')
  const { repositoryUrl } = reference
  const inner = await fetchManifest(origin, { repositoryUrl, reference: digest, digest }, signal)
  if (isIndex(inner.manifest)) throw badSource('The reference names a nested index.')
  return inner
}

async function fetchManifest(
  origin: Origin,
  { repositoryUrl, reference, digest }: OciReference,
  signal: AbortSignal,
): Promise<Manifest> {
  const headers = { accept: [...manifestTypes, ...indexTypes].join(', ') }
  const url = new URL(`${repositoryUrl}/manifests/${reference}`)
  const response = await fetchJson(origin, url, { headers, signal })
  if (response.status !== 200) throw statusError(response, origin.place(url))
  const found = `sha256:${new Bun.CryptoHasher('sha256').update(response.bytes).digest('hex')}`
  if (digest !== null && digest !== found) {
    throw new AppError('upstream_invalid_answer', 'The registry returned another manifest.', {
      code: 'hash_mismatch',
    })
  }
  return { digest: found, manifest: asRecord(response.value) }
}

function isIndex(manifest: JsonObject): boolean {
  return indexTypes.includes(String(manifest['mediaType'])) || Array.isArray(manifest['manifests'])
}

/** Indexes also hold attestations. */
function isModelManifest(entry: JsonObject): boolean {
  const isAttestation = asRecord(entry['annotations'])['vnd.docker.reference.type'] !== undefined
  return (
    !isAttestation &&
    (entry['mediaType'] === undefined || manifestTypes.includes(String(entry['mediaType'])))
  )
}

type Layer = {
  readonly path: string
  readonly bytes: number
  /** `sha256:…` */
  readonly digest: string
}

const layersMax = 10_000
const nameAnnotations = ['org.opencontainers.image.title', 'org.cncf.model.filepath']
/** File names of layers that have a media type but no name. */
const nameOfType: Readonly<Record<string, string>> = {
  'application/vnd.ollama.image.model': 'model.gguf',
  'application/vnd.ollama.image.projector': 'projector.gguf',
  'application/vnd.ollama.image.adapter': 'adapter.gguf',
  'application/vnd.ollama.image.template': 'template.txt',
  'application/vnd.ollama.image.system': 'system.txt',
  'application/vnd.ollama.image.params': 'params.json',
  'application/vnd.ollama.image.messages': 'messages.json',
  'application/vnd.ollama.image.license': 'license.txt',
  'application/vnd.docker.ai.gguf.v3': 'model.gguf',
  'application/vnd.docker.ai.mmproj': 'mmproj.gguf',
  'application/vnd.docker.ai.license': 'license.txt',
}

/** The layers that are files; those with neither a name nor a known media type are not. */
function layersOf(manifest: JsonObject): readonly Layer[] {
  const layers: unknown = manifest['layers']
  if (!Array.isArray(layers) || layers.length > layersMax) throw invalidManifest()
  const counts = new Map<string, number>()
  return layers.flatMap((value) => {
    const layer = isRecord(value) ? value : {}
    const name = nameOfLayer(layer)
    if (name === null) return []
    const count = (counts.get(name.path) ?? 0) + 1
    counts.set(name.path, count)
    // `license.txt` → `license-2.txt`
    const path =
      name.isGiven || count === 1 ? name.path : name.path.replace(/\.(?=[^.]*$)/, `-${count}.`)
    return [{ path: validatePath(path), ...contentOf(layer) }]
  })
}

function nameOfLayer(layer: JsonObject): { path: string; isGiven: boolean } | null {
  const annotations = asRecord(layer['annotations'])
  const given = nameAnnotations.map((name) => annotations[name]).find((text) => text !== undefined)
  if (typeof given === 'string') return { path: given.replace(/^\.\//, ''), isGiven: true }
  const type = String(layer['mediaType'])
  const path = Object.hasOwn(nameOfType, type) ? nameOfType[type] : undefined
  return path === undefined ? null : { path, isGiven: false }
}

function contentOf({ digest, size }: JsonObject): { digest: string; bytes: number } {
  const isDigest = typeof digest === 'string' && digestPattern.test(digest)
  if (!isDigest || !Number.isSafeInteger(size) || Number(size) < 0) throw invalidManifest()
  return { digest, bytes: Number(size) }
}

function invalidManifest(): AppError {
  return new AppError('upstream_invalid_answer', 'The manifest of the registry is invalid.')
}
