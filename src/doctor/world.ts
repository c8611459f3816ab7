import type { Environment } from '#config/load.ts'
import type { Config } from '#config/schema.ts'
import type { Transport } from '#inference/transport.ts'
import type { Log } from '#telemetry/log.ts'
import type { Finding } from './finding.ts'

/** What the checks look at, and by what means. */
export type World = {
  readonly config: Config
  /** What programs of the operator find in theirs. */
  readonly environment: Environment
  readonly transport: Transport
  readonly fetch: typeof fetch
  /** Findings are told by themselves, so this one is quiet. */
  readonly log: Log
  readonly now: () => Date
}

/** Checks that build on one another; groups run side by side. */
export type CheckGroup = {
  /** For the finding that it took too long. */
  readonly name: string
  readonly limitMs: (world: World) => number
  /** What it throws is a finding as well. */
  readonly check: (world: World, signal: AbortSignal) => Promise<readonly Finding[]>
}
