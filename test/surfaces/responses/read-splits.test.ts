import { describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createDice } from '#test/support/dice.ts'
import { recordedStream, recordedStreamNames } from '#test/support/recordings.ts'
import { renderReads } from '#test/support/rendering.ts'
import { normalise } from '#test/support/response-content.ts'

/** The stream does not depend on where reads split the upstream bytes. */

const fixtures = join(import.meta.dir, '../../fixtures/chat-completions')

/** Streams up to this length are split at every byte, longer ones at this many places. */
const everyByteMax = 2_048
const placesInLong = 400

type Protocol = Parameters<typeof renderReads>[0]

function expectNoDifference(protocol: Protocol, bytes: Uint8Array): void {
  const whole = normalise(renderReads(protocol, [bytes]))
  expect(whole).toMatch(/data: \[DONE\]\n\n$|thrown: \w+$/)
  const single = [...bytes].map((_, at) => bytes.subarray(at, at + 1))
  expect(normalise(renderReads(protocol, single))).toBe(whole)
  const differing = placesToCut(bytes.length).filter((place) => {
    const reads = [bytes.subarray(0, place), bytes.subarray(place)]
    return normalise(renderReads(protocol, reads)) !== whole
  })
  expect(differing).toEqual([])
}

function placesToCut(length: number): number[] {
  if (length <= everyByteMax) return Array.from({ length }, (_, at) => at)
  const dice = createDice(length)
  return Array.from({ length: placesInLong }, () => dice.upTo(length))
}

describe('recorded streams', () => {
  test.each(recordedStreamNames('chat-completions'))('chat-completions/%s', (name) => {
    const wire = recordedStream('chat-completions', name)
    expectNoDifference('chat-completions', new TextEncoder().encode(wire))
  })

  test.each(recordedStreamNames('responses'))('responses/%s', (name) => {
    const wire = recordedStream('responses', name)
    expectNoDifference('responses', new TextEncoder().encode(wire))
  })
})

test.each(readdirSync(fixtures))('fixture %s', (name) => {
  expectNoDifference('chat-completions', readFileSync(join(fixtures, name)))
})
