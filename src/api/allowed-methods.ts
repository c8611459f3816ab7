import type { Endpoint } from './endpoint.ts'

/** The methods that a path without query is served for; empty for an unknown path. */
export type AllowedMethods = (path: string) => readonly string[]

/** Only failed requests ask, so every pattern is tried instead of a second router being kept. */
export function allowedMethods(endpoints: readonly Endpoint[]): AllowedMethods {
  const routes = [...Map.groupBy(endpoints, ({ path }) => path)].map(([path, served]) => ({
    isLiteral: isLiteral(path),
    pattern: patternOf(path),
    methods: served.map(({ method }) => method),
  }))
  return (path) => {
    const matching = routes.filter(({ pattern }) => pattern.test(path))
    const literal = matching.filter((route) => route.isLiteral)
    const routed = literal.length > 0 ? literal : matching
    const methods = new Set<string>(routed.flatMap((route) => route.methods))
    // A HEAD request is answered by the endpoint of GET.
    if (methods.has('GET')) methods.add('HEAD')
    return [...methods].sort()
  }
}

/**
 * The methods of paths with parameters that the router would serve for a literal path without them:
 * `DELETE /v1/files/search` is not the deletion of the file `search`.
 */
export function shadowingRoutes(
  endpoints: readonly Endpoint[],
): readonly Pick<Endpoint, 'method' | 'path'>[] {
  const literalPaths = [...new Set(endpoints.map(({ path }) => path))].filter(isLiteral)
  const served = new Set(endpoints.map(({ method, path }) => `${method} ${path}`))
  return endpoints.flatMap(({ method, path: general }) => {
    const pattern = patternOf(general)
    return literalPaths
      .filter((path) => pattern.test(path) && !served.has(`${method} ${path}`))
      .map((path) => ({ method, path }))
  })
}

/** Whether a path has no parameters. */
function isLiteral(path: string): boolean {
  return !/[:*]/.test(path)
}

/** Matches as the router does: with or without a slash at the end. */
function patternOf(path: string): RegExp {
  const source = path
    .replace(/[.+?^${}()|[\]\\]/g, '\\$&')
    .replace(/:\w+/g, '[^/]+')
    .replace('*', '.+')
  return new RegExp(`^${source}/?$`)
}
