import { expect } from 'bun:test'
import { BetaMessageStream } from '@anthropic-ai/sdk/lib/BetaMessageStream'
import { MessageStream } from '@anthropic-ai/sdk/lib/MessageStream'
import { MessageStream as OlderMessageStream } from '@anthropic-ai/sdk-0137/lib/MessageStream'
import type { CheckedMessage } from './message-frames.ts'

/**
 * The stream helpers of the `@anthropic-ai/sdk` package with a complete stream. Throws if one of
 * them rejects it, or builds a different message.
 */
export async function checkWithMessageClients(checked: CheckedMessage): Promise<void> {
  const { frames, message, error } = checked
  // They throw on an error event; tests with one check them.
  if (message === null || error !== null) return
  for (const helper of [MessageStream, OlderMessageStream, BetaMessageStream]) {
    const final = await readMessage(helper, frames)
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

async function readMessage(helper: Helper, frames: CheckedMessage['frames']) {
  const lines = frames
    .filter(({ type }) => type !== 'ping')
    .map((frame) => `${JSON.stringify(frame)}\n`)
  const stream = helper.fromReadableStream(new Blob([lines.join('')]).stream())
  const blocks: object[] = []
  stream.on('contentBlock', (block) => blocks.push(block))
  const final = await stream.finalMessage()
  expect(contentOf(blocks), 'every block is emitted when it ends').toEqual(contentOf(final.content))
  return final
}

/** As plain objects: helpers keep further state, and parse incomplete input in their own way. */
function contentOf(content: unknown): unknown {
  const blocks: unknown = JSON.parse(JSON.stringify(content))
  return Array.isArray(blocks) ? blocks.map(({ input: _, ...block }) => block) : blocks
}
