import type { LogSegment } from './stored.ts'

/** A blank line separates frames; their JSON never contains one. */
const frameEnd = '\n\n'

/** The frames of a segment after this sequence number; '' for none. */
export function framesAfter(segment: LogSegment, after: number): string {
  if (after < segment.first) return segment.frames
  if (after >= segment.last) return ''
  return segment.frames.slice(offsetAfter(segment.frames, after - segment.first + 1))
}

/** Replaces the last frames of a segment by frames that end with the sequence number `last`. */
export function replaceEnd(segment: LogSegment, frames: string, last: number): LogSegment {
  const kept = Math.max(0, last + 1 - countFrames(frames) - segment.first)
  return {
    first: segment.first,
    last,
    frames: segment.frames.slice(0, offsetAfter(segment.frames, kept)) + frames,
  }
}

/** Joins consecutive segments. */
export function joinSegments(segments: readonly LogSegment[]): LogSegment | null {
  const [first, last] = [segments[0], segments.at(-1)]
  if (first === undefined || last === undefined) return null
  if (first === last) return first
  const frames = segments.map((segment) => segment.frames).join('')
  return { first: first.first, last: last.last, frames }
}

export function countFrames(frames: string): number {
  return frames.split(frameEnd).length - 1
}

/** The offset behind the first `count` frames. */
function offsetAfter(frames: string, count: number): number {
  let end = 0
  for (let seen = 0; seen < count; seen++) {
    const at = frames.indexOf(frameEnd, end)
    if (at < 0) return frames.length
    end = at + frameEnd.length
  }
  return end
}
