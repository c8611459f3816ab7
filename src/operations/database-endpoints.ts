import { type Static, Type } from '@sinclair/typebox'
import { type Endpoint, endpoint, json } from '#api/endpoint.ts'
import { nullable } from '#api/shapes.ts'
import { queryCounts } from '#db/query-runner.ts'
import type { DatabaseHealth } from './database-report.ts'

const databaseRecord = Type.Object(
  {
    object: Type.Literal('database'),
    kind: Type.Union([Type.Literal('pglite'), Type.Literal('postgres')], {
      description: '`pglite`: the embedded database of the data folder.',
    }),
    state: Type.Union([Type.Literal('available'), Type.Literal('unavailable')], {
      description: '`unavailable`: it did not respond within a second.',
    }),
    ping_ms: nullable(
      Type.Number({ minimum: 0 }),
      'The round trip of a query, with the wait for a connection.',
    ),
    pending: Type.Integer({ description: 'Queries that requests wait for.', minimum: 0 }),
  },
  { $id: 'DatabaseHealth' },
)

const example = {
  object: 'database',
  kind: 'postgres',
  state: 'available',
  ping_ms: 0.8,
  pending: 0,
} as const satisfies Static<typeof databaseRecord>

/** The database as the worker that responds sees it. */
export function databaseEndpoints({
  databaseHealth: { kind, pingMs },
}: {
  databaseHealth: DatabaseHealth
}): Endpoint[] {
  return [
    endpoint({
      method: 'GET',
      path: '/v1/database',
      permission: 'can_manage_models',
      tag: 'Operations',
      summary: 'Check the database',
      description:
        'Sends a query from the worker that responds. It answers with 200 while the database is away too, if the credential needs no database: a token, or a key that was used before.',
      responses: {
        200: { description: 'The state of the database.', content: json(databaseRecord, example) },
      },
      async handle(): Promise<Static<typeof databaseRecord>> {
        const ms = await pingMs()
        return {
          object: 'database',
          kind,
          state: ms === null ? 'unavailable' : 'available',
          ping_ms: ms === null ? null : Math.round(ms * 10) / 10,
          pending: queryCounts().pending,
        }
      },
    }),
  ]
}
