import { Elysia } from 'elysia'
import type { Endpoint } from '#api/endpoint.ts'
import { type MountDeps, mountEndpoints } from '#api/mount.ts'
import { describeEndpoint } from '#docs/describe-endpoint.ts'
import { requestLifecycle } from '#http/request-lifecycle.ts'
import { newId } from '#lib/id.ts'
import { createAccessLog } from '#telemetry/access-log.ts'
import type { Log } from '#telemetry/log.ts'
import { quietLog } from './quiet-log.ts'

/** An application that serves these endpoints alone, with the request lifecycle of the gateway. */
export function createTestApp(
  endpoints: readonly Endpoint[],
  { log = quietLog, ...deps }: MountDeps & { log?: Log },
) {
  return new Elysia({ handler: { standardHostname: false } })
    .use(
      requestLifecycle({
        observer: createAccessLog({ log, mode: () => 'all' }),
        newRequestId: () => newId('req_'),
        draining: () => false,
      }),
    )
    .use(mountEndpoints(endpoints, deps))
}

/** Of an application whose endpoints are all public. */
export const publicOnly: MountDeps = {
  auth: { authenticate: () => Promise.reject(new Error('not public')) },
  config: {
    limits: { requestBytesMax: 1_000, jsonDepthMax: 10 },
    files: { uploadGapMs: 10_000, uploadMs: 10_000 },
    stream: { heartbeatMs: 10_000, readerStallMs: 10_000 },
  },
}

/**
 * The OpenAPI operations of a feature, by method and path: `POST /v1/agents`. Nothing behind the
 * endpoints is created, so their handlers cannot be called.
 */
export function operationsOf(declare: (deps: never) => readonly Endpoint[]) {
  const endpoints = new Map(
    declare(anything as never).map((endpoint) => [
      `${endpoint.method} ${endpoint.path}`,
      describeEndpoint(endpoint),
    ]),
  )
  return {
    all: [...endpoints],
    at(place: string) {
      const operation = endpoints.get(place)
      if (operation === undefined) throw new Error(`there is no endpoint ${place}`)
      return operation
    },
  }
}

/** Has every property, and can be called. */
const anything: object = new Proxy(() => anything, {
  get: (_, name) => (name === Symbol.toPrimitive ? () => 1 : anything),
})
