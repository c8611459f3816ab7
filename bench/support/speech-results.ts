import type { Quantiles } from './histogram.ts'
import { formatSlope, type MemorySample, toMebibytes } from './process-tree.ts'
import type { Encoding } from './speech-encoding.ts'
import type { SpeechReport } from './speech-job.ts'
import { utteranceMs, wordsPerUtterance } from './speech-plan.ts'
import { formatTable } from './table.ts'

export type PartName = 'soak' | 'live' | 'flood'

export type Scale = { readonly sessions: number; readonly seconds: number }

export type PartResult = {
  readonly part: PartName
  readonly encoding: Encoding
  readonly scale: Scale
  readonly report: SpeechReport
  /** Memory of the gateway's process tree; the first sample precedes the sessions. */
  readonly memory: readonly MemorySample[]
  /** Peak kernel memory of all TCP sockets of this machine. */
  readonly kernelBytesMax: number
  /** /livez latency, which shows event loop delay. */
  readonly probeMs: Quantiles
  /** Memory of the gateway's process tree. */
  readonly cpuMs: number
  /** Time in which it was runnable but had no core. */
  readonly waitedMs: number | null
}

/** Two minutes. */
const samplesForSlope = 24

export function formatSpeechResult(result: PartResult): string {
  const { part, encoding, report, scale } = result
  const title = `${part}, ${encoding}: ${scale.sessions} × ${scale.seconds} s`
  const own = part === 'flood' ? floodRows(result) : liveRows(result)
  const table = formatTable(['what', title], [...own, ...gatewayRows(result)])
  return `\n${table}${report.faults.samples.map((sample) => `\n    ${sample}`).join('')}`
}

function liveRows({ report }: PartResult): string[][] {
  const { closeCodes, finalMs, latenessMs } = report
  return [
    ['sessions closed with 1000', `${closeCodes['1000'] ?? 0}`],
    ['20 ms frames sent', `${report.framesSent}`],
    ['finals, partials', `${report.finals} with ${report.words} words, ${report.partials}`],
    faultsRow(report),
    ['speech without transcript', `${report.untranscribedMs} ms`],
    ['engine replacements within sessions', `${report.rollovers}`],
    ['final after utterance, ms', formatQuantiles(finalMs)],
    ['frame sent late by, ms', formatQuantiles(latenessMs)],
  ]
}

function floodRows({ report, scale }: PartResult): string[][] {
  const heard = report.heardMs.map((ms) => (ms / 1000).toFixed(0)).join(' / ')
  return [
    ['20 ms frames accepted by sockets', `${report.framesSent}`],
    [`audio heard of each, in ${scale.seconds} s (least / middle / most)`, `${heard} s`],
    faultsRow(report),
  ]
}

function faultsRow({ faults: { lost, wrong, failed } }: SpeechReport): string[] {
  return ['faults', `${lost} words lost, ${wrong} wrong, ${failed} sessions failed`]
}

function gatewayRows({ memory, report, scale, ...result }: PartResult): string[][] {
  const bytes = memory.map((sample) => sample.bytes)
  const first = bytes[0] ?? 0
  const most = Math.max(...bytes)
  const share = (ms: number) => `${((ms / report.elapsedMs) * 100).toFixed(0)} %`
  const audioS = (report.words / wordsPerUtterance) * (utteranceMs / 1000)
  const cpuOfAudio = `${(result.cpuMs / audioS).toFixed(2)} ms per second of audio`
  return [
    ['/livez latency, ms', formatQuantiles(result.probeMs)],
    ['gateway CPU', `${share(result.cpuMs)} of a core, ${cpuOfAudio}`],
    ['… waiting for a core', result.waitedMs === null ? '-' : share(result.waitedMs)],
    ['memory at start', `${toMebibytes(first)} MiB`],
    ['memory, peak', `${toMebibytes(most)} MiB`],
    ['… added per session', `${toMebibytes((most - first) / scale.sessions)} MiB`],
    ['memory, second half', formatSlope(memory, samplesForSlope)],
    ['kernel socket memory of the machine', `${toMebibytes(result.kernelBytesMax)} MiB`],
  ]
}

function formatQuantiles({ p50, p99, max }: Quantiles): string {
  return `p50 ${p50.toFixed(1)}, p99 ${p99.toFixed(1)}, max ${max.toFixed(1)}`
}
