import type { CpuUse } from './cpu-use.ts'
import type { Quantiles } from './histogram.ts'
import type { Faults } from './stream-check.ts'

/** Kinds of requests, from unauthenticated to valid. */
export const callers = [
  '/livez, no credential',
  'wrong checksum',
  'same unknown key',
  'new unknown key each time',
  'broken token',
  'wrong signature',
  'valid key',
  'valid token',
] as const

export type CallerName = (typeof callers)[number]

/** Job of the flood client, sent as JSON on its standard input. */
export type FloodJob = {
  readonly port: number
  readonly caller: CallerName
  /** A valid token and a valid key. */
  readonly bearer: string
  readonly apiKey: string
  /** Each connection repeats its request at once. */
  readonly connections: number
  /** Metrics cover the window; every response is checked. */
  readonly windowStartMs: number
  readonly windowMs: number
  /** Root of the process tree whose CPU time is measured over the window. */
  readonly measurePid: number
}

export type FloodReport = {
  readonly windowMs: number
  /** Responses in the window. */
  readonly responses: number
  readonly cpu: CpuUse
  readonly responseMs: Quantiles
  /** Responses 503 because the database was unavailable. */
  readonly unavailable: number
  readonly faults: Faults
}
