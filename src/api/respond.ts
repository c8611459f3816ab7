import { isMessagesPath, jsonType } from '#http/error-envelope.ts'
import { renderServerTiming, wantsServerTiming } from '#http/server-timing.ts'
import type { Exchange } from '#lib/exchange.ts'
import type { ResponseSettings } from './endpoint.ts'

type Handled = {
  readonly exchange: Exchange
  readonly request: Request
  readonly set: ResponseSettings
}

/**
 * Makes responses of the results of one endpoint's handler, and ends the exchange unless a stream or a
 * socket does so later. The framework gets a response that it need not change: it would build all headers
 * of each one again, and copy a stream.
 */
export function createRespond(path: string, securityHeaders: Readonly<Record<string, string>>) {
  const commonHeaders = new Headers(securityHeaders)
  const jsonHeaders = new Headers({ ...securityHeaders, 'content-type': jsonType })
  const idHeaders = isMessagesPath(path) ? ['x-request-id', 'request-id'] : ['x-request-id']

  function passOn(given: Response, { exchange, set }: Handled): Response {
    const response = withStatus(given, set)
    const { headers, status } = response
    exchange.status = status
    const length = headers.get('content-length')
    if (length !== null) exchange.bytesOut = Number(length)
    else if (status === 304) exchange.bytesOut = 0
    if (!exchange.isOpen) exchange.end()
    const add = (name: string, value: string | number | undefined) => {
      if (value !== undefined && !headers.has(name)) headers.set(name, String(value))
    }
    for (const name in set.headers) add(name, set.headers[name])
    for (const name in securityHeaders) add(name, securityHeaders[name])
    for (const name of idHeaders) add(name, exchange.requestId)
    return response
  }

  function render(result: unknown, { exchange, set }: Handled): Response {
    const body = result === undefined ? null : JSON.stringify(result)
    const status = Number(set.status ?? 200)
    exchange.status = status
    exchange.bytesOut = body === null ? 0 : Buffer.byteLength(body)
    exchange.end()
    const headers = new Headers(body === null ? commonHeaders : jsonHeaders)
    for (const name in set.headers) {
      const value = set.headers[name]
      if (value !== undefined) headers.set(name, String(value))
    }
    for (const name of idHeaders) headers.set(name, exchange.requestId)
    return new Response(body, { status, headers })
  }

  return (result: unknown, handled: Handled): unknown => {
    const { exchange, request, set } = handled
    const isResponse = result instanceof Response
    if (exchange.isOpen && !isResponse) return result
    const response = isResponse ? passOn(result, handled) : render(result, handled)
    if (wantsServerTiming(request.headers) && !response.headers.has('server-timing')) {
      response.headers.set('server-timing', renderServerTiming(exchange))
    }
    // What is left here, the framework would add to a copy of the response.
    set.headers = {}
    set.status = 200
    return response
  }
}

function withStatus(response: Response, { status }: ResponseSettings): Response {
  if (response.status !== 200 || status === undefined || status === 200) return response
  return new Response(response.body, { status: Number(status), headers: response.headers })
}
