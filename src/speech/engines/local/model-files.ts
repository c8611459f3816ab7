import {
  closeSync,
  fstatSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  statSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { isRecord, parseJson } from '#lib/json.ts'
import { type Language, languages } from '#speech/engine.ts'

/** The files of one model of an architecture that the runtime knows. Paths are absolute. */
export type SpeechModel = {
  readonly name: string
  readonly tokens: string
  readonly languages: readonly Language[]
  readonly files:
    | { readonly kind: 'whisper'; readonly encoder: string; readonly decoder: string }
    | {
        readonly kind: 'transducer'
        readonly encoder: string
        readonly decoder: string
        readonly joiner: string
      }
}

/** What `speech install` installs without a name: Whisper base, 99 languages, 8-bit weights. */
export const defaultModel = {
  name: 'csukuangfj/sherpa-onnx-whisper-base',
  megabytes: 161,
} as const

/** The files of a repository that may be needed. */
export const modelGlobs = ['*.onnx', '*tokens.txt'] as const

/** Where ONNX files have their metadata. */
const metadataBytes = 65_536
/** A key of the metadata and its value "0", as protocol buffers encode them. */
const englishOnly = Buffer.from([...Buffer.from('is_multilingual'), 0x12, 1, 0x30])
const foldersMax = 1_000

type Installed = { readonly model: SpeechModel; readonly installedAt: string }

/** The installed speech models. `folder`: the installer's. */
function findModels(folder: string): readonly Installed[] {
  return namesIn(folder)
    .slice(0, foldersMax)
    .flatMap((name) => {
      const found = name.startsWith('.') ? null : installedModel(join(folder, name, 'model.json'))
      return found === null ? [] : [found]
    })
}

/** The model that `wanted` names: an installed one or a folder; without it the one installed last. */
export function findModel(folder: string, wanted: string | undefined): SpeechModel | null {
  if (wanted?.startsWith('/') === true) return modelOf(wanted, wanted, pathsIn(wanted))
  const found = findModels(folder).filter(({ model }) => model.name === (wanted ?? model.name))
  const [last = null] = found.toSorted((one, other) => (isLater(one, other) ? -1 : 1))
  return last?.model ?? null
}

function isLater(one: Installed, other: Installed): boolean {
  if (one.installedAt === other.installedAt) return one.model.name < other.model.name
  return one.installedAt > other.installedAt
}

/** Reads the record of the installer. */
const installedModel = rememberByFile((path): Installed | null => {
  const [record, folder] = [readJson(path), dirname(path)]
  if (!isRecord(record) || typeof record['name'] !== 'string') return null
  const files: unknown[] = Array.isArray(record['files']) ? record['files'] : []
  const paths = files.flatMap((file) => {
    if (!isRecord(file) || typeof file['path'] !== 'string') return []
    return [join(folder, file['path'])]
  })
  const model = modelOf(record['name'], folder, paths)
  return model === null ? null : { model, installedAt: String(record['installedAt'] ?? '') }
})

/** Recognises the architecture by the names of the files, which exports have in common. */
function modelOf(name: string, folder: string, paths: readonly string[]): SpeechModel | null {
  const find = (part: string) => {
    const matching = paths.filter((path) => {
      const file = path.slice(folder.length).toLowerCase()
      return file.includes(part) && file.endsWith('.onnx')
    })
    return matching.find((path) => path.includes('int8')) ?? matching[0]
  }
  const tokens = paths.find((path) => path.endsWith('tokens.txt'))
  const [encoder, decoder, joiner] = [find('encoder'), find('decoder'), find('joiner')]
  if (tokens === undefined || encoder === undefined || decoder === undefined) return null
  if (joiner !== undefined) {
    return { name, tokens, languages, files: { kind: 'transducer', encoder, decoder, joiner } }
  }
  return {
    name,
    tokens,
    languages: isMultilingual(encoder) ? languages : ['en'],
    files: { kind: 'whisper', encoder, decoder },
  }
}

/** By the metadata of the export, at the end of the file. */
const isMultilingual = rememberByFile((encoder) => {
  try {
    const file = openSync(encoder, 'r')
    try {
      const { size } = fstatSync(file)
      const bytes = Buffer.alloc(Math.min(size, metadataBytes))
      readSync(file, bytes, 0, bytes.length, size - bytes.length)
      return !bytes.includes(englishOnly)
    } finally {
      closeSync(file)
    }
  } catch {
    return true
  }
})

/** Sessions ask for each file; it is read again once it is another one, as after an installation. */
function rememberByFile<T>(read: (path: string) => T): (path: string) => T {
  const known = new Map<string, { readonly file: string; readonly value: T }>()
  return (path) => {
    const { ino, mtimeMs, size } = statSync(path, { throwIfNoEntry: false }) ?? {}
    const file = `${ino} ${mtimeMs} ${size}`
    const remembered = known.get(path)
    if (remembered?.file === file) return remembered.value
    const value = read(path)
    if (known.size >= foldersMax) known.clear()
    known.set(path, { file, value })
    return value
  }
}

function pathsIn(folder: string): readonly string[] {
  return namesIn(folder).map((name) => join(folder, name))
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

function readJson(path: string): unknown {
  try {
    return parseJson(readFileSync(path, 'utf8'))
  } catch {
    return null
  }
}
