import { createConversations } from '#responses/conversations.ts'
import { createResponseRuns } from '#responses/runs.ts'
import { createResponseStore } from '#responses/store.ts'
import { renderTerminalFrames } from '#surfaces/responses/render.ts'
import type { World } from './world.ts'

/** Responses and conversations that outlive their request. */
export async function composeStored({ config, log, database, clock }: World) {
  const { now } = clock
  const storing = { limits: config.responses, now }
  const responses = createResponseStore(database, storing)
  const runs = await createResponseRuns({
    store: responses,
    bus: database,
    soleProcess: database.kind === 'pglite',
    settings: config.responses,
    heartbeatMs: config.stream.heartbeatMs,
    renderTerminalFrames,
    log,
    now,
  })
  return { responses, conversations: createConversations(database, storing), runs }
}
