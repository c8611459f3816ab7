import { createReadStream } from 'node:fs'
import { AppError } from '#lib/errors.ts'
import type { InstalledFile, InstalledModel } from './installed.ts'
import { isMissing, type Layout, writeDurably } from './layout.ts'
import { absentModel, type Library } from './library.ts'
import { inVersion } from './names.ts'
import type { Run } from './run.ts'
import type { FileState } from './store.ts'

export type CheckDeps = {
  library: Pick<Library, 'find' | 'pathOf'>
  layout: Pick<Layout, 'record'>
}

const readBytes = 1_048_576

/** Reads all files of an installed model again, and looks whether they are what was installed. */
export async function checkAgain(deps: CheckDeps, { row, progress, signal }: Run): Promise<void> {
  const model = await deps.library.find(row.model)
  if (model === undefined) throw absentModel(row.model)
  progress.setFiles(model.files.map(unchecked), { bytesTotal: model.bytes })
  for (const file of model.files) {
    const path = inVersion(file.path)
    progress.setFile(path, { status: 'verifying' })
    const sha256 = await hashOf(deps.library.pathOf(model, file), {
      signal,
      onProgress: (bytesCompleted) => progress.setFile(path, { bytesCompleted }),
    })
    if (sha256 !== file.sha256) throw await damaged(deps, model, path)
    progress.setFile(path, { status: 'completed', sha256 })
  }
  progress.say('info', 'Every file is as it was installed.')
}

/** Other than a download, it begins anew whenever it is taken up, so it counts from its beginning. */
function unchecked({ path, bytes }: InstalledFile): FileState {
  return {
    path: inVersion(path),
    part: null,
    sha256: null,
    isVerified: false,
    bytesTotal: bytes,
    bytesCompleted: 0,
    status: 'waiting',
  }
}

/** Null where there is no such file. */
async function hashOf(
  path: string,
  { signal, onProgress }: { signal: AbortSignal; onProgress: (bytes: number) => void },
): Promise<string | null> {
  const hasher = new Bun.CryptoHasher('sha256')
  let bytes = 0
  try {
    const chunks: AsyncIterable<Uint8Array> = createReadStream(path, { highWaterMark: readBytes })
    for await (const chunk of chunks) {
      signal.throwIfAborted()
      hasher.update(chunk)
      bytes += chunk.length
      onProgress(bytes)
    }
  } catch (error) {
    if (isMissing(error)) return null
    throw error
  }
  return hasher.digest('hex')
}

/** Nobody takes it for verified from now on. */
async function damaged(
  { layout }: CheckDeps,
  model: InstalledModel,
  path: string,
): Promise<AppError> {
  const record = { ...model, isVerified: false }
  await writeDurably(layout.record(model.name), JSON.stringify(record, null, 2))
  return new AppError('upstream_invalid_answer', `"${path}" is not what was installed.`, {
    code: 'hash_mismatch',
  })
}
