import type { Clock } from '#clock.ts'
import type { Config } from '#config/schema.ts'
import type { Database } from '#db/client.ts'
import type { Settings } from '#settings/settings.ts'
import type { GatewayMetrics } from '#telemetry/gateway-metrics.ts'
import type { Log } from '#telemetry/log.ts'

/** What every part of the composition may need. Each part takes it with what the others made. */
export type World = {
  /** With what administrators have set, at every moment. */
  readonly config: Config
  readonly log: Log
  readonly clock: Clock
  readonly fetch: typeof fetch
  readonly database: Database
  readonly settings: Settings
  readonly metrics: GatewayMetrics
  /** Whether the process was told to stop. */
  readonly draining: () => boolean
}
