import { Elysia } from 'elysia'
import type { Auth } from '#auth/auth.ts'
import { guard } from '#auth/guard.ts'
import { groupsPermission } from '#auth/permissions.ts'
import type { Audit } from './audit.ts'
import { auditOperations } from './operations.ts'
import { parseAuditQuery, renderEntry } from './schema.ts'

export type AuditRoutesDeps = { auth: Pick<Auth, 'authenticate'>; audit: Pick<Audit, 'list'> }

/** Reading the record of what administrators did. */
export function auditRoutes({ auth, audit }: AuditRoutesDeps) {
  return new Elysia({ name: 'audit', prefix: '/v1/audit-log' }).use(guard(auth)).get(
    '/',
    async ({ query }) => {
      const { filter, page } = parseAuditQuery(query)
      const { entries, hasMore } = await audit.list(filter, page)
      return {
        object: 'list',
        data: entries.map(renderEntry),
        has_more: hasMore,
        first_id: entries[0]?.id ?? null,
        last_id: entries.at(-1)?.id ?? null,
      }
    },
    { requires: groupsPermission, detail: auditOperations.list },
  )
}
