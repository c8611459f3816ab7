import type { Principal } from '#auth/principal.ts'
import { requestIdOf } from '#http/request-lifecycle.ts'
import type { Actor } from './audit.ts'

/** Who does what a request asks for; `set` is what Elysia gives the handler of the route. */
export function actorOf(
  { userId, credential }: Pick<Principal, 'userId' | 'credential'>,
  set: Parameters<typeof requestIdOf>[0],
): Actor {
  const requestId = requestIdOf(set)
  return {
    userId,
    keyId: credential.kind === 'api-key' ? credential.keyId : null,
    requestId: requestId === '' ? null : requestId,
  }
}
