import type { EngineErrorKind } from '#speech/engine.ts'

export type ServerAddress = {
  /** As configured: ws or http, with or without a path. */
  readonly url: string
  /** The path for a URL without one. */
  readonly path: string
  readonly query: readonly (readonly [name: string, value: string])[]
  readonly headers: Readonly<Record<string, string>>
}

type ConnectionListener = {
  opened(): void
  received(data: unknown): void
  pinged(): void
  /** The connection failed or was closed. */
  closed(kind: EngineErrorKind, message: string): void
}

/** Opens a WebSocket to a speech server. */
export function connect(address: ServerAddress, listener: ConnectionListener): WebSocket {
  const { headers } = address
  const socket = new WebSocket(urlOf(address), { headers, perMessageDeflate: false })
  let isOpen = false
  let upgradeStatus: number | null = null
  socket.onopen = () => {
    isOpen = true
    listener.opened()
  }
  socket.onmessage = ({ data }: MessageEvent<unknown>) => listener.received(data)
  socket.addEventListener('ping', () => listener.pinged())
  socket.onerror = (event) => {
    // The message quotes the URL, so only the status is read from it.
    const message = 'message' in event ? String(event.message) : ''
    const status = /status code: (\d{3})\b/.exec(message)?.[1]
    upgradeStatus = status === undefined ? null : Number(status)
  }
  socket.onclose = ({ code, reason }) => {
    if (upgradeStatus !== null) {
      const message = `the server responded with status ${upgradeStatus}`
      listener.closed(kindOfStatus(upgradeStatus), message)
    } else if (isOpen) {
      const detail = reason === '' ? '' : `: ${reason}`
      listener.closed(kindOfClose(code), `the server closed with ${code}${detail}`)
    } else {
      listener.closed('unreachable', 'the connection to the server failed')
    }
  }
  return socket
}

function urlOf({ url, path, query }: ServerAddress): string {
  const parsed = new URL(url.replace(/^http/i, 'ws'))
  if (parsed.pathname === '/') parsed.pathname = path
  // Configured parameters take precedence; our own names may occur several times.
  const configured = new Set(parsed.searchParams.keys())
  for (const [name, value] of query) {
    if (!configured.has(name)) parsed.searchParams.append(name, value)
  }
  return parsed.href
}

function kindOfStatus(status: number): EngineErrorKind {
  if (status === 429 || status === 503) return 'busy'
  if (status >= 400 && status < 500 && status !== 408) return 'refused'
  return 'unreachable'
}

/** Standard and registered close codes, and 4000 + an HTTP status, which some servers use. */
function kindOfClose(code: number): EngineErrorKind {
  if (code === 1013) return 'busy'
  if ([1003, 1007, 1008, 1009, 3000, 3003].includes(code)) return 'refused'
  if (code >= 4400 && code < 4500) return kindOfStatus(code - 4000)
  return 'broken'
}
