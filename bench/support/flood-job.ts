import type { CpuUse } from './cpu-use.ts'
import type { Quantiles } from './histogram.ts'
import type { Faults } from './stream-check.ts'

/** Who asks, from those who need nobody's leave to those who have it. */
export const callers = [
  'nobody, /livez',
  'wrong checksum',
  'one unknown key',
  'ever new unknown keys',
  'broken token',
  'wrong signature',
  'valid key',
  'valid token',
] as const

export type CallerName = (typeof callers)[number]

/** What the flood client shall do; it gets this as JSON on its standard input. */
export type FloodJob = {
  readonly port: number
  readonly caller: CallerName
  /** A token and a key that are valid. */
  readonly bearer: string
  readonly apiKey: string
  /** Each asks again as soon as it was answered. */
  readonly connections: number
  /** Figures are taken inside the window; every answer is checked, inside it or not. */
  readonly windowStartMs: number
  readonly windowMs: number
  /** The root of the process tree whose CPU time is taken at both ends of the window. */
  readonly measurePid: number
}

export type FloodReport = {
  readonly windowMs: number
  /** Answers inside the window. */
  readonly answers: number
  readonly cpu: CpuUse
  readonly answerMs: Quantiles
  /** Refused with 503, because the database could not be asked. */
  readonly unavailable: number
  readonly faults: Faults
}
