import { Elysia } from 'elysia'
import type { Auth } from '#auth/auth.ts'
import { guard } from '#auth/guard.ts'
import type { Config } from '#config/schema.ts'
import { nodeNotFound } from '#files/tree/checks.ts'
import { readJsonBody } from '#http/body.ts'
import { AppError } from '#lib/errors.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import { isUuid } from '#lib/uuid.ts'
import type {
  AccessRecord,
  PrincipalList,
  PrincipalRecord,
  ShareDeleted,
  ShareList,
  ShareRecord,
} from './answer-schema.ts'
import { principalsOperation, shareOperations } from './operations.ts'
import { readAccessAsk, readGrant, readPrincipalsAsk, readRoleChange } from './schema.ts'
import type { Access, Grantee, Share, Shared, Shares } from './shares.ts'

export type ShareRoutesDeps = {
  auth: Auth
  shares: Shares
  config: Pick<Config, 'limits'>
}

type Find = (caller: RequestPrincipal, id: string) => Promise<Shared>

/** What is shared, and with whom: of files and of folders. */
export function fileShareRoutes(deps: ShareRoutesDeps) {
  return new Elysia({ name: 'file-shares' })
    .use(shareRoutes(deps, { of: 'files', find: async (_, id) => nodeOf('file', id) }))
    .use(shareRoutes(deps, { of: 'folders', find: async (_, id) => nodeOf('folder', id) }))
}

/**
 * The shares of one kind of thing, under `/v1/<of>/<id>/…`. `find` tells what the caller may do with
 * it, and throws `not_found`.
 */
export function shareRoutes(
  { auth, shares, config }: ShareRoutesDeps,
  { of, find }: { of: 'files' | 'folders' | 'collections'; find: Find },
) {
  const read = (request: Request) => readJsonBody(request, config.limits)
  const operations = shareOperations(of)
  return new Elysia({ name: `shares of ${of}`, prefix: `/v1/${of}` as '/v1/files' })
    .use(guard(auth))
    .get(
      '/:id/shares',
      async ({ principal, params: { id } }) => {
        const found = await shares.list(principal, await find(principal, id))
        return { object: 'list', data: found.map(renderShare) } satisfies ShareList
      },
      { requires: 'can_access_api', detail: operations.list },
    )
    .post(
      '/:id/shares',
      async ({ principal, params: { id }, request, set }) => {
        const shared = await find(principal, id)
        // What is wrong with a body is told to nobody who may not see what it is about.
        await shares.list(principal, shared)
        const grant = readGrant(await read(request))
        const { share, isNew } = await shares.add(principal, shared, grant)
        set.status = isNew ? 201 : 200
        return renderShare(share)
      },
      { requires: 'can_access_api', parse: 'none', detail: operations.add },
    )
    .patch(
      '/:id/shares/:share_id',
      async ({ principal, params: { id, share_id }, request }) => {
        const shared = await find(principal, id)
        await shares.list(principal, shared)
        const role = readRoleChange(await read(request))
        return renderShare(await shares.change(principal, shared, shareIdOf(share_id), role))
      },
      { requires: 'can_access_api', parse: 'none', detail: operations.change },
    )
    .delete(
      '/:id/shares/:share_id',
      async ({ principal, params: { id, share_id } }) => {
        await shares.remove(principal, await find(principal, id), shareIdOf(share_id))
        return { id: share_id, object: 'share', deleted: true } satisfies ShareDeleted
      },
      { requires: 'can_access_api', detail: operations.remove },
    )
    .get(
      '/:id/access',
      async ({ principal, params: { id }, query }) => {
        const shared = await find(principal, id)
        const userId = readAccessAsk(query) ?? principal.userId
        return renderAccess(await shares.access(principal, shared, userId))
      },
      { requires: 'can_access_api', detail: operations.access },
    )
}

/** Whom one can share with. */
export function principalRoutes({
  auth,
  shares,
  config,
}: Omit<ShareRoutesDeps, 'config'> & { config: Pick<Config, 'files'> }) {
  return new Elysia({ name: 'principals', prefix: '/v1/principals' }).use(guard(auth)).get(
    '/',
    async ({ principal: _, query }) => {
      if (!config.files.peoplePicker) {
        const sentence = 'Users and groups cannot be searched for here; name them.'
        throw new AppError('permission_denied', sentence, { code: 'people_picker_off' })
      }
      const found = await shares.principals(readPrincipalsAsk(query))
      return { object: 'list', data: found.map(renderPrincipal) } satisfies PrincipalList
    },
    { requires: 'can_access_api', detail: principalsOperation },
  )
}

function nodeOf(type: 'file' | 'folder', id: string): Shared {
  if (isUuid(id)) return { type, id: id.toLowerCase() }
  throw nodeNotFound(type, id)
}

function shareIdOf(id: string): string {
  if (isUuid(id)) return id.toLowerCase()
  throw new AppError('not_found', `There is no share with the id "${id}".`, { param: 'share_id' })
}

function renderPrincipal({ type, id, name }: Grantee): PrincipalRecord {
  return { type, id, name }
}

function renderShare(share: Share): ShareRecord {
  const { id, principal, role, inheritedFrom, grantedBy, createdAt } = share
  return {
    id,
    object: 'share',
    principal: renderPrincipal(principal),
    role,
    inherited_from: inheritedFrom === null ? null : { type: 'folder', ...inheritedFrom },
    granted_by: grantedBy,
    created_at: createdAt.toISOString(),
  }
}

/** `via` names every reason, the owner's own first. */
function renderAccess({ user, role, isOwner, via, collections }: Access): AccessRecord {
  const shares = via.map((share) => ({ type: 'share' as const, share: renderShare(share) }))
  const opened = collections.map((collection) => ({ type: 'collection' as const, collection }))
  const owner = isOwner ? [{ type: 'owner' as const }] : []
  return { object: 'access', user, role, via: [...owner, ...shares, ...opened] }
}
