import { expect } from 'bun:test'
import { ResponseStream } from 'openai/lib/responses/ResponseStream'
import type { JsonObject } from '#lib/json.ts'
import type { Frame } from './response-frames.ts'

/**
 * The strictest client, the stream helper of the `openai` package, with the frames of a complete
 * stream. Throws if it rejects them.
 */
export async function checkWithStrictClient(
  frames: readonly Frame[],
  response: JsonObject,
): Promise<void> {
  const failed = frames.findIndex(({ type }) => type === 'error')
  // It throws on an error event, and does not see later ones.
  const read = failed === -1 ? frames : frames.slice(0, failed)
  const lines = read.map((frame) => `${JSON.stringify(frame)}\n`).join('')
  const stream = ResponseStream.fromReadableStream(new Blob([lines]).stream())
  const { id, status } = await stream.finalResponse()
  expect<unknown>(id).toBe(response['id'])
  if (failed === -1) expect<unknown>(status).toBe(response['status'])
}
