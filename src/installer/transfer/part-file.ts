import { constants } from 'node:fs'
import { type FileHandle, open, readFile, rm, stat } from 'node:fs/promises'
import { type Static, Type } from '@sinclair/typebox'
import type { RemoteFile } from '#installer/sources/source.ts'
import { isMissing, withDiskFullError, writeChunk, writeDurably } from '#lib/durable-files.ts'
import { parseJson } from '#lib/json.ts'
import { compileChecker } from '#lib/schema.ts'
import { createPrefixHash } from './prefix-hash.ts'
import { createSpans } from './ranges.ts'

/** The version of a file that the bytes belong to. */
export type Version = {
  /** See `validatorOf`. */
  readonly validator: string | null
  readonly bytes: number | null
}

type PartFileOptions = {
  readonly partPath: string
  readonly file: Pick<RemoteFile, 'bytes' | 'sha256' | 'gitSha1'>
  /** This many bytes will survive a crash; never decreases. */
  readonly onSaved: (bytes: number) => void
}

/** A partially downloaded file with a durable record of its written ranges, and its hash. */
export type PartFile = Awaited<ReturnType<typeof openPart>>

/** Opens a part with the usable bytes of an earlier run. */
export async function openPart(options: PartFileOptions) {
  const { partPath, file: expected } = options
  const unknown: Version = { validator: null, bytes: expected.bytes }
  const file = await openUnlinked(partPath)
  const previous = await usableState(options, (await file.stat()).size)
  const spans = createSpans(previous?.done ?? [])
  let version: Version = previous ?? unknown
  const gitBytes = expected.gitSha1 === undefined ? null : expected.bytes
  const hash = createPrefixHash(async (offset, buffer) => {
    return (await file.read(buffer, 0, buffer.length, offset)).bytesRead
  }, gitBytes)
  let reported = -1
  const report = (saved: number) => {
    if (saved <= reported) return
    reported = saved
    options.onSaved(saved)
  }
  const saver = createSaver(async () => {
    const done = spans.list()
    await file.datasync()
    const { sha256 } = expected
    const state = { version: 1 as const, ...version, sha256, done: done.map(([a, b]) => [a, b]) }
    await writeDurably(statePathOf(partPath), JSON.stringify(state))
    report(createSpans(done).bytes())
  })
  if (previous !== null) report(spans.bytes())
  else {
    await rm(statePathOf(partPath), { force: true })
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
    /** The end of the gapless prefix. */
    prefixEnd: spans.prefixEnd,
    /** Sets the version of all bytes, including those already written. */
    identify(next: Version): void {
      version = next
      saver.markChanged()
    },
    /** Resolves when the operating system has accepted the bytes. */
    async write(offset: number, chunks: readonly Uint8Array[]): Promise<void> {
      saver.throwFailure()
      let at = offset
      for (const chunk of chunks) at = await writeChunk(file, chunk, at).catch(rethrow)
      spans.add(offset, at)
      saver.markChanged()
      saver.saveLater()
      hash.advance(offset, chunks, spans.prefixEnd())
    },
    /** The digest of a complete file of this length. */
    digest: hash.digest,
    /** Discards all bytes. */
    async restart(next: Version = unknown): Promise<void> {
      hash.restart()
      spans.clear()
      version = next
      saver.markChanged()
      // The record must never claim bytes that are not there, so it is saved first.
      await save()
      await file.truncate(0)
    },
    /** Resolves when all written bytes and their record are durable. */
    save,
    async close(): Promise<void> {
      await saver.save()
      await file.close()
    },
  }
}

/** A file with a second hard link may be an installed one, which must not be written to. */
async function openUnlinked(partPath: string): Promise<FileHandle> {
  const flags = constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW
  const file = await open(partPath, flags, 0o644).catch(rethrow)
  if ((await file.stat()).nlink === 1) return file
  await file.close()
  await rm(partPath)
  return open(partPath, flags | constants.O_EXCL, 0o644).catch(rethrow)
}

/** Null: there is no state, or it belongs to another file. */
async function usableState(
  { partPath, file: { bytes, sha256 } }: PartFileOptions,
  partBytes: number,
) {
  const state = await readState(partPath, partBytes)
  if (state === null) return null
  const isOther =
    isDifferent(state.bytes, bytes) ||
    isDifferent(state.sha256, sha256) ||
    (state.bytes !== null && state.done.some(([, end]) => end > (state.bytes ?? 0)))
  if (isOther) return null
  // With a known hash, the validator of the source does not matter.
  const validator = sha256 === null ? state.validator : null
  return { ...state, validator, bytes: bytes ?? state.bytes }
}

/** Unknown values do not differ. */
function isDifferent<T>(a: T | null, b: T | null): boolean {
  return a !== null && b !== null && a !== b
}

function rethrow(error: unknown): never {
  throw withDiskFullError(error)
}

const offset = Type.Integer({ minimum: 0 })
const stateSchema = Type.Object({
  /** Of the file format. */
  version: Type.Literal(1),
  /** The version of the bytes according to the source; see `validatorOf`. */
  validator: Type.Union([Type.String(), Type.Null()]),
  bytes: Type.Union([offset, Type.Null()]),
  sha256: Type.Union([Type.String(), Type.Null()]),
  /** The ranges that survive a power loss. */
  done: Type.Array(Type.Tuple([offset, offset]), { maxItems: 10_000 }),
})
/** Holds no URL, because URLs may contain credentials. */
type PartState = Static<typeof stateSchema>

const checker = compileChecker(stateSchema)
const stateBytesMax = 1024 * 1024

function statePathOf(partPath: string): string {
  return `${partPath}.state`
}

/** Null: there is no valid state. */
async function readState(partPath: string, partBytes: number): Promise<PartState | null> {
  const state = parseJson(await readShort(statePathOf(partPath)))
  if (!checker.check(state)) return null
  return { ...state, done: state.done.map(([start, end]) => [start, Math.min(end, partBytes)]) }
}

async function readShort(path: string): Promise<string> {
  try {
    const { size } = await stat(path)
    return size > stateBytesMax ? '' : await readFile(path, 'utf8')
  } catch (error) {
    if (isMissing(error)) return ''
    throw error
  }
}

const saveEveryMs = 1_000

/** Saves changes one after another; `saveLater` at most once per interval, in the background. */
function createSaver(write: () => Promise<void>) {
  let isSaved = true
  let savedAt = performance.now()
  let timer: ReturnType<typeof setTimeout> | undefined
  let last: Promise<void> = Promise.resolve()
  let isQueued = false
  let failure: unknown

  async function saveNow() {
    isQueued = false
    if (isSaved) return
    // Changes during the write belong to the next one.
    isSaved = true
    try {
      await write()
    } catch (error) {
      isSaved = false
      failure ??= withDiskFullError(error)
    }
    savedAt = performance.now()
  }
  function save(): Promise<void> {
    clearTimeout(timer)
    timer = undefined
    if (!isQueued) last = last.then(saveNow)
    isQueued = true
    return last
  }
  return {
    save,
    markChanged() {
      isSaved = false
    },
    saveLater() {
      const remainingMs = saveEveryMs - (performance.now() - savedAt)
      timer ??= setTimeout(() => void save(), Math.max(remainingMs, 0))
    },
    /** Throws the first failure, including those in the background. */
    throwFailure() {
      if (failure !== undefined) throw failure
    },
  }
}
