import { expect, test } from 'bun:test'
import type { GenerationEvent } from '#inference/events.ts'
import { AppError } from '#lib/errors.ts'
import { doneFrame } from '#surfaces/responses/frames.ts'
import { noHistory } from '#surfaces/responses/history.ts'
import { parseCreateResponse } from '#surfaces/responses/parse.ts'
import { ResponseRenderer } from '#surfaces/responses/render.ts'
import { createDice } from '#test/support/dice.ts'
import { createGrammar } from '#test/support/grammar.ts'
import { normalise } from '#test/support/response-content.ts'
import { checkStream } from '#test/support/response-frames.ts'
import { rollGeneration } from '#test/support/rolled-events.ts'
import { openSeal, testSeals } from '#test/support/sealing.ts'

/** Every valid event sequence becomes a valid stream, with heartbeats at any place. */

const generations = 3_000

const { echo } = parseCreateResponse(
  { model: 'm', input: 'x' },
  {
    limits: { inputCharsMax: 10, inputItemsMax: 1, toolsMax: 1 },
    history: noHistory,
    seals: testSeals,
  },
)
const open = (stream: boolean, includeSealed: boolean) =>
  new ResponseRenderer({
    id: 'resp_test',
    createdAt: new Date(0),
    echo,
    includeSealed,
    includeSearchResults: ['file_search_call'],
    reasoningSeal: openSeal,
    stream,
    framesBefore: 0,
    now: () => new Date(0),
  })

/** Whether there is anything to seal: reasoning, or the payload of the upstream. */
function isSealable(events: readonly GenerationEvent[]): boolean {
  const raw = new Set<number>()
  for (const event of events) {
    if (event.type === 'reasoning-start' && event.form === undefined) raw.add(event.block)
  }
  return events.some(
    (event) =>
      'sealed' in event ||
      (event.type === 'reasoning-delta' && event.text !== '' && raw.has(event.block)),
  )
}

type Dice = ReturnType<typeof createDice>

/** Events in batches of any size, with heartbeats between them, as a silent upstream causes. */
function write(dice: Dice, events: readonly GenerationEvent[], includeSealed: boolean): string {
  const renderer = open(true, includeSealed)
  let wire = dice.upTo(2) === 0 ? renderer.open() : ''
  for (let at = 0; at < events.length; ) {
    if (wire !== '' && dice.upTo(4) === 0) wire += renderer.heartbeat()
    const next = at + 1 + dice.upTo(3)
    wire += renderer.push(events.slice(at, next))
    at = next
  }
  return wire + doneFrame
}

test('every generation is a valid stream, and its end equals the response without streaming', () => {
  for (let seed = 0; seed < generations; seed++) {
    const dice = createDice(seed)
    const events = rollGeneration(dice)
    const grammar = createGrammar()
    for (const event of events) grammar.check(event)
    grammar.end()

    const includeSealed = dice.upTo(2) === 0
    const { response } = checkStream(write(dice, events, includeSealed))
    expect(JSON.stringify(response).includes('encrypted_content')).toBe(
      includeSealed && isSealable(events),
    )
    const folded = open(false, includeSealed)
    folded.push(events)
    expect(normalise(JSON.stringify(folded.result()))).toBe(normalise(JSON.stringify(response)))
  }
})

test('a failure without any event is a complete stream', () => {
  const error = new AppError('upstream_overloaded', 'Full.')
  for (const opened of [true, false]) {
    const renderer = open(true, false)
    const wire = opened ? renderer.open() + renderer.heartbeat() : ''
    const { response } = checkStream(wire + renderer.fail(error) + doneFrame)
    expect(response).toMatchObject({
      status: 'failed',
      output: [],
      error: { code: 'upstream_overloaded', message: 'Full.', type: 'upstream_error', param: null },
    })
  }
})
