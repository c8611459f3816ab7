import { Elysia } from 'elysia'
import type { Auth } from '#auth/auth.ts'
import { guard } from '#auth/guard.ts'
import type { Config } from '#config/schema.ts'
import { readJsonBody } from '#http/body.ts'
import { streamEvents } from '#http/event-stream.ts'
import { requestIdOf } from '#http/request-lifecycle.ts'
import type { TokenCounter } from '#inference/token-count/counter.ts'
import { tokenCountHeader } from '#surfaces/token-count-header.ts'
import { responseOperations } from './description/operations.ts'
import { doneFrame } from './frames.ts'
import type { Turns } from './turn.ts'

export type ResponsesDeps = {
  auth: Auth
  turns: Turns
  tokenCounter: Pick<TokenCounter, 'count'>
  config: Pick<Config, 'limits' | 'stream' | 'tokens'>
}

/** `POST /v1/responses`: one generation, streamed or folded into one answer. */
export function responsesRoutes({ auth, turns, tokenCounter, config }: ResponsesDeps) {
  return new Elysia({ name: 'responses', prefix: '/v1/responses' })
    .use(guard(auth))
    .post(
      '/',
      async ({ request, principal, server, set }) => {
        const body = await readJsonBody(request, config.limits)
        // Silence is part of a long generation; the generation's own deadlines bound it.
        server?.timeout(request, 0)
        const { signal } = request
        const turn = await turns.begin(body, { principal, signal, requestId: requestIdOf(set) })
        if (!turn.streams) return turn.answer()
        return streamEvents(turn.source(), { ...config.stream, closing: doneFrame })
      },
      {
        requires: 'can_access_api',
        parse: 'none',
        detail: responseOperations.create,
      },
    )
    .post(
      '/input_tokens',
      async ({ request, principal, set }) => {
        const body = await readJsonBody(request, config.limits)
        const { signal } = request
        const caller = { principal, signal, requestId: requestIdOf(set) }
        const read = await turns.read(body, caller)
        const waiting = { patienceMs: config.tokens.patienceMs, signal }
        const { tokens, tier } = await tokenCounter.count(read.request, read.targets, waiting)
        set.headers[tokenCountHeader] = tier
        return { object: 'response.input_tokens', input_tokens: tokens }
      },
      {
        requires: 'can_access_api',
        parse: 'none',
        detail: responseOperations.countInput,
      },
    )
}
