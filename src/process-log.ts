import { clock } from './clock.ts'
import type { Config } from './config/schema.ts'
import { createLineWriter } from './telemetry/line-writer.ts'
import { createLog, type Log, type LogOptions } from './telemetry/log.ts'

/** The log of this process on stdout; call `flush` before the process ends. */
export function openProcessLog(config: Pick<Config, 'logLevel' | 'logFormat'>): {
  log: Log
  /** Changes level and format. */
  configure: (config: Pick<Config, 'logLevel' | 'logFormat'>) => void
  flush: () => Promise<void>
} {
  const lines = createLineWriter(process.stdout, (count) =>
    log.warn('log lines dropped, stdout is not read', { count }),
  )
  const options: LogOptions = {
    level: config.logLevel,
    format: config.logFormat,
    write: lines.write,
    now: clock.now,
  }
  const log = createLog(options)
  return {
    log,
    configure(next) {
      options.level = next.logLevel
      options.format = next.logFormat
    },
    flush: lines.flush,
  }
}
