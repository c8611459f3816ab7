import { Elysia } from 'elysia'
import { actorOf } from '#audit/actor.ts'
import type { Config } from '#config/schema.ts'
import { readJsonBody } from '#http/body.ts'
import { AppError } from '#lib/errors.ts'
import { isUuid } from '#lib/uuid.ts'
import type { Auth } from './auth.ts'
import { demandToken, guard } from './guard.ts'
import { apiKeyOperations } from './operations.ts'
import { basePermission } from './permissions.ts'
import { renderKey, renderNewKey } from './render.ts'
import { parseCreateKey, parsePage } from './schema.ts'

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
        demandToken(principal)
        const wish = parseCreateKey(await readJsonBody(request, config.limits), now())
        const { userId, subject } = principal
        const owner = { userId, subject, kind: 'user' } as const
        const key = await auth.keyRing.create(actorOf(principal, set), owner, wish)
        set.headers['cache-control'] = 'no-store'
        return renderNewKey(key)
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
      async ({ principal, params: { id }, set }) => {
        const actor = actorOf(principal, set)
        const isRevoked = isUuid(id) && (await auth.keyRing.revoke(actor, principal.userId, id))
        if (!isRevoked) throw new AppError('not_found', 'You have no API key with this id.')
        return { id, object: 'api_key.deleted', deleted: true }
      },
      { requires: basePermission, detail: apiKeyOperations.revoke },
    )
}
