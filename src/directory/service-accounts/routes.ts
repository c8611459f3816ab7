import { Elysia } from 'elysia'
import { actorOf } from '#audit/actor.ts'
import type { Auth } from '#auth/auth.ts'
import { demandToken, guard } from '#auth/guard.ts'
import { groupsPermission } from '#auth/permissions.ts'
import { renderKey, renderNewKey } from '#auth/render.ts'
import { parseCreateKey, parsePage } from '#auth/schema.ts'
import type { Config } from '#config/schema.ts'
import { renderUserDetails } from '#directory/users/schema.ts'
import { readJsonBody } from '#http/body.ts'
import { AppError } from '#lib/errors.ts'
import { isUuid } from '#lib/uuid.ts'
import { serviceAccountOperations } from './operations.ts'
import { parseCreateServiceAccount } from './schema.ts'
import { absent, type ServiceAccounts } from './service-accounts.ts'

export type ServiceAccountRoutesDeps = {
  auth: Pick<Auth, 'authenticate'>
  serviceAccounts: ServiceAccounts
  config: Pick<Config, 'limits'>
  now: () => Date
}

const requires = groupsPermission

/** Making and ending users that are programs. */
export function serviceAccountRoutes(deps: ServiceAccountRoutesDeps) {
  const { auth, serviceAccounts, config } = deps
  return new Elysia({ name: 'service-accounts', prefix: '/v1/service-accounts' })
    .use(guard(auth))
    .post(
      '/',
      async ({ principal, request, set }) => {
        const wish = parseCreateServiceAccount(await readJsonBody(request, config.limits))
        return renderUserDetails(await serviceAccounts.create(actorOf(principal, set), wish))
      },
      { requires, parse: 'none', detail: serviceAccountOperations.create },
    )
    .delete(
      '/:id',
      async ({ principal, params, set }) => {
        const id = idOf(params.id)
        await serviceAccounts.remove(actorOf(principal, set), id)
        return { id, object: 'service_account.deleted', deleted: true }
      },
      { requires, detail: serviceAccountOperations.remove },
    )
    .use(keyRoutes(deps))
}

function keyRoutes({ auth, serviceAccounts, config, now }: ServiceAccountRoutesDeps) {
  return new Elysia({ name: 'service-account-keys', prefix: '/:id/api-keys' })
    .use(guard(auth))
    .post(
      '/',
      async ({ principal, params, request, set }) => {
        demandToken(principal)
        const wish = parseCreateKey(await readJsonBody(request, config.limits), now())
        const actor = actorOf(principal, set)
        const key = await serviceAccounts.createKey(actor, idOf(params.id), wish)
        set.headers['cache-control'] = 'no-store'
        return renderNewKey(key)
      },
      { requires, parse: 'none', detail: serviceAccountOperations.createKey },
    )
    .get(
      '/',
      async ({ params, query }) => {
        const page = await serviceAccounts.listKeys(idOf(params.id), parsePage(query))
        return {
          object: 'list',
          data: page.records.map(renderKey),
          has_more: page.hasMore,
          first_id: page.records[0]?.id ?? null,
          last_id: page.records.at(-1)?.id ?? null,
        }
      },
      { requires, detail: serviceAccountOperations.listKeys },
    )
    .delete(
      '/:key_id',
      async ({ principal, params, set }) => {
        const { id, key_id: keyId } = params
        const actor = actorOf(principal, set)
        const isRevoked = isUuid(keyId) && (await serviceAccounts.revokeKey(actor, idOf(id), keyId))
        if (!isRevoked) throw absentKey(keyId)
        return { id: keyId, object: 'api_key.deleted', deleted: true }
      },
      { requires, detail: serviceAccountOperations.revokeKey },
    )
}

function idOf(id: string): string {
  if (isUuid(id)) return id.toLowerCase()
  throw absent(id)
}

function absentKey(id: string): AppError {
  const sentence = `This service account has no API key with the id "${id}".`
  return new AppError('not_found', sentence, { param: 'key_id' })
}
