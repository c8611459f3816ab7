import type { Environment } from '#config/load.ts'
import type { Config } from '#config/schema.ts'
import type { Transport } from '#inference/transport.ts'
import type { Log } from '#telemetry/log.ts'
import type { Finding } from './finding.ts'

/** The inputs of the checks. */
export type World = {
  readonly config: Config
  /** The environment of the operator's programs. */
  readonly environment: Environment
  readonly transport: Transport
  readonly fetch: typeof fetch
  /** Discards everything; results are findings. */
  readonly log: Log
  readonly now: () => Date
}

/** A sequence of checks; groups run concurrently. */
export type CheckGroup = {
  /** For the finding after a timeout. */
  readonly name: string
  readonly limitMs: (world: World) => number
  /** An error becomes a finding. */
  readonly check: (world: World, signal: AbortSignal) => Promise<readonly Finding[]>
}
