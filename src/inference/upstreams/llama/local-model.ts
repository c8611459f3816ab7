import { stat } from 'node:fs/promises'

/** A GGUF file on this machine that may be run. */
export type LocalModel = {
  /** As callers name it. */
  readonly name: string
  /** What it was installed as; several models may be of one installation. */
  readonly installedAs: string
  /** Of the file, or of the first of its parts. Absolute. */
  readonly path: string
  /** Of all of its parts. */
  readonly bytes: number
}

/** What a file is known by, so that another one in its place is noticed; null where there is none. */
export async function fileState(path: string): Promise<{ key: string; modifiedS: number } | null> {
  try {
    const { ino, size, mtimeMs } = await stat(path)
    return { key: `${path} ${ino} ${size} ${mtimeMs}`, modifiedS: Math.floor(mtimeMs / 1000) }
  } catch {
    return null
  }
}
