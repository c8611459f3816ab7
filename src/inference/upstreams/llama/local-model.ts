import { stat } from 'node:fs/promises'
import type { Log } from '#telemetry/log.ts'

export type LlamaLog = Pick<Log, 'info' | 'warn' | 'error'>

/** A GGUF file on this machine. */
export type LocalModel = {
  /** The model name in requests. */
  readonly name: string
  /** The name of its installation, which may contain several models. */
  readonly installedAs: string
  /** The absolute path of the file, or of the first of its parts. */
  readonly path: string
  /** The size of all parts. */
  readonly bytes: number
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
