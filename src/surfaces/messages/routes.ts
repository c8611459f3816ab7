import { Elysia } from 'elysia'
import type { Auth } from '#auth/auth.ts'
import { guard } from '#auth/guard.ts'
import type { Principal } from '#auth/principal.ts'
import type { Config } from '#config/schema.ts'
import { readJsonBody } from '#http/body.ts'
import { streamEvents } from '#http/event-stream.ts'
import { requestIdOf } from '#http/request-lifecycle.ts'
import { tokenCountHeader } from '#surfaces/token-count-header.ts'
import type { MessageCaller, MessageTurns } from './turn.ts'

type MessagesDeps = {
  auth: Auth
  turns: MessageTurns
  config: Pick<Config, 'limits' | 'stream'>
}

/** Clients append `/v1/messages` to their base or only `/messages`, and bases end in `/v1` or not. */
const paths = ['/v1/messages', '/messages', '/v1/v1/messages']

/** `POST /compat/v1/messages` and the count of its tokens; one message, streamed or whole. */
export function messageRoutes({ auth, turns, config }: MessagesDeps) {
  const app = new Elysia({ name: 'messages', prefix: '/compat' }).use(guard(auth))
  return paths.reduce(
    (routes, path) =>
      routes
        .post(
          path,
          async ({ request, principal, server, set }) => {
            const body = await readJsonBody(request, config.limits)
            // Silence is part of a long generation; the generation's own deadlines bound it.
            server?.timeout(request, 0)
            const turn = await turns.begin(body, callerOf(request, principal, set))
            if (!turn.streams) return Response.json(await turn.answer())
            return streamEvents(turn.source(), { ...config.stream, closing: '' })
          },
          route('Create a message'),
        )
        .post(
          `${path}/count_tokens`,
          async ({ request, principal, set }) => {
            const body = await readJsonBody(request, config.limits)
            const counted = await turns.count(body, callerOf(request, principal, set))
            set.headers[tokenCountHeader] = counted.tier
            return { input_tokens: counted.tokens }
          },
          route('Count the input tokens of a message'),
        ),
    app,
  )
}

function callerOf(
  request: Request,
  principal: Principal,
  set: { headers: Record<string, unknown> },
): MessageCaller {
  const { headers, signal } = request
  return { principal, headers, signal, requestId: requestIdOf(set) }
}

function route(summary: string) {
  return {
    requires: 'can_access_api' as const,
    parse: 'none' as const,
    detail: { tags: ['Messages'], summary },
  }
}

/** Some clients look whether anything is there before they ask, at the root of the base or of the host. */
export function messageProbes() {
  const detail = { tags: ['Operations'], security: [] }
  const answer = () => ({ status: 'ok' })
  return new Elysia({ name: 'message-probes' })
    .get('/', answer, { detail })
    .get('/compat', answer, { detail })
}
