import { type FileHandle, open } from 'node:fs/promises'
import { AppError } from '#lib/errors.ts'

/** The limit of the safetensors format. */
const headerBytesMax = 100_000_000
/** Headers are padded with spaces to a multiple of eight. */
const headerTailBytes = 8

/**
 * Checks that the header of a file matches its extension; throws an `AppError` with the code
 * `invalid_file`. `name` is its name in the model, `path` its place on the disk.
 */
export async function checkFileFormat(name: string, path: string): Promise<void> {
  const format = /\.(gguf|safetensors)$/i.exec(name)?.[1]?.toLowerCase()
  if (format === undefined) return
  const file = await open(path, 'r')
  try {
    const isValid = format === 'gguf' ? await isGguf(file) : await isSafetensors(file)
    if (!isValid) throw invalidFile(name, format)
  } finally {
    await file.close()
  }
}

async function isGguf(file: FileHandle): Promise<boolean> {
  return (await readAt(file, 0, 4)).toString('latin1') === 'GGUF'
}

/** Eight bytes hold the length of a JSON object, which follows. */
async function isSafetensors(file: FileHandle): Promise<boolean> {
  const { size } = await file.stat()
  const start = await readAt(file, 0, 9)
  if (start.length < 9) return false
  const headerBytes = start.readBigUInt64LE(0)
  if (headerBytes < 2n || headerBytes > headerBytesMax || headerBytes > size - 8) return false
  const endsAt = 8 + Number(headerBytes)
  const tailAt = Math.max(8, endsAt - headerTailBytes)
  const tail = await readAt(file, tailAt, endsAt - tailAt)
  return start[8] === '{'.charCodeAt(0) && tail.toString('latin1').trimEnd().endsWith('}')
}

async function readAt(file: FileHandle, position: number, bytes: number): Promise<Buffer> {
  const buffer = Buffer.alloc(bytes)
  const { bytesRead } = await file.read(buffer, 0, bytes, position)
  return buffer.subarray(0, bytesRead)
}

function invalidFile(name: string, format: string): AppError {
  const label = format === 'gguf' ? 'GGUF' : format
  return new AppError('upstream_invalid_answer', `"${name}" is not a valid ${label} file.`, {
    code: 'invalid_file',
  })
}
