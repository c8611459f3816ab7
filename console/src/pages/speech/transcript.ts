import { renderSrt, renderVtt } from '../../../../src/lib/captions.ts'

export type Word = {
  readonly word: string
  readonly start: number
  readonly end: number
  readonly confidence: number | null
}

/** A piece of a transcript, in seconds. */
export type Segment = {
  readonly id: string
  readonly start: number
  readonly end: number
  readonly text: string
  /** The beginning of a text that may still change; null: it is final. */
  readonly stableText: string | null
  readonly words: readonly Word[]
}

export type ExportFormat = 'txt' | 'srt' | 'vtt'

/** Replaces the segment of this id, or adds it at its place in time. */
export function withSegment(segments: readonly Segment[], next: Segment): readonly Segment[] {
  const rest = segments.filter(({ id }) => id !== next.id)
  return [...rest, next].toSorted((one, other) => one.start - other.start)
}

const types: Readonly<Record<ExportFormat, string>> = {
  txt: 'text/plain;charset=utf-8',
  srt: 'application/x-subrip;charset=utf-8',
  vtt: 'text/vtt;charset=utf-8',
}

/** Only final text: the rest may still change. */
export function exportTranscript(segments: readonly Segment[], format: ExportFormat): Blob {
  return new Blob([renderTranscript(segments, format)], { type: types[format] })
}

export function renderTranscript(segments: readonly Segment[], format: ExportFormat): string {
  const cues = segments
    .filter(({ stableText }) => stableText === null)
    .map(({ start, end, text }) => ({ startMs: start * 1000, endMs: end * 1000, text }))
  if (format === 'srt') return renderSrt(cues)
  if (format === 'vtt') return renderVtt(cues)
  return cues.map(({ text }) => `${text}\n`).join('')
}

/** `1:02:03` or `2:03`, and tenths. */
export function clockOf(seconds: number): string {
  const tenths = Math.floor(seconds * 10)
  const digits = (value: number) => String(Math.floor(value)).padStart(2, '0')
  const hours = Math.floor(tenths / 36_000)
  const minutes = Math.floor(tenths / 600) % 60
  const clock = `${digits((tenths / 10) % 60)}.${tenths % 10}`
  return hours === 0 ? `${minutes}:${clock}` : `${hours}:${digits(minutes)}:${clock}`
}
