import { cpuUsPer } from './cpu-split.ts'
import type { LoadReport } from './load-job.ts'
import { ratios, valuesByRound } from './rounds.ts'
import type { StalledBuffers } from './stalled-readers.ts'
import { formatSpread, formatTable } from './table.ts'

/** Effect on active readers. */
export type StallResult = {
  readonly round: number
  readonly isBeside: boolean
  readonly report: LoadReport
}

/** Gateway memory before, beside and after stalled readers. */
export type StallMemoryResult = {
  readonly before: number
  readonly besideThem: number
  readonly after: number
  readonly standstill: StalledBuffers
}

export function formatActiveReaders(
  results: readonly StallResult[],
  { streams, stalled }: { streams: number; stalled: number },
): string {
  const without = results.filter(({ isBeside }) => !isBeside)
  const beside = results.filter(({ isBeside }) => isBeside)
  const row = (name: string, value: (result: StallResult) => number, digits: number) => [
    name,
    formatSpread(without.map(value), digits),
    formatSpread(beside.map(value), digits),
    formatSpread(ratios(valuesByRound(beside, value), valuesByRound(without, value)), 2),
  ]
  return formatTable(
    ['what', `${streams - stalled} readers alone`, `beside ${stalled} that stall`, 'ratio'],
    [
      row('gap between two tokens, p99, ms', ({ report }) => report.gapMs.p99, 1),
      row('… p99.9', ({ report }) => report.gapMs.p999, 1),
      row('lag behind schedule, p99, ms', ({ report }) => report.latenessMs.p99, 1),
      row('CPU per event, µs', ({ report }) => cpuUsPer('tokens', report), 1),
    ],
  )
}

/** Memory per stalled reader in gateway and kernel. */
export function formatHeld(results: readonly StallMemoryResult[], stalled: number): string {
  const each = (bytes: (result: StallMemoryResult) => number) =>
    `${formatSpread(
      results.map((result) => bytes(result) / stalled / 2 ** 20),
      2,
    )} MiB`
  const held = ({ besideThem, before }: StallMemoryResult) => besideThem - before
  const said = ({ standstill }: StallMemoryResult) => standstill.unreadByClients
  const tookS = results.map(({ standstill }) => standstill.tookMs / 1000)
  return formatTable(
    ['per stalled reader', 'Sluice', 'budget'],
    [
      ['gateway memory', each(held), ''],
      ['… of which its response so far', each(said), ''],
      ['… beyond that', each((result) => held(result) - said(result)), '≤ 1 MiB'],
      ['… left after it disconnects', each(({ after, before }) => after - before), ''],
      ['kernel buffers, unread by the client', each(said), ''],
      [
        'kernel buffers, unread by the gateway',
        each(({ standstill }) => standstill.unreadByGateway),
        '',
      ],
      ['no progress after', `${formatSpread(tookS, 1)} s`, ''],
    ],
  )
}
