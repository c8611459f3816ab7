import type { ExchangeObserver } from '#lib/exchange.ts'
import { createLog, type Log } from '#telemetry/log.ts'

/** Discards everything. */
export const quietLog: Log = createLog({
  level: 'error',
  format: 'json',
  write: () => {},
  now: () => new Date(),
})

export const quietObserver: ExchangeObserver = { ended() {} }
