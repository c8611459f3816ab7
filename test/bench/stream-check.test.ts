import { expect, test } from 'bun:test'
import { framesOf } from '../../bench/support/encoded-chunks.ts'
import { protocols } from '../../bench/support/mock-frames.ts'
import { barePlan, tokenText } from '../../bench/support/plan.ts'
import { noFaults, StreamCheck } from '../../bench/support/stream-check.ts'

/** The stream checks of the benchmarks: clean streams pass, each fault is counted. */

const plan = { ...barePlan, tokens: 4, tokensPerSecond: 100 }
const startedAtMs = 1_700_000_000_000

type Protocol = (typeof protocols)[number]

/** The frames of the whole stream, one string each. */
function framesIn(protocol: Protocol): string[] {
  const frames = framesOf[protocol]
  const tokens = Array.from({ length: plan.tokens }, (_, index) =>
    tokenText(plan, index, startedAtMs),
  )
  const text =
    frames.opening() +
    tokens.map((token, index) => frames.token(token, index)).join('') +
    frames.closing(plan, tokens.join(''), true)
  return text.split(/(?<=\n\n)/)
}

function check(protocol: Protocol, frames: readonly string[]) {
  const faults = noFaults()
  let tokens = 0
  const handler = { onToken: () => tokens++, onHeartbeat: () => undefined }
  const stream = new StreamCheck({ protocol, plan, faults, handler })
  for (const frame of frames) stream.push(frame, startedAtMs)
  stream.end()
  const { samples, ...counts } = faults
  return { tokens, counts, faultsTotal: Object.values(counts).reduce((sum, n) => sum + n, 0) }
}

const isToken = (word: string) => (frame: string) => frame.includes(`"${word} "`)

for (const protocol of protocols) {
  test(`the mock's own ${protocol} stream is clean, in one piece and byte by byte`, () => {
    const frames = framesIn(protocol)
    const clean = { tokens: plan.tokens, faultsTotal: 0 }
    expect(check(protocol, frames)).toMatchObject(clean)
    expect(check(protocol, [frames.join('')])).toMatchObject(clean)
    expect(check(protocol, frames.join('').split(''))).toMatchObject(clean)
  })

  test(`a ${protocol} stream without one token counts one lost`, () => {
    const frames = framesIn(protocol).filter((frame) => !isToken('t2')(frame))
    expect(check(protocol, frames).counts.lost).toBe(1)
  })

  test(`a ${protocol} stream with a repeated token counts one duplicated`, () => {
    const frames = framesIn(protocol).flatMap((frame) =>
      isToken('t2')(frame) ? [frame, frame] : [frame],
    )
    expect(check(protocol, frames).counts.duplicated).toBe(1)
  })

  test(`a ${protocol} stream with different text counts as changed`, () => {
    const frames = framesIn(protocol).map((frame) => frame.replace('"t2 "', '"tx "'))
    expect(check(protocol, frames).counts.changed).toBeGreaterThan(0)
  })

  test(`a ${protocol} stream without its terminal event counts as failed`, () => {
    const frames = framesIn(protocol)
    const last = frames.findLastIndex(isToken('t3'))
    expect(check(protocol, frames.slice(0, last + 1)).counts.failed).toBe(1)
  })
}

test('reordered events of a message are out of sequence', () => {
  const frames = framesIn('messages')
  const stop = frames.findIndex((frame) => frame.startsWith('event: content_block_stop'))
  const moved = [...frames.slice(0, 2), frames[stop] ?? '', ...frames.slice(2)]
  expect(check('messages', moved).counts.outOfSequence).toBeGreaterThan(0)
})
