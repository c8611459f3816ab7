import { createLog, type Log } from '#telemetry/log.ts'

/** Discards everything. */
export const quietLog: Log = createLog({
  level: 'error',
  format: 'json',
  write: () => {},
  now: () => new Date(),
})
