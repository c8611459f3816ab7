import { readFileSync } from 'node:fs'
import { isRecord, parseJson } from '#lib/json.ts'
import { formatTable } from './table.ts'

/** Number of warnings and errors in a gateway's log, by message. */
export function countWarnings(logFile: string): Readonly<Record<string, number>> {
  const counts = new Map<string, number>()
  for (const line of readFileSync(logFile, 'utf8').split('\n')) {
    const record = parseJson(line)
    if (!isRecord(record)) continue
    const { level, message, kind } = record
    if (level !== 'warn' && level !== 'error') continue
    const name = kind === undefined ? String(message) : `${message} (${kind})`
    counts.set(name, (counts.get(name) ?? 0) + 1)
  }
  return Object.fromEntries(counts)
}

export function formatLogLines(lines: Readonly<Record<string, number>>): string {
  const rows = Object.entries(lines).map(([message, count]) => [message, String(count)])
  return formatTable(['warnings and errors in the log', 'lines'], rows)
}

/** The first line of a log with this message. */
export function findLine(logFile: string, message: string): Record<string, unknown> | null {
  const records = readFileSync(logFile, 'utf8').split('\n').map(parseJson).filter(isRecord)
  return records.find((record) => record['message'] === message) ?? null
}
