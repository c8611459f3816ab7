import type { Elysia } from 'elysia'

/** The server that listens; null before it does. */
export type ServerSource = () => Elysia['server']

/**
 * A handler that takes `server` from the framework makes it define that property anew, with a getter, in
 * the context of each request.
 */
export function trackServer(app: Elysia): ServerSource {
  let server: Elysia['server'] = null
  app.onStart((started) => {
    server = started.server
  })
  return () => server
}
