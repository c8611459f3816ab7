import { AppError } from '#lib/errors.ts'
import { asRecord, isRecord, type JsonObject } from '#lib/json.ts'
import { checkPath } from './paths.ts'

export type Layer = {
  readonly path: string
  readonly bytes: number
  /** `sha256:…` */
  readonly digest: string
}

const layersMax = 10_000
/** How those who push files name them. */
const nameAnnotations = ['org.opencontainers.image.title', 'org.cncf.model.filepath']
/** What a file is called that has no name but a meaning. */
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

/** The layers of a manifest that are files; layers without a name and a known meaning are none. */
export function layersOf(manifest: JsonObject): readonly Layer[] {
  const layers: unknown = manifest['layers']
  if (!Array.isArray(layers) || layers.length > layersMax) throw invalidManifest()
  const taken = new Map<string, number>()
  return layers.flatMap((value) => {
    const layer = isRecord(value) ? value : {}
    const name = nameOf(layer)
    if (name === null) return []
    const times = (taken.get(name.path) ?? 0) + 1
    taken.set(name.path, times)
    const path = name.isGiven || times === 1 ? name.path : numbered(name.path, times)
    return [{ path: checkPath(path), ...contentOf(layer) }]
  })
}

function nameOf(layer: JsonObject): { path: string; isGiven: boolean } | null {
  const annotations = asRecord(layer['annotations'])
  const given = nameAnnotations.map((name) => annotations[name]).find((text) => text !== undefined)
  if (typeof given === 'string') return { path: given.replace(/^\.\//, ''), isGiven: true }
  const type = String(layer['mediaType'])
  const path = Object.hasOwn(nameOfType, type) ? nameOfType[type] : undefined
  return path === undefined ? null : { path, isGiven: false }
}

function contentOf({ digest, size }: JsonObject): { digest: string; bytes: number } {
  const isDigest = typeof digest === 'string' && /^sha256:[0-9a-f]{64}$/.test(digest)
  if (!isDigest || !Number.isSafeInteger(size) || Number(size) < 0) throw invalidManifest()
  return { digest, bytes: Number(size) }
}

/** `license.txt` → `license-2.txt` */
function numbered(path: string, times: number): string {
  return path.replace(/\.(?=[^.]*$)/, `-${times}.`)
}

function invalidManifest(): AppError {
  return new AppError('upstream_invalid_answer', 'The manifest in the registry cannot be read.')
}
