import { AppError } from '#lib/errors.ts'

/** Data that no loader executes: weights, tokenizers, settings and texts. */
const safeTypes = new Set([
  ...['safetensors', 'gguf', 'onnx', 'onnx_data', 'tflite'],
  ...['json', 'jsonl', 'txt', 'md', 'yaml', 'yml', 'jinja', 'csv', 'tsv'],
  ...['model', 'tiktoken', 'vocab', 'merges', 'bpe', 'spm', 'tekken', 'dict'],
])
/** Pickles, which can execute code when loaded. */
const unsafeTypes = new Set(['bin', 'pt', 'pth', 'pkl', 'pickle', 'ckpt'])
/** Text files without an extension. */
const plainNames = new Set(['license', 'notice', 'readme', 'copying', 'authors'])

/** Whether a file may be installed, judging by its name. */
export function isAllowedType(path: string, allowsUnsafe: boolean): boolean {
  const name = path.slice(path.lastIndexOf('/') + 1).toLowerCase()
  const dot = name.lastIndexOf('.')
  if (dot === -1) return plainNames.has(name)
  const type = name.slice(dot + 1)
  return safeTypes.has(type) || (allowsUnsafe && unsafeTypes.has(type))
}

export function unsafeFile(path: string): AppError {
  const shown = JSON.stringify(path.slice(0, 200))
  const reason = isAllowedType(path, true)
    ? 'can run code when it is loaded; set allow_unsafe to install it'
    : 'is of a type that models do not need'
  return new AppError('unprocessable', `The file ${shown} ${reason}.`, { code: 'unsafe_file_type' })
}

const pathCharsMax = 512
const nameBytesMax = 200
const depthMax = 8
/** Device names of some systems, with any extension. */
const deviceName = /^(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)/i
/** Control characters, separators, shell and glob characters, invisible direction marks. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are matched on purpose
const unsafe = /[\u0000-\u001f\u007f-\u009f\\:*?"<>|\u200e\u200f\u202a-\u202e\u2066-\u2069]/

/** Why a path is not valid in a model's folder; null: it is valid. */
export function pathFault(path: string): string | null {
  if (path === '' || path.length > pathCharsMax) return 'is empty or too long'
  if (path.startsWith('/')) return 'is absolute'
  if (unsafe.test(path) || !path.isWellFormed()) {
    return 'contains a character that is not allowed'
  }
  const names = path.split('/')
  if (names.length > depthMax) return 'has too many folders'
  return names.map(nameFault).find((fault) => fault !== null) ?? null
}

function nameFault(name: string): string | null {
  if (name === '') return 'contains an empty name'
  if (name === '.' || name === '..') return 'leads out of its folder'
  if (Buffer.byteLength(name) > nameBytesMax) return 'contains a name that is too long'
  if (name.startsWith(' ') || /[ .]$/.test(name)) {
    return 'contains a name with a leading space, or a trailing space or dot'
  }
  if (deviceName.test(name)) return 'contains a reserved device name'
  return null
}

/** The path in normalised spelling. Throws `unprocessable` (`bad_source`). */
export function validatePath(path: string): string {
  const normalised = path.normalize('NFC')
  const fault = pathFault(normalised)
  if (fault === null) return normalised
  const shown = JSON.stringify(path.slice(0, 200))
  throw new AppError('unprocessable', `The path ${shown} of the source ${fault}.`, {
    code: 'bad_source',
  })
}
