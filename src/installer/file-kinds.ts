import { type FileHandle, open } from 'node:fs/promises'
import { AppError } from '#lib/errors.ts'

/** What the format allows for the header of a safetensors file. */
const headerBytesMax = 100_000_000
/** Headers are filled up with spaces to a multiple of eight. */
const headerTailBytes = 8

/**
 * Looks whether a file is what its name says, as far as its first bytes tell; throws an `AppError`
 * of code `invalid_file`. `name` is how people know it, `path` where it lies.
 */
export async function checkFileKind(name: string, path: string): Promise<void> {
  const kind = /\.(gguf|safetensors)$/i.exec(name)?.[1]?.toLowerCase()
  if (kind === undefined) return
  const file = await open(path, 'r')
  try {
    const isSo = kind === 'gguf' ? await isGguf(file) : await isSafetensors(file)
    if (!isSo) throw invalidFile(name, kind)
  } finally {
    await file.close()
  }
}

async function isGguf(file: FileHandle): Promise<boolean> {
  return (await readAt(file, 0, 4)).toString('latin1') === 'GGUF'
}

/** Eight bytes that tell the length of a JSON object, which follows. */
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

function invalidFile(name: string, kind: string): AppError {
  const called = kind === 'gguf' ? 'GGUF' : kind
  return new AppError('upstream_invalid_answer', `"${name}" is no ${called} file.`, {
    code: 'invalid_file',
  })
}
