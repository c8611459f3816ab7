import { AppError } from '#lib/errors.ts'

/** Data that no loader runs: weights, tokenizers, settings and texts. */
const safeTypes = new Set([
  ...['safetensors', 'gguf', 'onnx', 'onnx_data', 'tflite'],
  ...['json', 'jsonl', 'txt', 'md', 'yaml', 'yml', 'jinja', 'csv', 'tsv'],
  ...['model', 'tiktoken', 'vocab', 'merges', 'bpe', 'spm', 'tekken', 'dict'],
])
/** Pickles, which are programs for whoever loads them. */
const unsafeTypes = new Set(['bin', 'pt', 'pth', 'pkl', 'pickle', 'ckpt'])
/** Texts that come without a type. */
const plainNames = new Set(['license', 'notice', 'readme', 'copying', 'authors'])

/** Whether a file may be taken, going by its name. */
export function isAllowedType(path: string, allowsUnsafe: boolean): boolean {
  const name = path.slice(path.lastIndexOf('/') + 1).toLowerCase()
  const dot = name.lastIndexOf('.')
  if (dot === -1) return plainNames.has(name)
  const type = name.slice(dot + 1)
  return safeTypes.has(type) || (allowsUnsafe && unsafeTypes.has(type))
}

/** Whether it is allowed with `allowsUnsafe` only. */
function isPickle(path: string): boolean {
  return !isAllowedType(path, false) && isAllowedType(path, true)
}

export function unsafeFile(path: string): AppError {
  const shown = JSON.stringify(path.slice(0, 200))
  const why = isPickle(path)
    ? 'can run code when it is loaded; allow_unsafe takes it nevertheless'
    : 'is of a type that models do not need'
  return new AppError('unprocessable', `The file ${shown} ${why}.`, { code: 'unsafe_file_type' })
}
