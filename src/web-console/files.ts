import { join } from 'node:path'
import { asRecord, parseJson } from '#lib/json.ts'
import { createSingleFlight } from '#lib/single-flight.ts'
import { type Coding, compressWith } from './compress.ts'
import { embeddedFiles } from './embedded-files.ts'

/** A file that never changes while the process runs. */
export type ConsoleFile = {
  readonly type: string
  /** Of the content, without quotes. */
  readonly tag: string
  /** The content, in a content coding or plain. It is made at the first request and kept. */
  read(coding: Coding | null): Promise<Uint8Array<ArrayBuffer>>
}

export type ConsoleFiles = ReadonlyMap<string, ConsoleFile>

/** The files of the console by their paths below `/console/`. */
export async function loadConsoleFiles(buildFolder: string): Promise<ConsoleFiles> {
  return embeddedFiles === null ? loadBuilt(buildFolder) : loadEmbedded(embeddedFiles)
}

async function loadBuilt(buildFolder: string): Promise<ConsoleFiles> {
  const { ensureBuilt } = await import('./build-folder.ts')
  const folder = await ensureBuilt(buildFolder)
  const files = await Promise.all(
    (await readManifest(folder)).map(async ({ path, type }) => {
      const bytes = await Bun.file(join(folder, path)).bytes()
      const variants = createVariants(async (coding) =>
        coding === null ? bytes : compressWith(coding, bytes),
      )
      return [path, { type, tag: tagOf(bytes), read: variants }] as const
    }),
  )
  return new Map(files)
}

/** The files that the manifest of a built console lists. */
export async function readManifest(
  folder: string,
): Promise<readonly { path: string; type: string }[]> {
  const manifest = asRecord(parseJson(await Bun.file(join(folder, 'manifest.json')).text()))
  const { files } = manifest
  if (!Array.isArray(files)) throw new Error('the manifest of the console lists no files')
  return files.map((file) => {
    const { path, type } = asRecord(file)
    return { path: String(path), type: String(type) }
  })
}

function loadEmbedded(embedded: NonNullable<typeof embeddedFiles>): ConsoleFiles {
  const files = embedded.map((file) => {
    const decode = (coding: Coding) => new Uint8Array(Buffer.from(file[coding], 'base64'))
    const variants = createVariants(async (coding) =>
      coding === null ? new Uint8Array(Bun.gunzipSync(decode('gzip'))) : decode(coding),
    )
    return [file.path, { type: file.type, tag: tagOf(file.gzip), read: variants }] as const
  })
  return new Map(files)
}

const tagChars = 24

function tagOf(content: string | Uint8Array): string {
  return new Bun.CryptoHasher('sha256').update(content).digest('hex').slice(0, tagChars)
}

/** At most four of each file. */
function createVariants(
  make: (coding: Coding | null) => Promise<Uint8Array<ArrayBuffer>>,
): ConsoleFile['read'] {
  const made = new Map<Coding | null, Uint8Array<ArrayBuffer>>()
  const once = createSingleFlight<Uint8Array<ArrayBuffer>>()
  return async (coding) => {
    const known = made.get(coding)
    if (known !== undefined) return known
    const bytes = await once(String(coding), () => make(coding))
    made.set(coding, bytes)
    return bytes
  }
}
