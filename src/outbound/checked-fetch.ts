import { followSignal } from '#lib/deadline.ts'
import { AppError } from '#lib/errors.ts'
import { addressOfHost } from './addresses.ts'
import { checkUrl, portOf, type UrlPolicy } from './check-url.ts'
import { invalidAnswer, limitBody } from './limit-body.ts'
import type { Resolve } from './resolve.ts'

export type OutboundPolicy = UrlPolicy & {
  /** For the whole exchange, the body included. */
  readonly timeoutMs: number
  readonly bodyBytesMax: number
}

/** Of the global `fetch`, as far as it is used here; only `deps.ts` names that one. */
export type Fetch = (url: string, init: BunFetchRequestInit) => Promise<Response>

/** In the shape of `fetch`, for libraries that take one. */
export type CheckedFetch = (url: string | URL, init?: RequestInit) => Promise<Response>

/** A host has rarely more addresses that are worth a try. */
const addressesTriedMax = 3
/** Nobody has received anything when a request fails like this. */
const unconnected = new Set(['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH'])

/**
 * A `fetch` for URLs that somebody else chose. It resolves the host once, refuses what `policy`
 * does not allow, and connects to the very address that it looked at, under the original name
 * (Host, SNI, certificate), so that a name cannot mean something else the second time. A redirect
 * is a failure. The body is taken as it comes, never unpacked.
 *
 * Throws an `AppError`: `invalid_request` for a URL that is refused, `upstream_unreachable`,
 * `upstream_total_timeout`, `upstream_invalid_answer`; the signal's own reason where it aborts.
 * Reading the body throws the same.
 */
export function createCheckedFetch(
  policy: OutboundPolicy,
  world: { fetch: Fetch; resolve: Resolve },
): CheckedFetch {
  return async (target, init = {}) => {
    const url = new URL(target)
    const { controller, release } = followSignal(init.signal ?? new AbortController().signal)
    const timer = setTimeout(
      () => controller.abort(tookTooLong(policy.timeoutMs)),
      policy.timeoutMs,
    )
    const end = () => {
      clearTimeout(timer)
      release()
    }
    const { signal } = controller
    try {
      const addresses = await checkUrl(url, policy, { what: 'The URL', resolve: world.resolve })
      signal.throwIfAborted()
      const response = await askAddresses(world, { url, addresses, init: { ...init, signal } })
      if (response.status >= 300 && response.status < 400) {
        throw invalidAnswer('answered with a redirect, which is not followed')
      }
      return limitBody(response, { bytesMax: policy.bodyBytesMax, signal, end })
    } catch (error) {
      const failure = signal.aborted ? signal.reason : error
      end()
      controller.abort()
      throw failure
    }
  }
}

type Ask = { url: URL; addresses: readonly string[]; init: RequestInit }

/**
 * Asks the first address that takes a connection, as `createCheckedFetch` says; the addresses are
 * what `checkUrl` answered for this very URL. A redirect is not followed.
 */
export async function askAddresses(
  world: { fetch: Fetch },
  { url, addresses, init }: Ask,
): Promise<Response> {
  let refused: unknown
  for (const address of addresses.slice(0, addressesTriedMax)) {
    try {
      return await world.fetch(urlAt(url, address), requestTo(url, init))
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? error.code : undefined
      refused = error
      if (typeof code !== 'string' || !unconnected.has(code)) break
    }
  }
  throw new AppError('upstream_unreachable', 'The server cannot be reached.', { cause: refused })
}

function urlAt(url: URL, address: string): string {
  const host = address.includes(':') ? `[${address}]` : address
  return `${url.protocol}//${host}:${portOf(url)}${url.pathname}${url.search}`
}

function requestTo(url: URL, init: RequestInit): BunFetchRequestInit {
  const headers = new Headers(init.headers)
  headers.set('host', url.host)
  headers.set('accept-encoding', 'identity')
  const isNamed = url.protocol === 'https:' && addressOfHost(url.hostname) === null
  return {
    ...init,
    headers,
    redirect: 'manual',
    // A small packed body can be a huge one.
    decompress: false,
    // A kept connection is known by its address, and was checked for another name.
    keepalive: false,
    ...(isNamed ? { tls: { serverName: url.hostname } } : {}),
  }
}

function tookTooLong(timeoutMs: number): AppError {
  return new AppError(
    'upstream_total_timeout',
    `The server took longer than ${timeoutMs / 1000} s.`,
  )
}
