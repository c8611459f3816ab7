import type { Exchange } from '#lib/exchange.ts'

/** How late the end of a body is noticed at most, while the event loop is not busy. */
const checkEveryMs = 100

type OpenBody = { readonly request: Request; readonly server: Server; readonly exchange: Exchange }
type Server = Pick<Bun.Server<unknown>, 'requestIP'>

/** Bodies that are being sent, one for each open request at most. */
const open = new Set<OpenBody>()
let timer: ReturnType<typeof setInterval> | undefined

/**
 * Ends the exchange when the body of its response was sent, or the client has disconnected. For bodies
 * that Bun reads by itself: reading them here would cost their `content-length`. Bun tells nobody of the
 * end, but has no address of a request that is over.
 */
export function endWhenSent(request: Request, server: Server, exchange: Exchange): void {
  const body = { request, server, exchange }
  exchange.isOpen = true
  request.signal.addEventListener('abort', () => end(body), { once: true })
  open.add(body)
  timer ??= setInterval(check, checkEveryMs)
}

function check(): void {
  for (const body of open) if (body.server.requestIP(body.request) === null) end(body)
}

function end(body: OpenBody): void {
  const { request, exchange } = body
  if (!open.delete(body)) return
  if (request.signal.aborted) {
    // How much was sent is not known.
    exchange.bytesOut = null
    exchange.abandon()
  } else {
    exchange.end()
  }
  if (open.size > 0) return
  clearInterval(timer)
  timer = undefined
}
