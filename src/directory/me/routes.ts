import { Elysia } from 'elysia'
import type { Auth } from '#auth/auth.ts'
import { guard } from '#auth/guard.ts'
import { basePermission } from '#auth/permissions.ts'
import { meOperations } from './operations.ts'
import { renderCaller } from './schema.ts'

/** Who is calling, without asking the database. */
export function meRoutes({ auth }: { auth: Pick<Auth, 'authenticate'> }) {
  return new Elysia({ name: 'me', prefix: '/v1/me' })
    .use(guard(auth))
    .get('/', ({ principal }) => renderCaller(principal), {
      requires: basePermission,
      detail: meOperations.find,
    })
}
