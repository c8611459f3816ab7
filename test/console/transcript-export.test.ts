import { expect, test } from 'bun:test'
import {
  clockOf,
  exportTranscript,
  renderTranscript,
  type Segment,
  withSegment,
} from '#console/pages/speech/transcript.ts'

const segment = (id: string, start: number, end: number, text: string): Segment => ({
  ...{ id, start, end, text },
  stableText: null,
  words: [],
})

const segments = [
  segment('1', 0.42, 1.18, 'good morning'),
  segment('2', 3_725.5, 3_727, 'a < b --> c\n& so on'),
  { ...segment('3', 3_728, 3_729, 'not final yet'), stableText: 'not' },
]

test('plain text has one line for each final segment', () => {
  expect(renderTranscript(segments, 'txt')).toBe('good morning\na < b --> c\n& so on\n')
})

test('SubRip has numbered cues with a comma before the milliseconds', () => {
  expect(renderTranscript(segments, 'srt')).toBe(
    '1\n00:00:00,420 --> 00:00:01,180\ngood morning\n\n2\n01:02:05,500 --> 01:02:07,000\na < b → c & so on\n\n',
  )
})

test('WebVTT begins with its name, and escapes what is markup there', () => {
  expect(renderTranscript(segments, 'vtt')).toBe(
    'WEBVTT\n\n00:00:00.420 --> 00:00:01.180\ngood morning\n\n01:02:05.500 --> 01:02:07.000\na &lt; b → c &amp; so on\n\n',
  )
  expect(exportTranscript(segments, 'vtt').type).toBe('text/vtt;charset=utf-8')
})

test('a segment replaces its earlier text and keeps its place in time', () => {
  const later = withSegment(segments, segment('0', 0, 0.2, 'ahem'))
  const replaced = withSegment(later, segment('1', 0.42, 1.2, 'good evening'))
  expect(replaced.map(({ text }) => text).slice(0, 2)).toEqual(['ahem', 'good evening'])
  expect(replaced).toHaveLength(4)
})

test('times are read as a clock', () => {
  expect([0, 9.96, 65.25, 3_725.5].map(clockOf)).toEqual([
    '0:00.0',
    '0:09.9',
    '1:05.2',
    '1:02:05.5',
  ])
})
