import { open } from 'node:fs/promises'

/** The metadata in the head of a GGUF file. */
export type GgufHead = {
  readonly architecture: string
  /** `general.type`: `model`, or an adapter, a vocabulary, an image projector. */
  readonly kind: string
  /** The context size of its training; null where it was not found within the limits. */
  readonly contextTokens: number | null
}

/** In most files the metadata precedes the vocabulary; nothing is read beyond this limit. */
const headBytesMax = 16_777_216
const firstReadBytes = 65_536
const entriesMax = 4_096
const versions = [2, 3]

/** The head of a file; null for another format. Throws if the file cannot be read. */
export async function readGgufHead(path: string): Promise<GgufHead | null> {
  const file = await open(path, 'r')
  try {
    for (let bytes = firstReadBytes; ; bytes *= 4) {
      const { buffer, bytesRead } = await file.read(Buffer.alloc(bytes), 0, bytes, 0)
      const isAll = bytesRead < bytes || bytes >= headBytesMax
      const head = parseHead(buffer.subarray(0, bytesRead), isAll)
      if (head !== 'more') return head
    }
  } finally {
    await file.close()
  }
}

/** Whether a model generates text, unlike embedding and vision models. */
export function isGenerative({ architecture, kind }: GgufHead): boolean {
  return kind === 'model' && !/bert|^clip$|^t5encoder$|^wavtokenizer/.test(architecture)
}

class HeadTooShort extends Error {}

type Reader = { readonly bytes: Buffer; at: number }

function parseHead(bytes: Buffer, isAll: boolean): GgufHead | 'more' | null {
  const found: { architecture: string | null; kind: string; contextTokens: number | null } = {
    architecture: null,
    kind: 'model',
    contextTokens: null,
  }
  try {
    if (bytes.toString('latin1', 0, 4) !== 'GGUF') return null
    const reader = { bytes, at: 4 }
    if (!versions.includes(readU32(reader))) return null
    readU64(reader)
    const entries = Math.min(readU64(reader), entriesMax)
    for (let entry = 0; entry < entries && found.contextTokens === null; entry++) {
      const name = readText(reader)
      const value = readValue(reader, readU32(reader))
      if (name === 'general.architecture') found.architecture = String(value)
      if (name === 'general.type') found.kind = String(value)
      if (name === `${found.architecture}.context_length`) found.contextTokens = Number(value)
    }
  } catch (error) {
    if (!(error instanceof HeadTooShort)) throw error
    if (!isAll) return 'more'
  }
  return found.architecture === null ? null : { ...found, architecture: found.architecture }
}

/** The size of a value in bytes, by the format's type number. */
const plainBytes: Readonly<Record<number, number>> = {
  0: 1,
  1: 1,
  2: 2,
  3: 2,
  4: 4,
  5: 4,
  6: 4,
  7: 1,
  10: 8,
  11: 8,
  12: 8,
}
const stringType = 8
const arrayType = 9
const u32Type = 4
const u64Type = 10

/** Strings and unsigned integers; other values are skipped. */
function readValue(reader: Reader, type: number): string | number | null {
  if (type === stringType) return readText(reader)
  if (type === u32Type) return readU32(reader)
  if (type === u64Type) return readU64(reader)
  if (type === arrayType) skipArray(reader)
  else skip(reader, plainBytes[type] ?? Number.POSITIVE_INFINITY)
  return null
}

function skipArray(reader: Reader): void {
  const type = readU32(reader)
  const count = readU64(reader)
  const bytes = plainBytes[type]
  if (bytes !== undefined) skip(reader, count * bytes)
  else if (type === stringType)
    for (let item = 0; item < count; item++) skip(reader, readU64(reader))
  // Nested arrays are not used in practice.
  else skip(reader, Number.POSITIVE_INFINITY)
}

function readText(reader: Reader): string {
  const start = skip(reader, readU64(reader))
  return reader.bytes.toString('utf8', start, reader.at)
}

function readU32(reader: Reader): number {
  return reader.bytes.readUInt32LE(skip(reader, 4))
}

function readU64(reader: Reader): number {
  return Number(reader.bytes.readBigUInt64LE(skip(reader, 8)))
}

/** Skips bytes and returns the offset at which they begin. */
function skip(reader: Reader, bytes: number): number {
  const start = reader.at
  if (start + bytes > reader.bytes.length) throw new HeadTooShort()
  reader.at += bytes
  return start
}
