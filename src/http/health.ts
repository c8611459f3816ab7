import { Elysia } from 'elysia'
import { livenessOperation, readinessOperation } from './health-operations.ts'

/**
 * Probes, open to everyone. `/livez`: the process runs. `/readyz`: it takes work, 503 as soon as
 * it is told to stop; the database is opened before the server listens, and losing it later stops
 * neither tokens nor cached keys, so it does not count here.
 */
export function healthRoutes(deps: { draining: () => boolean }) {
  return new Elysia({ name: 'health' })
    .get('/livez', () => ({ status: 'ok' }), { detail: livenessOperation })
    .get(
      '/readyz',
      () =>
        deps.draining()
          ? Response.json({ status: 'draining' }, { status: 503 })
          : Response.json({ status: 'ok' }),
      { detail: readinessOperation },
    )
}
