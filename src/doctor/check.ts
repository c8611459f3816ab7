import type { Environment } from '#config/load.ts'
import type { Config } from '#config/schema.ts'
import type { Transport } from '#inference/transport.ts'
import type { Log } from '#telemetry/log.ts'
import type { Finding } from './finding.ts'

/** The inputs of the checks. */
export type CheckInputs = {
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
  readonly limitMs: (inputs: CheckInputs) => number
  /** An error becomes a finding. */
  readonly check: (inputs: CheckInputs, signal: AbortSignal) => Promise<readonly Finding[]>
}
