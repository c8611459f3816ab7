import { mkdirSync, writeFileSync } from 'node:fs'
import { cpus, release } from 'node:os'
import { dirname } from 'node:path'
import type { LoadReport } from './load-job.ts'
import type { Faults } from './stream-check.ts'

/** Where figures came from; without it they mean nothing. */
function machine(): Record<string, string | number> {
  return {
    processor: cpus()[0]?.model ?? 'unknown',
    cores: cpus().length,
    kernel: release(),
    bun: Bun.version,
    at: new Date().toISOString(),
  }
}

export function writeResult(file: string, result: object): void {
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, `${JSON.stringify({ machine: machine(), ...result }, null, 2)}\n`)
}

/** Whether every event of every stream came once, in order and unchanged. */
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

/** The first few things that went wrong, a line each. */
export function formatSamples(faults: Faults): string {
  return faults.samples.map((sample) => `\n    ${sample}`).join('')
}
