import { type ShareRoutesDeps, shareRoutes } from '#files/shares/routes.ts'
import type { Collections } from './collections.ts'

/** The shares of collections. */
export function collectionShareRoutes(deps: ShareRoutesDeps & { collections: Collections }) {
  return shareRoutes(deps, {
    of: 'collections',
    async find(caller, nameOrId) {
      const { id, ownerId, role } = await deps.collections.find(caller, nameOrId)
      return { type: 'collection', id, ownerId, role }
    },
  })
}
