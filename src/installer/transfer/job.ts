import type { Origin } from '#installer/sources/origin.ts'
import type { RemoteFile, Say } from '#installer/sources/source.ts'
import type { PartFile } from './part-file.ts'
import type { Patience } from './patience.ts'
import type { PrefixHash } from './prefix-hash.ts'

/** Of the section `installer` of the configuration. */
export type FetchSettings = {
  readonly rangesMax: number
  readonly rangeBytes: number
  readonly attemptsMax: number
  readonly backoffMs: number
  readonly answerMs: number
  readonly stallMs: number
  readonly fileBytesMax: number
}

/** One file that is being fetched, and what its connections share. */
export type FetchJob = {
  readonly url: URL
  readonly file: RemoteFile
  readonly settings: FetchSettings
  readonly origin: Origin
  readonly part: PartFile
  readonly hash: PrefixHash
  readonly patience: Patience
  /** Whether it no longer counts what the source says of the version: the hash decides. */
  readonly ignoresValidators: boolean
  readonly say: Say
  readonly signal: AbortSignal
}

/** Whether a hash decides in the end if the right bytes have come. */
export function isVouchedFor({ sha256, gitSha1, bytes }: RemoteFile): boolean {
  return sha256 !== null || (gitSha1 !== undefined && bytes !== null)
}

/** What has come so far is of no use. */
export async function startOver({
  part,
  hash,
  file,
}: Pick<FetchJob, 'part' | 'hash' | 'file'>): Promise<void> {
  hash.restart()
  await part.restart({ validator: null, bytes: file.bytes })
}
