import { Elysia } from 'elysia'
import type { Config } from '#config/schema.ts'
import { readJsonBody } from '#http/body.ts'
import { AppError } from '#lib/errors.ts'
import type { Auth } from './auth.ts'
import { guard } from './guard.ts'
import { apiKeyOperations } from './operations.ts'
import { basePermission } from './permissions.ts'
import type { Principal } from './principal.ts'
import { type ApiKeyRecord, isUuid, parseCreateKey, parsePage } from './schema.ts'
import type { KeyRecord } from './store.ts'

export type ApiKeyRoutesDeps = {
  auth: Auth
  config: Pick<Config, 'limits'>
  now: () => Date
}

/** Making, listing and ending one's API keys; only a token can make one. */
export function apiKeyRoutes({ auth, config, now }: ApiKeyRoutesDeps) {
  return new Elysia({ name: 'api-keys', prefix: '/v1/api-keys' })
    .use(guard(auth))
    .post(
      '/',
      async ({ principal, request, set }) => {
        requireToken(principal)
        const wish = parseCreateKey(await readJsonBody(request, config.limits), now())
        const { key, ...record } = await auth.keyRing.create(principal, wish)
        set.headers['cache-control'] = 'no-store'
        const { last_used_at: _, ...shown } = renderKey(record)
        return { ...shown, key }
      },
      { requires: basePermission, parse: 'none', detail: apiKeyOperations.create },
    )
    .get(
      '/',
      async ({ principal, query }) => {
        const { records, hasMore } = await auth.keyRing.list(principal.userId, parsePage(query))
        return {
          object: 'list',
          data: records.map(renderKey),
          has_more: hasMore,
          first_id: records[0]?.id ?? null,
          last_id: records.at(-1)?.id ?? null,
        }
      },
      { requires: basePermission, detail: apiKeyOperations.list },
    )
    .delete(
      '/:id',
      async ({ principal, params: { id } }) => {
        const isRevoked = isUuid(id) && (await auth.keyRing.revoke(principal.userId, id))
        if (!isRevoked) throw new AppError('not_found', 'You have no API key with this id.')
        return { id, object: 'api_key.deleted', deleted: true }
      },
      { requires: basePermission, detail: apiKeyOperations.revoke },
    )
}

function requireToken({ credential }: Principal): void {
  if (credential.kind === 'jwt') return
  throw new AppError('jwt_required', 'API keys are made with a token, not with an API key.')
}

function renderKey(record: KeyRecord): ApiKeyRecord {
  return {
    id: record.id,
    name: record.name,
    masked: record.masked,
    created_at: record.createdAt.toISOString(),
    expires_at: record.expiresAt?.toISOString() ?? null,
    last_used_at: record.lastUsedAt?.toISOString() ?? null,
  }
}
