import { expect, test } from 'bun:test'
import { countFrames, framesAfter, joinSegments, replaceEnd } from '#responses/log-segment.ts'

/** Cutting and joining the logged frames of a response. */
const frame = (number: number) => `event: e\ndata: ${number}\n\n`
const frames = (...numbers: number[]) => numbers.map(frame).join('')
const segment = (first: number, last: number) => ({
  first,
  last,
  frames: frames(...Array.from({ length: last - first + 1 }, (_, at) => first + at)),
})

test.each([
  [-1, [3, 4, 5, 6]],
  [2, [3, 4, 5, 6]],
  [3, [4, 5, 6]],
  [4, [5, 6]],
  [5, [6]],
  [6, []],
  [9, []],
])('after frame %i of the frames 3 to 6 come %j', (after, left) => {
  expect(framesAfter(segment(3, 6), after)).toBe(frames(...left))
})

test('the last frames are replaced by others with numbers up to a new last one', () => {
  const end = '!\n\n?\n\n'
  expect(replaceEnd(segment(3, 6), end, 6)).toEqual({
    first: 3,
    last: 6,
    frames: frames(3, 4) + end,
  })
  expect(replaceEnd(segment(3, 6), end, 7)).toEqual({
    first: 3,
    last: 7,
    frames: frames(3, 4, 5) + end,
  })
  // The new ones may begin before the segment, or right after it.
  expect(replaceEnd(segment(3, 3), end, 3)).toEqual({ first: 3, last: 3, frames: end })
  expect(replaceEnd(segment(3, 3), end, 5).frames).toBe(frames(3) + end)
})

test('consecutive segments are joined', () => {
  expect(joinSegments([])).toBeNull()
  const one = segment(3, 4)
  expect(joinSegments([one])).toBe(one)
  expect(joinSegments([one, segment(5, 5), segment(6, 8)])).toEqual(segment(3, 8))
})

test('frames are counted by the blank lines that end them', () => {
  expect(['', frame(0), frames(0, 1), '\n\n\n\n'].map(countFrames)).toEqual([0, 1, 2, 2])
})
