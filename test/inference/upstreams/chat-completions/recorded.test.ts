import { describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { GenerationEvent } from '#inference/events.ts'
import { isRecord, type JsonObject, parseJson } from '#lib/json.ts'
import { decodeBytes, decodePayloads } from '#test/support/chat-decoding.ts'
import { mergeDeltas } from '#test/support/generation.ts'
import {
  recordedBody,
  recordedBodyNames,
  recordedPayloads,
  recordedStream,
  recordedStreamNames,
  sharedRecordingsExist,
} from '#test/support/recordings.ts'

const fixtures = join(import.meta.dir, '../../../fixtures/chat-completions')
const errorBody = 'reasoning-model-legacy-parameter-error.json'

/** Streams up to this length are divided at every byte, longer ones at this many offsets. */
const everyByteMax = 4_096
const placesInLong = 1_000

/** A summary of a response. */
type Answer = { text: string; reasoning: string; calls: { name: string; arguments: string }[] }

function foldEvents(events: readonly GenerationEvent[]): Answer {
  const answer: Answer = { text: '', reasoning: '', calls: [] }
  for (const event of events) {
    const call = answer.calls.at(-1)
    if (event.type === 'text-delta') answer.text += event.text
    if (event.type === 'reasoning-delta') answer.reasoning += event.text
    if (event.type === 'tool-call-start') {
      answer.calls.push({ name: event.call.name, arguments: '' })
    }
    if (event.type === 'tool-call-delta' && call !== undefined) call.arguments += event.text
  }
  return answer
}

/** The same, computed directly from the fields of the recording. */
function foldRecording(payloads: readonly string[]): Answer {
  const answer: Answer = { text: '', reasoning: '', calls: [] }
  for (const payload of payloads) {
    const said = readSaid(payload)
    answer.reasoning += said['reasoning_content'] ?? ''
    const { content } = said
    if (typeof content === 'string') answer.text += content
    for (const part of listOf(content)) {
      answer.text += part['text'] ?? ''
      for (const thought of listOf(part['thinking'])) answer.reasoning += thought['text']
    }
    for (const part of listOf(said['tool_calls'])) {
      const piece = isRecord(part['function']) ? part['function'] : {}
      if (piece['name']) answer.calls.push({ name: String(piece['name']), arguments: '' })
      const call = answer.calls.at(-1)
      if (call !== undefined) call.arguments += piece['arguments'] ?? ''
    }
  }
  return answer
}

function readSaid(payload: string): JsonObject {
  const [choice] = listOf(readObject(payload)['choices'])
  const said = choice?.['delta'] ?? choice?.['message']
  return isRecord(said) ? said : {}
}

function readObject(text: string): JsonObject {
  const parsed = parseJson(text)
  return isRecord(parsed) ? parsed : {}
}

function listOf(value: unknown): JsonObject[] {
  return Array.isArray(value) ? value.filter(isRecord) : []
}

function lastUsage(payloads: readonly string[]): JsonObject {
  const usages = payloads.map((payload) => readObject(payload)['usage']).filter(isRecord)
  return usages.at(-1) ?? {}
}

function totalOf(events: readonly GenerationEvent[]) {
  const finish = events.at(-1)
  return finish?.type === 'finish' ? finish.usage?.totalTokens : null
}

describe('recorded traffic', () => {
  test.each(recordedStreamNames('chat-completions'))('%s has its recorded content', (name) => {
    const payloads = recordedPayloads('chat-completions', name)
    const { events, error } = decodePayloads([...payloads, '[DONE]'])
    expect(error).toBeNull()
    expect(foldEvents(events)).toEqual(foldRecording(payloads))
    expect<unknown>(totalOf(events)).toBe(lastUsage(payloads)['total_tokens'])
  })

  const bodies = recordedBodyNames('chat-completions').filter((name) => name !== errorBody)
  test.each(bodies)('%s has its recorded content', (name) => {
    const body = recordedBody('chat-completions', name)
    const { events, error } = decodePayloads([body])
    expect(error).toBeNull()
    expect(foldEvents(events)).toEqual(foldRecording([body]))
    expect<unknown>(totalOf(events)).toBe(lastUsage([body])['total_tokens'])
  })

  test.skipIf(!sharedRecordingsExist)('a recorded error is one', () => {
    const { error } = decodePayloads([recordedBody('chat-completions', errorBody)])
    expect(error).toMatchObject({
      kind: 'invalid_request',
      param: 'max_tokens',
      wireCode: 'unsupported_parameter',
    })
  })

  test.skipIf(!sharedRecordingsExist)(
    'sources are cited at their markers, others at the end',
    () => {
      const name = 'perplexity-citations.chunks.txt'
      const { events } = decodePayloads(recordedPayloads('chat-completions', name))
      const text = 'The current population of **[2][3]'
      expect(foldEvents(events).text).toBe(text)
      const citations = events.flatMap((event) => (event.type === 'citation' ? event.citation : []))
      expect(citations).toHaveLength(7)
      expect(citations[0]).toEqual({
        kind: 'url',
        url: 'https://en.wikipedia.org/wiki/San_Francisco',
        title: 'https://en.wikipedia.org/wiki/San_Francisco',
        startIndex: text.indexOf('[2]'),
        endIndex: text.indexOf('[2]') + 3,
      })
      expect(citations[2]).toMatchObject({ startIndex: text.length, endIndex: text.length })
      expect(events.at(-2)?.type).toBe('text-end')
    },
  )
})

/** The events as text, with joined deltas and without random ids. */
function canonical(pieces: Uint8Array[], thinkTags: boolean): string {
  const { events, error } = decodeBytes(pieces, { thinkTags })
  const text = JSON.stringify(mergeDeltas(events))
  return `${text} ${error?.kind}`.replace(/"call_[0-9a-z]{26}"/g, '"call_minted"')
}

function placesToCut(bytes: Uint8Array): Iterable<number> {
  if (bytes.length <= everyByteMax) return bytes.keys()
  // A linear congruential generator: the same offsets in every run.
  let seed = 20_260_806
  return Array.from({ length: placesInLong }, () => {
    seed = (seed * 1_664_525 + 1_013_904_223) % 2 ** 32
    return seed % bytes.length
  })
}

function findDifferingCuts(bytes: Uint8Array, thinkTags = false): number[] {
  const whole = canonical([bytes], thinkTags)
  expect(whole).toContain('"finish"')
  expect(
    canonical(
      [...bytes].map((byte) => Uint8Array.of(byte)),
      thinkTags,
    ),
  ).toBe(whole)
  return [...placesToCut(bytes)].filter(
    (place) => canonical([bytes.subarray(0, place), bytes.subarray(place)], thinkTags) !== whole,
  )
}

describe('decoding does not depend on how reads divide the bytes', () => {
  test.each(readdirSync(fixtures))('%s', (name) => {
    const bytes = readFileSync(join(fixtures, name))
    expect(findDifferingCuts(bytes)).toEqual([])
    expect(findDifferingCuts(bytes, true)).toEqual([])
  })

  test.each(recordedStreamNames('chat-completions'))('%s', (name) => {
    const bytes = new TextEncoder().encode(recordedStream('chat-completions', name))
    expect(findDifferingCuts(bytes)).toEqual([])
  })
})
