import type { Endpoint } from '#api/endpoint.ts'
import { describeEndpoint } from '#docs/describe-endpoint.ts'

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
