/** Captions of a transcript; the gateway and the console render them. */

type Cue = { readonly startMs: number; readonly endMs: number; readonly text: string }

/** SubRip: numbered cues, with a comma before the milliseconds. */
export function renderSrt(cues: readonly Cue[]): string {
  return cues
    .map((cue, index) => `${index + 1}\n${renderTimes(cue, ',')}\n${oneLine(cue.text)}\n\n`)
    .join('')
}

export function renderVtt(cues: readonly Cue[]): string {
  const rendered = cues.map(
    (cue) => `${renderTimes(cue, '.')}\n${escapeMarkup(oneLine(cue.text))}\n\n`,
  )
  return `WEBVTT\n\n${rendered.join('')}`
}

function renderTimes({ startMs, endMs }: Cue, point: ',' | '.'): string {
  return `${renderTime(startMs, point)} --> ${renderTime(endMs, point)}`
}

function renderTime(ms: number, point: ',' | '.'): string {
  const whole = Math.round(ms)
  const digits = (value: number, count = 2) => String(Math.floor(value)).padStart(count, '0')
  const clock = [whole / 3_600_000, (whole / 60_000) % 60, (whole / 1000) % 60]
  return `${clock.map((part) => digits(part)).join(':')}${point}${digits(whole % 1000, 3)}`
}

/** A blank line would end the cue, and an arrow would be read as its times. */
function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ').replaceAll('-->', '→')
}

function escapeMarkup(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
