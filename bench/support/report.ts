import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { cpus, release } from 'node:os'
import { dirname } from 'node:path'
import { isRecord, parseJson } from '#lib/json.ts'
import type { LoadReport } from './load-job.ts'
import type { Faults } from './stream-check.ts'
import { formatTable } from './table.ts'

/** The machine and versions that produced a result. */
function machine(): Record<string, string | number> {
  return {
    processor: cpus()[0]?.model ?? 'unknown',
    cores: cpus().length,
    kernel: release(),
    bun: Bun.version,
    at: new Date().toISOString(),
  }
}

/** Writes the result if a file is given, without the database URL. */
export function writeResult(
  bench: string,
  options: { readonly jsonFile: string | undefined; readonly databaseServer?: string | undefined },
  values: object,
): void {
  const { jsonFile, databaseServer, ...reported } = options
  if (jsonFile === undefined) return
  const database = databaseServer === undefined ? 'pglite' : 'postgres'
  const result = { machine: machine(), bench, options: { ...reported, database }, ...values }
  mkdirSync(dirname(jsonFile), { recursive: true })
  writeFileSync(jsonFile, `${JSON.stringify(result, null, 2)}\n`)
}

/** Whether every event of every stream arrived once, in order and unchanged. */
export function isClean(report: LoadReport): boolean {
  return faultCount(report.faults) === 0
}

export function faultCount(faults: Faults): number {
  const { lost, duplicated, changed, outOfSequence, failed } = faults
  return lost + duplicated + changed + outOfSequence + failed
}

export function formatFaults(faults: Faults): string {
  const { lost, duplicated, changed, outOfSequence, failed } = faults
  return (
    `${lost} lost, ${duplicated} duplicated, ${changed} changed, ` +
    `${outOfSequence} out of sequence, ${failed} streams failed`
  )
}

/** Prints faults by location; returns whether there were none. */
export function printFaults(
  found: readonly { readonly where: string; readonly faults: Faults }[],
): boolean {
  const unclean = found.filter(({ faults }) => faultCount(faults) > 0)
  for (const { where, faults } of unclean) {
    console.log(`${where}: ${formatFaults(faults)}${formatSamples(faults)}`)
  }
  return unclean.length === 0
}

/** The first faults, one per line. */
export function formatSamples(faults: Faults): string {
  return faults.samples.map((sample) => `\n    ${sample}`).join('')
}

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
