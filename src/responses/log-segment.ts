import { isRecord, parseJson } from '#lib/json.ts'
import type { StoredItem } from './response.ts'
import type { LogSegment } from './stored.ts'

/** Between two frames stands a blank line, and JSON never holds one. */
const frameEnd = '\n\n'

/** The frames of a segment that follow this sequence number; '' where there are none. */
export function framesBehind(segment: LogSegment, after: number): string {
  if (after < segment.first) return segment.frames
  if (after >= segment.last) return ''
  return segment.frames.slice(endOfFrames(segment.frames, after - segment.first + 1))
}

/** The segment with its last frames in place of those that have the same sequence numbers. */
export function replaceEnd(segment: LogSegment, frames: string, last: number): LogSegment {
  const kept = Math.max(0, last + 1 - countFrames(frames) - segment.first)
  return {
    first: segment.first,
    last,
    frames: segment.frames.slice(0, endOfFrames(segment.frames, kept)) + frames,
  }
}

/** Segments that follow one another, as one. */
export function joinSegments(segments: readonly LogSegment[]): LogSegment | null {
  const [first, last] = [segments[0], segments.at(-1)]
  if (first === undefined || last === undefined) return null
  if (first === last) return first
  const frames = segments.map((segment) => segment.frames).join('')
  return { first: first.first, last: last.last, frames }
}

export function countFrames(frames: string): number {
  let count = 0
  for (let at = frames.indexOf(frameEnd); at >= 0; at = frames.indexOf(frameEnd, at + 2)) count += 1
  return count
}

/** Adds the items that ended within these frames, each at its place in the output. */
export function collectItems(frames: string, items: Map<number, StoredItem>): void {
  for (const frame of frames.split(frameEnd)) {
    if (!frame.startsWith('event: response.output_item.done\n')) continue
    const event = parseJson(frame.slice(frame.indexOf('data: ') + 'data: '.length))
    if (!isRecord(event) || typeof event['output_index'] !== 'number') continue
    if (isStoredItem(event['item'])) items.set(event['output_index'], event['item'])
  }
}

function isStoredItem(value: unknown): value is StoredItem {
  return isRecord(value) && typeof value['id'] === 'string' && typeof value['type'] === 'string'
}

/** Where the first `count` frames end. */
function endOfFrames(frames: string, count: number): number {
  let end = 0
  for (let seen = 0; seen < count; seen++) {
    const at = frames.indexOf(frameEnd, end)
    if (at < 0) return frames.length
    end = at + frameEnd.length
  }
  return end
}
