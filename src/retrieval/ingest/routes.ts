import { Elysia } from 'elysia'
import type { Auth } from '#auth/auth.ts'
import { guard } from '#auth/guard.ts'
import { nodeId, tagged } from '#files/node-routes.ts'
import { demandRole } from '#files/tree/place.ts'
import type { Files } from '#files/tree.ts'
import type { Ingest } from './ingest.ts'

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
      demandRole(role, 'editor', 'file')
      await ingest.reprocess(id)
      set.status = 202
      return tagged(await files.find(principal, id), set)
    },
    {
      requires: 'can_access_api',
      detail: { tags: ['Files'], summary: 'Read a file again, for every collection that it is in' },
    },
  )
}
