import { link, rm } from 'node:fs/promises'
import type { InstalledFile, InstalledModel } from './installed.ts'
import type { Library } from './library.ts'
import type { RemoteFile, Resolved } from './sources/source.ts'
import type { TransferredFile } from './transfer/transfer.ts'

/** What is installed of a model already, as far as other states of it may have the same files. */
type Installed = InstalledModel | undefined

/** Bytes that are not on this machine, as far as sizes are known. */
export function lackingBytes({ files }: Resolved, installed: Installed): number {
  return files
    .filter((file) => sameFile(file, installed) === undefined)
    .reduce((sum, { bytes }) => sum + (bytes ?? 0), 0)
}

/** Takes a file that is installed for its part, without a copy; null where there is none. */
export async function reuse(
  { pathOf }: Pick<Library, 'pathOf'>,
  installed: Installed,
  { file, partPath }: { file: RemoteFile; partPath: string },
): Promise<TransferredFile | null> {
  const same = sameFile(file, installed)
  if (same === undefined || installed === undefined) return null
  try {
    await rm(partPath, { force: true })
    await link(pathOf(installed, same), partPath)
  } catch {
    // Not every file system has links. It is brought then.
    return null
  }
  return { bytes: same.bytes, sha256: same.sha256, isVerified: true }
}

function sameFile({ sha256 }: RemoteFile, installed: Installed): InstalledFile | undefined {
  if (sha256 === null || installed?.isVerified !== true) return undefined
  return installed.files.find((file) => file.sha256 === sha256)
}
