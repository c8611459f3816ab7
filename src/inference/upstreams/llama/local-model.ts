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
