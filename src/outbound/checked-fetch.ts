import { followSignal } from '#lib/deadline.ts'
import { AppError } from '#lib/errors.ts'
import { addressOfHost } from './addresses.ts'
import { checkUrl, portOf, type UrlPolicy } from './check-url.ts'
import { invalidResponse, limitBody } from './limit-body.ts'
import type { Resolve } from './resolve.ts'

export type OutboundPolicy = UrlPolicy & {
  /** For the whole request including the body. */
  readonly timeoutMs: number
  readonly bodyBytesMax: number
}

/** The part of the global `fetch` that is used here. */
export type Fetch = (url: string, init: BunFetchRequestInit) => Promise<Response>

/** Has the signature of `fetch`, for libraries that accept one. */
export type CheckedFetch = (url: string | URL, init?: RequestInit) => Promise<Response>

/** Further addresses of a host are not tried. */
const addressesTriedMax = 3
/** Failures before a connection was established. */
const unconnected = new Set(['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH'])

/**
 * A `fetch` for untrusted URLs. It resolves the host once, enforces `policy`, and connects to the
 * checked address under the original name (Host, SNI, certificate), which prevents DNS rebinding.
 * Redirects fail. Bodies are not decompressed.
 *
 * Throws an `AppError`: `invalid_request` for a refused URL, `upstream_unreachable`,
 * `upstream_total_timeout`, `upstream_invalid_answer`; or the signal's reason. Reading the body throws
 * the same.
 */
export function createCheckedFetch(
  policy: OutboundPolicy,
  network: { fetch: Fetch; resolve: Resolve },
): CheckedFetch {
  return async (target, init = {}) => {
    const url = new URL(target)
    const { controller, release } = followSignal(init.signal ?? new AbortController().signal)
    const timer = setTimeout(
      () => controller.abort(totalTimeout(policy.timeoutMs)),
      policy.timeoutMs,
    )
    const end = () => {
      clearTimeout(timer)
      release()
    }
    const { signal } = controller
    try {
      const addresses = await checkUrl(url, policy, { what: 'The URL', resolve: network.resolve })
      signal.throwIfAborted()
      const response = await fetchFromAddresses(network, {
        url,
        addresses,
        init: { ...init, signal },
      })
      if (response.status >= 300 && response.status < 400) {
        throw invalidResponse('responded with a redirect, which is not followed')
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

type AddressedRequest = { url: URL; addresses: readonly string[]; init: RequestInit }

/**
 * Fetches from the first address that accepts a connection; `addresses` are the result of `checkUrl`
 * for this URL. Redirects are not followed.
 */
export async function fetchFromAddresses(
  network: { fetch: Fetch },
  { url, addresses, init }: AddressedRequest,
): Promise<Response> {
  let lastError: unknown
  for (const address of addresses.slice(0, addressesTriedMax)) {
    try {
      return await network.fetch(urlAt(url, address), requestTo(url, init))
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? error.code : undefined
      lastError = error
      if (typeof code !== 'string' || !unconnected.has(code)) break
    }
  }
  throw new AppError('upstream_unreachable', 'The server could not be reached.', {
    cause: lastError,
  })
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
    // A small compressed body can expand to a huge one.
    decompress: false,
    // Pooled connections are keyed by address, not by the checked name.
    keepalive: false,
    ...(isNamed ? { tls: { serverName: url.hostname } } : {}),
  }
}

function totalTimeout(timeoutMs: number): AppError {
  return new AppError(
    'upstream_total_timeout',
    `The server took longer than ${timeoutMs / 1000} s.`,
  )
}
