import { stat } from 'node:fs/promises'

/** A model that a process on this machine loads. */
export type LocalModel = {
  /** The model name in requests. */
  readonly name: string
  /** The name of its installation, which may contain several models. */
  readonly installedAs: string
  /** The absolute path of the file with the weights, or of the first of its parts. */
  readonly path: string
  /** The size of all parts. */
  readonly bytes: number
}

/** A model and the key of its file, which changes when the file is replaced. */
export type ModelFile<M extends LocalModel = LocalModel> = {
  readonly model: M
  readonly key: string
}

/** The process of one model. The owner stops it. */
export type LoadableProcess = {
  readonly pid: number
  /** Rejects with an `AppError` if the model cannot be loaded. */
  readonly loaded: Promise<{ readonly contextTokens: number }>
  /** Resolves after the exit, which is expected only after `stop`, not after a failed load. */
  readonly exited: Promise<{ readonly isExpected: boolean }>
  /** Kills the process; running calls fail. */
  stop(): Promise<void>
}

/** The key changes when the file is replaced; null where there is no file. */
export async function fileState(path: string): Promise<{ key: string; modifiedS: number } | null> {
  try {
    const { ino, size, mtimeMs } = await stat(path)
    return { key: `${path} ${ino} ${size} ${mtimeMs}`, modifiedS: Math.floor(mtimeMs / 1000) }
  } catch {
    return null
  }
}
