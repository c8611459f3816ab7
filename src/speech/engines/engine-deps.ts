import type { Log } from '#telemetry/log.ts'

/** What an engine is given besides its configuration. */
export type EngineDeps = {
  readonly log: Log
  /** What programs find in their environment. */
  readonly environment: Readonly<Record<string, string | undefined>>
}
