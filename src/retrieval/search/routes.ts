import { Elysia } from 'elysia'
import type { Auth } from '#auth/auth.ts'
import { guard } from '#auth/guard.ts'
import { basePermission } from '#auth/permissions.ts'
import type { Config } from '#config/schema.ts'
import { readJsonBody } from '#http/body.ts'
import { searchOperations } from './operations.ts'
import { renderSearch } from './render.ts'
import { readSearch } from './schema.ts'
import type { Search } from './search.ts'

export type SearchRoutesDeps = {
  auth: Auth
  search: Search
  config: Pick<Config, 'limits'>
}

/** Finding passages in a collection. */
export function searchRoutes({ auth, search, config }: SearchRoutesDeps) {
  return new Elysia({ name: 'collection-search', prefix: '/v1/collections' }).use(guard(auth)).post(
    '/:id/search',
    async ({ principal, params: { id }, request }) => {
      const asked = readSearch(await readJsonBody(request, config.limits), id)
      return renderSearch(await search(principal, asked, request.signal), asked.queries)
    },
    {
      requires: basePermission,
      parse: 'none',
      detail: searchOperations.search,
    },
  )
}
