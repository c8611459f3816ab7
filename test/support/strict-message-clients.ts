import { expect } from 'bun:test'
import { BetaMessageStream } from '@anthropic-ai/sdk/lib/BetaMessageStream'
import { MessageStream } from '@anthropic-ai/sdk/lib/MessageStream'
import { MessageStream as OlderMessageStream } from '@anthropic-ai/sdk-0137/lib/MessageStream'
import type { CheckedMessage } from './message-frames.ts'

/**
 * The stream helpers of the `@anthropic-ai/sdk` package, given a whole stream. Throws where one of
 * them refuses it, or makes another message of it than it is.
 */
export async function checkWithMessageClients(checked: CheckedMessage): Promise<void> {
  const { frames, message, error } = checked
  // They throw at an error that is told, and are checked by the tests that have one.
  if (message === null || error !== null) return
  for (const helper of [MessageStream, OlderMessageStream, BetaMessageStream]) {
    const final = await readWhole(helper, frames)
    expect<unknown>(final.id).toBe(message['id'])
    expect<unknown>(final.stop_reason).toBe(message['stop_reason'])
    expect<unknown>(final.stop_sequence).toBe(message['stop_sequence'])
    expect(contentOf(final.content)).toEqual(contentOf(message['content']))
  }
}

type Helper = {
  fromReadableStream(stream: ReadableStream): {
    on(event: 'contentBlock', listener: (block: object) => void): unknown
    finalMessage(): Promise<{
      id: string
      content: readonly object[]
      stop_reason: string | null
      stop_sequence: string | null
    }>
  }
}

async function readWhole(helper: Helper, frames: CheckedMessage['frames']) {
  const lines = frames
    .filter(({ type }) => type !== 'ping')
    .map((frame) => `${JSON.stringify(frame)}\n`)
  const stream = helper.fromReadableStream(new Blob([lines.join('')]).stream())
  const blocks: object[] = []
  stream.on('contentBlock', (block) => blocks.push(block))
  const final = await stream.finalMessage()
  expect(contentOf(blocks), 'every block is told when it ends').toEqual(contentOf(final.content))
  return final
}

/** Plain objects: helpers keep more in theirs, and read what was cut off in their own way. */
function contentOf(content: unknown): unknown {
  const blocks: unknown = JSON.parse(JSON.stringify(content))
  return Array.isArray(blocks) ? blocks.map(({ input: _, ...block }) => block) : blocks
}
