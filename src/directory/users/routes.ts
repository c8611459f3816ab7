import { Elysia } from 'elysia'
import { actorOf } from '#audit/actor.ts'
import type { Auth } from '#auth/auth.ts'
import { guard } from '#auth/guard.ts'
import { groupsPermission } from '#auth/permissions.ts'
import type { Config } from '#config/schema.ts'
import { readJsonBody } from '#http/body.ts'
import { isUuid } from '#lib/uuid.ts'
import { userOperations } from './operations.ts'
import { parseChangeUser, parseUserQuery, renderUser, renderUserDetails } from './schema.ts'
import { absentUser, type Users } from './users.ts'

export type UserRoutesDeps = {
  auth: Pick<Auth, 'authenticate'>
  users: Users
  config: Pick<Config, 'limits'>
}

const requires = groupsPermission

/** Who was here, and whether they may come again. */
export function userRoutes({ auth, users, config }: UserRoutesDeps) {
  return new Elysia({ name: 'users', prefix: '/v1/users' })
    .use(guard(auth))
    .get(
      '/',
      async ({ query }) => {
        const { filter, page } = parseUserQuery(query)
        const { users: found, hasMore } = await users.list(filter, page)
        return {
          object: 'list',
          data: found.map(renderUser),
          has_more: hasMore,
          first_id: found[0]?.id ?? null,
          last_id: found.at(-1)?.id ?? null,
        }
      },
      { requires, detail: userOperations.list },
    )
    .get('/:id', async ({ params: { id } }) => renderUserDetails(await users.find(userIdIn(id))), {
      requires,
      detail: userOperations.find,
    })
    .patch(
      '/:id',
      async ({ principal, params: { id }, request, set }) => {
        const wish = parseChangeUser(await readJsonBody(request, config.limits))
        const changed = await users.change(actorOf(principal, set), userIdIn(id), wish)
        return renderUserDetails(changed)
      },
      { requires, parse: 'none', detail: userOperations.change },
    )
}

/** The id of a user in a path; throws `not_found` for what is none. */
export function userIdIn(id: string): string {
  if (isUuid(id)) return id.toLowerCase()
  throw absentUser(id)
}
