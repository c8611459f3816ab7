import { mkdirSync, writeFileSync } from 'node:fs'
import { cpus, release } from 'node:os'
import { dirname } from 'node:path'
import type { LoadReport } from './load-job.ts'
import type { Faults } from './stream-check.ts'

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
  figures: object,
): void {
  const { jsonFile, databaseServer, ...told } = options
  if (jsonFile === undefined) return
  const database = databaseServer === undefined ? 'pglite' : 'postgres'
  const result = { machine: machine(), bench, options: { ...told, database }, ...figures }
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
