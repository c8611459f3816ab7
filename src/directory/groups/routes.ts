import { Elysia } from 'elysia'
import { actorOf } from '#audit/actor.ts'
import type { Auth } from '#auth/auth.ts'
import { guard } from '#auth/guard.ts'
import { groupsPermission } from '#auth/permissions.ts'
import type { Config } from '#config/schema.ts'
import { readJsonBody } from '#http/body.ts'
import { withCurrentTag } from '#http/precondition.ts'
import { entityTag, readIfMatch } from '#lib/entity-tag.ts'
import { type Group, type Groups, orAbsent, tagOf } from './groups.ts'
import { groupOperations } from './operations.ts'
import {
  isGroupId,
  parseChangeGroup,
  parseCreateGroup,
  parseGroupPage,
  renderGroup,
} from './schema.ts'

export type GroupRoutesDeps = {
  auth: Pick<Auth, 'authenticate'>
  groups: Groups
  config: Pick<Config, 'limits'>
}

const requires = groupsPermission

/** Groups and what their members may do. */
export function groupRoutes({ auth, groups, config }: GroupRoutesDeps) {
  const currentTag = (id: string) => async () => tagOf(await groups.find(id))
  return new Elysia({ name: 'groups', prefix: '/v1/groups' })
    .use(guard(auth))
    .post(
      '/',
      async ({ principal, request, set }) => {
        const { name, fields } = parseCreateGroup(await readJsonBody(request, config.limits))
        return show(await groups.create(actorOf(principal, set), name, fields), set)
      },
      { requires, parse: 'none', detail: groupOperations.create },
    )
    .get(
      '/',
      async ({ query }) => {
        const page = await groups.list(parseGroupPage(query))
        return {
          object: 'list',
          data: page.groups.map(renderGroup),
          has_more: page.hasMore,
          first_id: page.groups[0]?.name ?? null,
          last_id: page.groups.at(-1)?.name ?? null,
        }
      },
      { requires, detail: groupOperations.list },
    )
    .get('/:id', async ({ params: { id }, set }) => show(await groups.find(idOf(id)), set), {
      requires,
      detail: groupOperations.find,
    })
    .patch(
      '/:id',
      async ({ principal, params: { id }, request, set }) => {
        const fields = parseChangeGroup(await readJsonBody(request, config.limits))
        const isExpected = readIfMatch(request.headers.get('if-match'))
        const actor = actorOf(principal, set)
        const change = () => groups.change(actor, idOf(id), { isExpected, fields })
        return show(await withCurrentTag(set, currentTag(id), change), set)
      },
      { requires, parse: 'none', detail: groupOperations.change },
    )
    .delete(
      '/:id',
      async ({ principal, params: { id }, request, set }) => {
        const isExpected = readIfMatch(request.headers.get('if-match'))
        const actor = actorOf(principal, set)
        await withCurrentTag(set, currentTag(id), () => groups.remove(actor, idOf(id), isExpected))
        return { id, object: 'group.deleted', deleted: true }
      },
      { requires, detail: groupOperations.remove },
    )
}

function show(group: Group, set: { headers: Record<string, string | number> }) {
  set.headers['etag'] = entityTag(tagOf(group))
  return renderGroup(group)
}

/** What the database could not even look for is not there. */
export function idOf(id: string): string {
  return orAbsent(isGroupId(id) ? id : undefined, id)
}
