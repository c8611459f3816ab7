import type { CallerContext } from '#api/endpoint.ts'
import type { Config } from '#config/schema.ts'
import { beginStream, type FrameSink } from '#http/event-stream.ts'
import { AppError } from '#lib/errors.ts'
import type { JsonObject } from '#lib/json.ts'
import type { ResponseService } from '#surfaces/responses/service.ts'
import { type EventEnding, toServerFrames } from './frames.ts'
import type { HistoryMemory } from './memory.ts'
import type { Outbox } from './outbox.ts'

/** Writes the events of one response to the outbox of the connection. */
export type EventSink = FrameSink & {
  /** How the events written so far ended. */
  ending(): EventEnding
}

/**
 * Runs one request of a connection and remembers its history for a later request. Throws on a
 * failure before the first event, and when the terminal event is missing; any other failure is an
 * event. A failed request removes its predecessor from memory, as the format requires.
 */
export async function runRequest(
  deps: { service: ResponseService; memory: HistoryMemory; config: Pick<Config, 'stream'> },
  request: { body: JsonObject; context: () => Promise<CallerContext>; sink: EventSink },
): Promise<void> {
  const { memory, service } = deps
  const { body, sink } = request
  let ending: EventEnding = null
  try {
    const context = await request.context()
    const response = await service.create(body, context, memory)
    const { pump } = await beginStream(response.source(), deps.config.stream)
    await pump(sink, '')
    ending = sink.ending()
    if (context.signal.aborted) return
    if (ending === null) throw missingEnd()
    // Stored responses can be continued on any connection.
    if (ending === 'ended' && body['store'] === false) {
      memory.remember(response.id, response.history())
    }
  } finally {
    if (ending !== 'ended') memory.forget(String(body['previous_response_id']))
  }
}

/** `disconnect` drops a client that does not read. */
export function createEventSink(
  outbox: Outbox,
  { streamId, disconnect }: { streamId: string | null; disconnect: () => void },
): EventSink {
  let ending: EventEnding = null
  return {
    write(events) {
      const converted = toServerFrames(events, streamId)
      ending = converted.ending ?? ending
      return outbox.write(converted.frames)
    },
    end: () => {},
    close: disconnect,
    ending: () => ending,
  }
}

function missingEnd(): AppError {
  return new AppError(
    'internal_error',
    'The event stream ended without a terminal event; retrieve the response by its id.',
  )
}
