import { Elysia } from 'elysia'
import type { Auth } from '#auth/auth.ts'
import { guard } from '#auth/guard.ts'
import { basePermission } from '#auth/permissions.ts'
import { nodeId, tagged } from '#files/node-routes.ts'
import { requireRole } from '#files/tree/checks.ts'
import type { Files } from '#files/tree.ts'
import type { Ingest } from './ingest.ts'
import { ingestOperations } from './operations.ts'

export type IngestRoutesDeps = {
  auth: Auth
  files: Pick<Files, 'find'>
  ingest: Pick<Ingest, 'reprocess'>
}

export function ingestRoutes({ auth, files, ingest }: IngestRoutesDeps) {
  return new Elysia({ name: 'ingest', prefix: '/v1/files' }).use(guard(auth)).post(
    '/:id/reprocess',
    async ({ principal, params, set }) => {
      const id = nodeId('file', params)
      const { role } = await files.find(principal, id)
      requireRole(role, 'editor', 'file')
      await ingest.reprocess(id)
      set.status = 202
      return tagged(await files.find(principal, id), set)
    },
    { requires: basePermission, detail: ingestOperations.reprocess },
  )
}
