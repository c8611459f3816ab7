import type { EventBatch } from '#inference/events.ts'
import type { EventBatches } from '#inference/inference.ts'
import type { GenerationRequest } from '#inference/request.ts'
import type { Steering } from '#inference/steering.ts'
import type { ConnectionMemory } from '#surfaces/responses/history.ts'

/** What a connection adds to one of its requests. */
export type SocketTurn = ConnectionMemory & { readonly steering: Steering }

/** Runs the generation of a request, which its client may interrupt. */
export function generateTurn(
  generate: (signal: AbortSignal) => EventBatches,
  {
    turn,
    isInputOnly,
    ...of
  }: { turn: SocketTurn; isInputOnly: boolean; signal: AbortSignal; request: GenerationRequest },
): EventBatches {
  return isInputOnly ? storeInputOnly() : turn.steering.run(generate, of)
}

/** Ends without output: the request only stored its input with the connection. */
async function* storeInputOnly(): AsyncGenerator<EventBatch, void, void> {
  yield [
    { type: 'generation-start' },
    { type: 'finish', reason: 'stop', rawReason: null, usage: null },
  ]
}
