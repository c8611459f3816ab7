import { Elysia } from 'elysia'
import { actorOf } from '#audit/actor.ts'
import type { Auth } from '#auth/auth.ts'
import { guard } from '#auth/guard.ts'
import { groupsPermission } from '#auth/permissions.ts'
import { parsePage } from '#auth/schema.ts'
import { idOf } from '#directory/groups/routes.ts'
import { userIdIn } from '#directory/users/routes.ts'
import type { Members } from './members.ts'
import { memberOperations } from './operations.ts'
import { renderMember } from './schema.ts'

export type MemberRoutesDeps = { auth: Pick<Auth, 'authenticate'>; members: Members }

const requires = groupsPermission

/** Who is in a group. */
export function memberRoutes({ auth, members }: MemberRoutesDeps) {
  return new Elysia({ name: 'group-members', prefix: '/v1/groups' })
    .use(guard(auth))
    .get(
      '/:id/members',
      async ({ params: { id }, query }) => {
        const page = await members.list(idOf(id), parsePage(query))
        return {
          object: 'list',
          data: page.members.map(renderMember),
          has_more: page.hasMore,
          first_id: page.members[0]?.id ?? null,
          last_id: page.members.at(-1)?.id ?? null,
        }
      },
      { requires, detail: memberOperations.list },
    )
    .put(
      '/:id/members/:user_id',
      async ({ principal, params, set }) => {
        const actor = actorOf(principal, set)
        return renderMember(await members.add(actor, idOf(params.id), userIdIn(params.user_id)))
      },
      { requires, parse: 'none', detail: memberOperations.add },
    )
    .delete(
      '/:id/members/:user_id',
      async ({ principal, params, set }) => {
        const userId = userIdIn(params.user_id)
        await members.remove(actorOf(principal, set), idOf(params.id), userId)
        return { id: userId, object: 'group.member.deleted', deleted: true }
      },
      { requires, parse: 'none', detail: memberOperations.remove },
    )
}
