import { createHash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadConfig } from '#config/load.ts'
import type { InstallerSettings } from '#installer/config.ts'
import type { RemoteFile } from '#installer/sources/source.ts'
import type { TransferredFile } from '#installer/transfer/transfer.ts'
import { createTransfer } from '#installer/transfer/transfer.ts'
import { AppError } from '#lib/errors.ts'
import type { Fetch } from '#outbound/checked-fetch.ts'
import { createDice } from '#test/support/dice.ts'
import { type ModelOrigin, startModelOrigin } from '#test/support/model-origin.ts'

export const transferSettings: InstallerSettings = {
  ...loadConfig({}).installer,
  hubUrl: 'https://hub.example',
  hosts: ['127.0.0.1', '*.example'],
  ports: [],
  privateHosts: true,
  answerMs: 5_000,
  stallMs: 5_000,
  rangesMax: 4,
  rangeBytes: 65_536,
  attemptsMax: 4,
  backoffMs: 1,
  fileBytesMax: 1_000_000_000,
}

/** A folder and a server for transfers. */
export type Bench = {
  readonly origin: ModelOrigin
  readonly folder: string
  transfer(file: RemoteFile, more?: TransferMore): Promise<Transferred>
  close(): Promise<void>
}

export type TransferMore = {
  settings?: Partial<InstallerSettings>
  fetch?: Fetch
  signal?: AbortSignal
  /** Transfers with the same name share a part. */
  part?: string
  onProgress?: (bytes: number) => void
}

type Transferred = {
  /** Null after a failure. */
  readonly file: TransferredFile | null
  /** The error code, or `''`. */
  readonly failure: string
  readonly progress: readonly number[]
  readonly lines: readonly string[]
  readonly hasVerified: boolean
  readonly partPath: string
}

export async function openBench(): Promise<Bench> {
  const origin = await startModelOrigin()
  const folder = mkdtempSync(join(tmpdir(), 'sluice-transfer-'))
  let parts = 0
  return {
    origin,
    folder,
    async transfer(file, more = {}) {
      const partPath = join(folder, more.part ?? `part-${++parts}`)
      const settings = { ...transferSettings, ...more.settings }
      const progress: number[] = []
      const lines: string[] = []
      let hasVerified = false
      const resolve = async () => ['127.0.0.1']
      const transferFile = createTransfer(settings, { fetch: more.fetch ?? fetch, resolve })
      const options = {
        partPath,
        signal: more.signal ?? new AbortController().signal,
        onProgress(bytes: number) {
          progress.push(bytes)
          more.onProgress?.(bytes)
        },
        onVerifying() {
          hasVerified = true
        },
        logLine: (_: string, line: string) => void lines.push(line),
      }
      const outcome = await transferFile(file, options).catch(readFailure)
      const isFailed = typeof outcome === 'string'
      const [failure, done] = isFailed ? [outcome, null] : ['', outcome]
      return { file: done, failure, progress, lines, hasVerified, partPath }
    },
    async close() {
      await origin.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

function readFailure(error: unknown): string {
  if (error instanceof AppError) return error.wireCode
  throw error
}

/** Pseudo-random bytes, so that every misplaced byte is detected. */
export function contentOf(bytes: number, seed = 1): Buffer {
  const dice = createDice(seed)
  const words = Uint32Array.from({ length: Math.ceil(bytes / 4) }, () => dice.upTo(2 ** 32))
  return Buffer.from(words.buffer, 0, bytes)
}

export function sha256Of(content: Uint8Array): string {
  return createHash('sha256').update(content).digest('hex')
}

/** A file as a source would list it. */
export function remoteFile(
  url: string,
  content: Buffer,
  more: Partial<RemoteFile> = {},
): RemoteFile {
  const sha256 = sha256Of(content)
  return { path: 'model.gguf', bytes: content.length, sha256, from: { url }, ...more }
}

/** Whether a part holds exactly this content. */
export function holds(partPath: string, content: Buffer): boolean {
  return readFileSync(partPath).equals(content)
}

export function isMonotone(progress: readonly number[]): boolean {
  return progress.every((bytes, index) => index === 0 || bytes > (progress[index - 1] ?? 0))
}
