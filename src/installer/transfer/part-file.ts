import { constants } from 'node:fs'
import { type FileHandle, open, rm } from 'node:fs/promises'
import { orDiskFull } from './disk-full.ts'
import { readState, removeState, writeState } from './part-state.ts'
import { createSaver } from './saver.ts'
import { createSpans, type Span } from './spans.ts'

/** Of which version of a file the bytes are. */
export type Version = {
  /** See `validatorOf`. */
  readonly validator: string | null
  readonly bytes: number | null
}

/** The bytes of a file that is on its way, at their places, and what is known of them. */
export type PartFile = {
  readonly version: () => Version
  readonly written: () => readonly Span[]
  readonly bytesWritten: () => number
  readonly prefixEnd: () => number
  /** Says of which version the bytes are, those that are there among them. */
  identify(version: Version): void
  /** Resolves when the system has taken the bytes. */
  write(offset: number, pieces: readonly Uint8Array[]): Promise<void>
  /** Into the buffer; answers how many bytes there were. */
  read(offset: number, buffer: Uint8Array): Promise<number>
  /** Nothing of it is of use any more. */
  restart(version: Version): Promise<void>
  /** Resolves when all that was written is on the disk and is said to be. */
  save(): Promise<void>
  close(): Promise<void>
}

export type PartOptions = {
  readonly partPath: string
  readonly bytes: number | null
  readonly sha256: string | null
  /** So many bytes are on the disk, and will be known to be after a crash. */
  readonly onSaved: (bytes: number) => void
}

/** Opens a part with what an earlier run has left in it, as far as it is of use. */
export async function openPart(options: PartOptions): Promise<PartFile> {
  const { partPath, sha256, onSaved } = options
  const file = await openAlone(partPath)
  const left = await stateLeft(options, (await file.stat()).size)
  const spans = createSpans(left?.done ?? [])
  let version: Version = left ?? { validator: null, bytes: options.bytes }
  const saver = createSaver(async () => {
    const done = spans.list()
    const state = { version: 1 as const, ...version, sha256 }
    await file.datasync()
    await writeState(partPath, { ...state, done: done.map(([start, end]) => [start, end]) })
    onSaved(createSpans(done).bytes())
  })
  if (left !== null) onSaved(spans.bytes())
  else {
    await removeState(partPath)
    await file.truncate(0)
  }
  const save = async () => {
    await saver.save()
    saver.throwFailure()
  }
  return {
    version: () => version,
    written: spans.list,
    bytesWritten: spans.bytes,
    prefixEnd: spans.prefixEnd,
    identify(next) {
      version = next
      saver.changed()
    },
    async write(offset, pieces) {
      saver.throwFailure()
      let at = offset
      for (const piece of pieces) at = await writeWhole(file, piece, at)
      spans.add(offset, at)
      saver.changed()
      saver.saveInTime()
    },
    async read(offset, buffer) {
      return (await file.read(buffer, 0, buffer.length, offset)).bytesRead
    },
    async restart(next) {
      spans.clear()
      version = next
      saver.changed()
      // First nothing is claimed, then it is gone: never the other way round.
      await save()
      await file.truncate(0)
    },
    save,
    async close() {
      await saver.save()
      await file.close()
    },
  }
}

/** A file that has another name too may be one that is installed, and must not be written to. */
async function openAlone(partPath: string): Promise<FileHandle> {
  const flags = constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW
  const file = await open(partPath, flags, 0o644).catch(failed)
  if ((await file.stat()).nlink === 1) return file
  await file.close()
  await rm(partPath)
  return open(partPath, flags | constants.O_EXCL, 0o644).catch(failed)
}

/** Null: nothing is left, or of another file. */
async function stateLeft({ partPath, bytes, sha256 }: PartOptions, partBytes: number) {
  const state = await readState(partPath, partBytes)
  if (state === null) return null
  const isOther =
    isDifferent(state.bytes, bytes) ||
    isDifferent(state.sha256, sha256) ||
    (state.bytes !== null && state.done.some(([, end]) => end > (state.bytes ?? 0)))
  if (isOther) return null
  // Where a hash decides, it is no matter that a source has changed its mind about the version.
  const validator = sha256 === null ? state.validator : null
  return { ...state, validator, bytes: bytes ?? state.bytes }
}

/** What is not known is no difference. */
function isDifferent<T>(a: T | null, b: T | null): boolean {
  return a !== null && b !== null && a !== b
}

/** One call may write a part only. Answers where the piece ends in the file. */
async function writeWhole(file: FileHandle, piece: Uint8Array, offset: number): Promise<number> {
  for (let from = 0; from < piece.length; ) {
    const left = piece.length - from
    from += (await file.write(piece, from, left, offset + from).catch(failed)).bytesWritten
  }
  return offset + piece.length
}

function failed(error: unknown): never {
  throw orDiskFull(error)
}
