import { Elysia } from 'elysia'
import type { Auth } from '#auth/auth.ts'
import { guard } from '#auth/guard.ts'
import { basePermission } from '#auth/permissions.ts'
import type { Config } from '#config/schema.ts'
import { mergeAttributes } from '#files/attributes.ts'
import { shareRoutes } from '#files/shares/routes.ts'
import type { Shares } from '#files/shares/shares.ts'
import { readJsonBody } from '#http/body.ts'
import type { Collections } from './collections.ts'
import { membershipOperations } from './membership-operations.ts'
import { collectionOperations, memberOperations } from './operations.ts'
import { renderCollection, renderMember, renderMembership, renderPage } from './render.ts'
import {
  isForced,
  readAttributesChange,
  readCollectionChange,
  readNewCollection,
  readNewMember,
  readPage,
} from './schema.ts'

export type CollectionRoutesDeps = {
  auth: Auth
  collections: Collections
  shares: Shares
  config: Pick<Config, 'limits'>
}

/** Making, changing and ending collections, by name or id. One that the caller does not see is not found. */
export function collectionRoutes(deps: CollectionRoutesDeps) {
  const { auth, collections, config } = deps
  return new Elysia({ name: 'collections', prefix: '/v1/collections' })
    .use(guard(auth))
    .post(
      '/',
      async ({ principal, request, set }) => {
        const wish = readNewCollection(await readJsonBody(request, config.limits))
        const created = await collections.create(principal, wish)
        set.status = 201
        return renderCollection(created)
      },
      { requires: basePermission, parse: 'none', detail: collectionOperations.create },
    )
    .get(
      '/',
      async ({ principal, query }) => {
        const page = await collections.list(principal, readPage(query))
        return renderPage(page, renderCollection, ({ id }) => id)
      },
      { requires: basePermission, detail: collectionOperations.list },
    )
    .get(
      '/:id',
      async ({ principal, params: { id } }) =>
        renderCollection(await collections.find(principal, id)),
      { requires: basePermission, detail: collectionOperations.find },
    )
    .patch(
      '/:id',
      async ({ principal, params: { id }, request, query }) => {
        const change = readCollectionChange(await readJsonBody(request, config.limits))
        const how = { isForced: isForced(query) }
        return renderCollection(await collections.update(principal, id, change, how))
      },
      { requires: basePermission, parse: 'none', detail: collectionOperations.change },
    )
    .delete(
      '/:id',
      async ({ principal, params: { id }, query }) => {
        const removed = await collections.remove(principal, id, { isForced: isForced(query) })
        return {
          id: removed.id,
          name: removed.name,
          object: 'collection.deleted',
          deleted: true,
        }
      },
      { requires: basePermission, detail: collectionOperations.remove },
    )
    .use(memberRoutes(deps))
}

/** The collections that a file is in, for those who may share the file. */
export function fileMembershipRoutes({
  auth,
  collections: { fileMemberships },
}: CollectionRoutesDeps) {
  return new Elysia({ name: 'file-collections', prefix: '/v1/files/:id/collections' })
    .use(guard(auth))
    .get(
      '/',
      async ({ principal, params: { id } }) => {
        const page = await fileMemberships.list(principal, id)
        return renderPage(page, renderMembership, ({ collectionId }) => collectionId)
      },
      { requires: basePermission, detail: membershipOperations.list },
    )
    .delete(
      '/:collection_id',
      async ({ principal, params: { id, collection_id } }) => {
        await fileMemberships.remove(principal, id, collection_id)
        return { id: collection_id, object: 'file.collection.deleted', deleted: true }
      },
      { requires: basePermission, detail: membershipOperations.remove },
    )
}

/** Whom collections are shared with. */
export function collectionShareRoutes(deps: CollectionRoutesDeps) {
  return shareRoutes(deps, {
    of: 'collections',
    async find(caller, named) {
      const { id, ownerId, role } = await deps.collections.find(caller, named)
      return { type: 'collection', id, ownerId, role }
    },
  })
}

function memberRoutes({ auth, collections: { members }, config }: CollectionRoutesDeps) {
  return new Elysia({ name: 'collection-files', prefix: '/:id/files' })
    .use(guard(auth))
    .post(
      '/',
      async ({ principal, params: { id }, request, set }) => {
        const added = readNewMember(await readJsonBody(request, config.limits))
        const [member] = await members.add(principal, id, [added], null)
        set.status = 202
        return member === undefined ? {} : renderMember(member)
      },
      { requires: basePermission, parse: 'none', detail: memberOperations.add },
    )
    .get(
      '/',
      async ({ principal, params: { id }, query }) => {
        const asked = { page: readPage(query), filter: { states: null, batchId: null } }
        const page = await members.list(principal, id, asked)
        return renderPage(page, renderMember, ({ fileId }) => fileId)
      },
      { requires: basePermission, detail: memberOperations.list },
    )
    .get(
      '/:fileId',
      async ({ principal, params: { id, fileId } }) =>
        renderMember(await members.find(principal, id, fileId)),
      { requires: basePermission, detail: memberOperations.find },
    )
    .patch(
      '/:fileId',
      async ({ principal, params: { id, fileId }, request }) => {
        const change = readAttributesChange(await readJsonBody(request, config.limits))
        const changed = await members.setAttributes(principal, id, fileId, (own) =>
          mergeAttributes(own, change),
        )
        return renderMember(changed)
      },
      { requires: basePermission, parse: 'none', detail: memberOperations.change },
    )
    .delete(
      '/:fileId',
      async ({ principal, params: { id, fileId } }) => {
        await members.remove(principal, id, fileId)
        return { id: fileId, object: 'collection.file.deleted', deleted: true }
      },
      { requires: basePermission, detail: memberOperations.remove },
    )
}
