import type { Config } from '#config/schema.ts'
import { beginStream, type FrameSink } from '#http/event-stream.ts'
import { AppError } from '#lib/errors.ts'
import type { JsonObject } from '#lib/json.ts'
import type { Caller, Turns } from '#surfaces/responses/turn.ts'
import type { TurnMemory } from './memory.ts'
import type { Outbox } from './outbox.ts'
import { type TurnEnding, toSocketFrames } from './server-frames.ts'

/** Where the events of a turn go. */
export type TurnSink = FrameSink & {
  /** How the events that were written ended. */
  ending(): TurnEnding
}

/**
 * Answers one request of a connection, and remembers what a later one may follow. Throws what went
 * wrong before the first event, or what kept the last one from coming; a failure in between is told
 * by the events. A request that fails takes with it what it followed, as the format demands.
 */
export async function runTurn(
  deps: { turns: Turns; memory: TurnMemory; config: Pick<Config, 'stream'> },
  asked: { body: JsonObject; caller: () => Promise<Omit<Caller, 'memory'>>; sink: TurnSink },
): Promise<void> {
  const { memory, turns } = deps
  const { body, sink } = asked
  let ending: TurnEnding = null
  try {
    const caller = await asked.caller()
    const turn = await turns.begin(body, { ...caller, memory })
    const { pump } = await beginStream(turn.source(), deps.config.stream)
    await pump(sink, '')
    ending = sink.ending()
    if (caller.signal.aborted) return
    if (ending === null) throw brokenOff()
    // What is stored can be followed from anywhere.
    if (ending === 'over' && body['store'] === false) memory.remember(turn.id, turn.context())
  } finally {
    if (ending !== 'over') memory.forget(String(body['previous_response_id']))
  }
}

/** `cut` gives up a client that does not read. */
export function createTurnSink(
  outbox: Outbox,
  { streamId, cut }: { streamId: string | null; cut: () => void },
): TurnSink {
  let ending: TurnEnding = null
  return {
    write(events) {
      const given = toSocketFrames(events, streamId)
      ending = given.ending ?? ending
      return outbox.write(given.frames)
    },
    end: () => {},
    close: cut,
    ending: () => ending,
  }
}

function brokenOff(): AppError {
  return new AppError('internal_error', 'The events of the response broke off; ask for it by id.')
}
