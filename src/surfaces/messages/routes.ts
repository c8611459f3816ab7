import { Elysia } from 'elysia'
import type { Auth } from '#auth/auth.ts'
import { guard } from '#auth/guard.ts'
import type { Permission } from '#auth/permissions.ts'
import type { Principal } from '#auth/principal.ts'
import type { Config } from '#config/schema.ts'
import { readJsonBody } from '#http/body.ts'
import { streamEvents } from '#http/event-stream.ts'
import { requestIdOf } from '#http/request-lifecycle.ts'
import { tokenCountHeader } from '#surfaces/token-count-header.ts'
import { messageOperations } from './description/operations.ts'
import { probeOperation } from './description/probe-operation.ts'
import type { MessageCaller, MessageTurns } from './turn.ts'

type MessagesDeps = {
  auth: Auth
  turns: MessageTurns
  config: Pick<Config, 'limits' | 'stream'>
}

const requires = 'can_access_api' satisfies Permission

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
            if (!turn.streams) return turn.answer()
            return streamEvents(turn.source(), { ...config.stream, closing: '' })
          },
          { requires, parse: 'none', detail: messageOperations.create },
        )
        .post(
          `${path}/count_tokens`,
          async ({ request, principal, set }) => {
            const body = await readJsonBody(request, config.limits)
            const counted = await turns.count(body, callerOf(request, principal, set))
            set.headers[tokenCountHeader] = counted.tier
            return { input_tokens: counted.tokens }
          },
          { requires, parse: 'none', detail: messageOperations.countTokens },
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

/** Some clients look whether anything is there before they ask, at the root of the base or of the host. */
export function messageProbes() {
  const answer = () => ({ status: 'ok' })
  return new Elysia({ name: 'message-probes' })
    .get('/', answer, { detail: probeOperation })
    .get('/compat', answer, { detail: probeOperation })
}
