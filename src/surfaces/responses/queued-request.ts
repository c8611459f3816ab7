import type { Auth } from '#auth/auth.ts'
import { requireAccess } from '#auth/guard.ts'
import { basePermission } from '#auth/permissions.ts'
import { isRecord, parseJson } from '#lib/json.ts'
import type { RequestContext } from '#lib/request-context.ts'
import type { QueuedResponse } from '#responses/stored.ts'
import type { Sealer } from '#sealing/sealer.ts'

/** What a queued response needs to run without the request that created it. */
export type QueuedRequest = {
  body: unknown
  groups: readonly string[]
  keyId: string | null
  requestId: string
}

function openRequest(sealer: Sealer, queued: QueuedResponse): QueuedRequest {
  const plain = sealer.open('request', queued.ownerId, queued.request)
  const request = plain === null ? undefined : parseJson(plain)
  if (!isRecord(request) || !Array.isArray(request['groups'])) {
    throw new Error('a queued request cannot be decrypted')
  }
  const { body, groups, keyId, requestId } = request
  return {
    body,
    groups,
    // Versions before the usage ledger did not store it.
    keyId: typeof keyId === 'string' ? keyId : null,
    requestId: String(requestId),
  }
}

/** A queued response has no client; it is cancelled by its run. */
const neverAborted = new AbortController().signal
const access = { permission: basePermission, scope: 'inference' } as const

/**
 * The body of a queued response and its context, with the rights of this moment: throws an `AppError` of
 * status 401 or 403 if the user or the key has lost them since.
 */
export async function openQueuedRequest(
  { sealer, auth }: { sealer: Sealer; auth: Pick<Auth, 'currentPrincipal'> },
  queued: QueuedResponse,
  trace: RequestContext['trace'],
): Promise<{ body: unknown; context: RequestContext }> {
  const { body, groups, keyId, requestId } = openRequest(sealer, queued)
  const { ownerId: userId } = queued
  const principal = await auth.currentPrincipal({ userId, keyId })
  if (principal !== undefined) requireAccess(principal, access)
  const context: RequestContext = {
    requestId,
    principal: principal ?? { userId, groups },
    keyId,
    trace,
    priority: 'background',
    receivedAtMs: performance.now(),
    signal: neverAborted,
  }
  return { body, context }
}
